"""What other thresholds would do is what they do when the corpus is cleaned with them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from assets.catalog.what_if import DROPS, ENDED, RETURNS, UNMEASURED, what_if
from assets.cleaning.clean import materialize_clean
from assets.cleaning.rule_groups.judged import judged_rules
from assets.document import CLEAN, SIGNALS
from assets.errors import ConfigurationError
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import FineWebRules, GopherQualityRules, GopherRepetitionRules
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from tests.assets.cleaning.test_pipeline import ENGLISH, GERMAN
from tests.assets.cleaning.test_rule_groups import GOOD, OTHER, THIRD

TEXTS = [
    *(ENGLISH, OTHER, THIRD, GOOD, GERMAN, GOOD + "\n" + OTHER),
    *("short", "the cats and " * 16 + "dogs", OTHER.replace(".", "...\n"), GOOD.replace(".", "")),
    *((OTHER + "\n\n") * 3, ENGLISH + " " + ENGLISH, "...", "# " * 30 + GOOD, GOOD + "\nSee also"),
]
RULES = CleaningRules(
    fineweb=FineWebRules(enabled=True, max_duplicate_character_ratio=0.9),
    gopher_repetition=GopherRepetitionRules(enabled=True),
)


def settings_of(folder, rules: CleaningRules) -> Settings:
    return Settings(
        root=str(folder / "root"),
        sources=(
            SourceSettings(
                name="prose", paths=(str(folder / "prose/*.jsonl"),), profile="text", format="jsonl"
            ),
            SourceSettings(name="code", paths=(str(folder / "code/*.jsonl"),), profile="code"),
        ),
        cleaning=CleaningSettings(rules=rules),
        tokenizer=TokenizerSettings(path="none.json"),
        engine=EngineSettings(processes=1),
        base_dir=str(folder),
    )


def cleaned(
    folder, rules: CleaningRules = RULES, texts: Sequence[str] = TEXTS
) -> tuple[Root, Settings]:
    for name in ("prose", "code"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "code/a.jsonl").touch()
    (folder / "prose/a.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    settings = settings_of(folder, rules)
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("prose",))
    materialize_clean(root, settings, log, ("prose",))
    return root, settings


def dropped(root: Root) -> dict[str, int]:
    totals: dict[str, int] = {}
    for entry in Manifest.load(root, "clean").entries():
        for rule, count in entry.statistics["dropped"].items():
            totals[rule] = totals.get(rule, 0) + count
    return totals


@pytest.mark.parametrize(
    ("thresholds", "rules"),
    [
        (
            {"gopher_short_doc": 60.0},
            dataclasses.replace(RULES, gopher_quality=GopherQualityRules(min_words=60)),
        ),
        (
            {"fineweb_char_dup_ratio": 0.01, "fineweb_line_punct_ratio": 0.9},
            dataclasses.replace(
                RULES, fineweb=FineWebRules(enabled=True, min_terminal_line_ratio=0.9)
            ),
        ),
        (
            {"top_2_gram": 0.01},
            dataclasses.replace(
                RULES,
                gopher_repetition=GopherRepetitionRules(enabled=True, max_top_2gram_ratio=0.01),
            ),
        ),
    ],
)
def test_what_it_tells_is_what_happens(tmp_path, thresholds, rules):
    root, settings = cleaned(tmp_path)
    effects = what_if(root, settings, thresholds)
    told = sum(effect.documents for effect in effects if effect.effect == DROPS)
    before = sum(dropped(root).values())
    assert told > 0
    assert not [effect for effect in effects if effect.effect not in (DROPS, ENDED)]
    (tmp_path / "then").mkdir()
    after_root, _ = cleaned(tmp_path / "then", rules)
    assert sum(dropped(after_root).values()) == before + told


def test_lower_thresholds_let_documents_go_on(tmp_path):
    root, settings = cleaned(tmp_path)
    effects = what_if(root, settings, {"gopher_short_doc": 1, "gopher_enough_stop_words": 0})
    assert [(effect.effect, effect.rule, effect.documents) for effect in effects] == [
        (RETURNS, "gopher_short_doc", 2),
        (ENDED, "gopher_short_doc", 1),  # without a word
        (UNMEASURED, "gopher_enough_stop_words", 1),  # the German one
        (ENDED, "gopher_enough_stop_words", 1),
    ]
    assert (effects[0].now, effects[0].then) == (50, 1)
    assert effects[0].words == 1 + 49
    assert effects[0].tokens is None
    assert len(effects[0].doc_ids) == 2


def test_words_are_those_that_the_rules_count(tmp_path):
    texts = [GOOD, GOOD.replace(" ", "-", 130), "\u4e2d\u6587\u7684\u8bdd\u3002 " * 9]
    by_signs = GopherQualityRules(word_splitter="signs", min_alpha_word_ratio=None)
    rules = CleaningRules(gopher_quality=by_signs)
    root, settings = cleaned(tmp_path, rules, texts)
    assert not dropped(root)
    least = {"gopher_short_doc": 55.0}
    # Chinese is not asked, and hyphens part words: by columns of `CLEAN`, two would go.
    assert [effect.effect for effect in what_if(root, settings, least)] == [UNMEASURED]
    (tmp_path / "then").mkdir()
    then = CleaningRules(gopher_quality=dataclasses.replace(by_signs, min_words=55))
    after_root, _ = cleaned(tmp_path / "then", then, texts)
    assert not dropped(after_root)


def test_shares_and_ids(tmp_path):
    root, settings = cleaned(tmp_path)
    effect, _ = what_if(root, settings, {"gopher_long_doc": 100}, sources=["prose"], num_ids=1)
    kept = len(TEXTS) - sum(dropped(root).values())
    assert effect.share == pytest.approx(effect.documents / kept)
    assert len(effect.doc_ids) == 1
    assert len(effect.doc_ids[0]) == 32


def test_what_was_not_measured_is_told(tmp_path):
    root, settings = cleaned(tmp_path, CleaningRules())
    effect, ended = what_if(root, settings, {"top_2_gram": 0.1})
    assert (effect.effect, effect.rule, effect.now) == (UNMEASURED, "top_2_gram", None)
    assert effect.documents == len(TEXTS) - sum(dropped(root).values())
    assert (ended.effect, ended.documents) == (ENDED, sum(dropped(root).values()))


def test_parts_of_an_earlier_version_have_no_later_values(tmp_path, monkeypatch):
    root, settings = cleaned(tmp_path)
    read = Root.read_table

    def without_later_fields(self, reference, columns=None):
        table = read(self, reference, columns)
        if columns is None or "signals" not in columns:
            return table
        signals = table["signals"].combine_chunks()
        fields = list(signals.type)[:12]
        arrays = [signals.field(field.name) for field in fields]
        struct = pa.StructArray.from_arrays(arrays, fields=fields)
        return table.set_column(table.schema.get_field_index("signals"), "signals", struct)

    monkeypatch.setattr(Root, "read_table", without_later_fields)
    effects = what_if(root, settings, {"top_2_gram": 0.0, "gopher_short_doc": 60})
    assert {effect.effect for effect in effects} >= {DROPS, UNMEASURED}


def test_unknown_rules_and_sources_are_errors(tmp_path):
    root, settings = cleaned(tmp_path)
    with pytest.raises(ConfigurationError, match=r"tiny_doc; did you mean 'gopher_\w+_doc'\?"):
        what_if(root, settings, {"gopher_tiny_doc": 1})
    with pytest.raises(ConfigurationError, match=r"named xyz; there are .*top_2_gram"):
        what_if(root, settings, {"xyz": 1})
    for rule, reason in (
        ("c4_few_words", "rewrites texts line by line"),
        ("url_domain", "compares nothing"),
        ("language_characters", "not stored for kept"),
        ("language_score", "no source drops by it"),
    ):
        with pytest.raises(ConfigurationError, match=f"{rule} cannot be judged again.*{reason}"):
            what_if(root, settings, {rule: 1})
    with pytest.raises(ConfigurationError, match="no source is named 'poetry'"):
        what_if(root, settings, {"top_2_gram": 1}, sources=["poetry"])


def test_tokens_are_counted_where_documents_have_them(grown):
    root, settings = grown
    names = {source.name: source.profile for source in settings.sources}
    prose = [name for name, profile in names.items() if profile in ("web", "text")]
    effects = what_if(root, settings, {"gopher_short_doc": 10**9}, sources=prose)
    drops = [effect for effect in effects if effect.effect == DROPS]
    assert drops
    assert all(effect.tokens is not None and effect.tokens > 0 for effect in drops)


def test_every_rule_has_a_column_that_is_stored():
    source = SourceSettings(name="a", paths=("*",), profile="web", languages=("en",))
    rules = judged_rules(source, CleaningSettings())
    assert len({rule.name for rule in rules}) == len(rules)
    signals = {field.name for field in SIGNALS}
    for rule in rules:
        assert rule.column in (signals if rule.is_signal else CLEAN.names), rule
    names = {rule.name for rule in rules}
    assert {"url_soft_words", "language_score", "c4_too_few_sentences", "perplexity"} < names
    code = dataclasses.replace(source, profile="code")
    assert "code_generated" in {rule.name for rule in judged_rules(code, CleaningSettings())}
