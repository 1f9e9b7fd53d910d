"""`olmo-data what-if` on a cleaned root, with good and bad arguments."""

from __future__ import annotations

import json

import pytest

from assets.cleaning.clean import materialize_clean
from assets.root import Root
from assets.settings.load import load_settings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from dagster_project.command_line.main import main
from tests.assets.cleaning.test_pipeline import ENGLISH
from tests.assets.cleaning.test_rule_groups import OTHER

CONFIG = """
root: root
sources:
  - {name: prose, paths: ["prose/*.jsonl"], format: jsonl, profile: text, languages: [en]}
cleaning: {rules: {gopher_repetition: {enabled: true}}}
tokenizer: {path: none.json}
engine: {processes: 1}
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("what-if")
    (folder / "prose").mkdir()
    lines = [json.dumps({"text": text}) + "\n" for text in (ENGLISH, OTHER, "short text")]
    (folder / "prose/a.jsonl").write_text("".join(lines))
    (folder / "config.yaml").write_text(CONFIG)
    settings = load_settings(folder / "config.yaml")
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("prose",))
    materialize_clean(root, settings, log, ("prose",))
    return str(folder / "config.yaml")


def test_a_table_and_json(config, capsys):
    assert main(["what-if", "gopher_short_doc=56", "--config", config]) == 0
    printed = capsys.readouterr().out
    assert "gopher_short_doc" in printed
    assert "50.00%" in printed
    assert main(["what-if", "gopher_short_doc=56", "--json", "--config", config]) == 0
    effect, ended = map(json.loads, capsys.readouterr().out.splitlines())
    assert (effect["effect"], effect["documents"], effect["now"]) == ("drops", 1, 50)
    assert (ended["effect"], ended["documents"]) == ("ended before", 1)
    assert effect["words"] == len(OTHER.split()) == 55
    assert main(["what-if", "top_2_gram=1", "--config", config]) == 0
    *rows, last = capsys.readouterr().out.splitlines()
    assert "ended before" in rows[-1]
    assert last == "nothing would change"
    assert main(["what-if", "gopher_short_doc=off", "--config", config]) == 0
    assert "  off  " in capsys.readouterr().out
    assert main(["what-if", "language_score:en=1.1", "--config", config]) == 0
    assert "language_score:en" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gopher_short_doc"], "'gopher_short_doc' is not RULE=THRESHOLD"),
        (["gopher_short_doc=many"], "is not RULE=THRESHOLD"),
        (["gopher_short_doc=inf"], "is not RULE=THRESHOLD"),
        (["gopher_tiny=1"], "no rule with a stored value is named gopher_tiny; did you"),
        (["top_2_gram=1", "--source", "poetry"], "no source is named 'poetry'"),
    ],
)
def test_bad_arguments_are_one_error(config, capsys, arguments, message):
    assert main(["what-if", *arguments, "--config", config]) != 0
    assert message in capsys.readouterr().err
