"""Models: learned once from cleaned texts, named by hash, the same bytes again."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from assets.cleaning.clean import materialize_clean
from assets.cleaning.models.frozen import freeze, thaw
from assets.cleaning.models.learn import (
    learn_distribution,
    learn_perplexity,
    learn_perplexity_percentiles,
    learn_quality,
)
from assets.cleaning.models.linear_model import LinearModel
from assets.cleaning.models.model_words import model_words
from assets.cleaning.pipeline import clean_table
from assets.cleaning.text_column import text_array
from assets.document import count_decisions
from assets.errors import ConfigurationError, IntegrityError, StageError
from assets.root import Root
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.perplexity import PerplexitySettings, QualitySettings
from assets.settings.rules import DistributionRules, GopherQualityRules
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from dagster_project.command_line.main import main
from tests.assets.cleaning.given_documents import documents_of

SUBJECTS = ("The river", "A small town", "The old bridge", "This mountain", "The new road")
VERBS = ("was built near", "is known for", "lies to the north of", "was named after")
OBJECTS = ("the first king of the country", "a village with a church", "the lake in the west")
NOISE = ("buy cheap", "click here", "free $$$", "win now !!!", "cart 0 items", "best price")
PLAIN = CleaningSettings(rules=CleaningRules(gopher_quality=GopherQualityRules(enabled=False)))


def sentences(seed, number, parts=(SUBJECTS, VERBS, OBJECTS)):
    draw = np.random.default_rng(seed)
    return " ".join(" ".join(str(draw.choice(part)) for part in parts) + "." for _ in range(number))


GOOD = [sentences(seed, 12) for seed in range(120)]
BAD = [sentences(seed, 12, (NOISE, NOISE)) for seed in range(40)]
SOURCE = SourceSettings(name="test", paths=("*",), profile="text")


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learn")
    for name, given in (("wiki", GOOD), ("spam", BAD)):
        lines = "".join(json.dumps({"text": text}) + "\n" for text in given)
        (folder / f"{name}.jsonl").write_text(lines)
    settings = Settings(
        root=str(folder / "root"),
        sources=tuple(
            SourceSettings(name=name, paths=(str(folder / f"{name}.jsonl"),), profile="text")
            for name in ("wiki", "spam")
        ),
        cleaning=PLAIN,
        tokenizer=TokenizerSettings(path="none.json"),
        engine=EngineSettings(processes=1),
        base_dir=str(folder),
    )
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("wiki", "spam"))
    materialize_clean(root, settings, log, ("wiki", "spam"))
    return root, settings, log


def learn(root, sources=("wiki",), order=2, bits=14, max_bytes=1 << 20):
    return learn_perplexity(root, sources, order=order, bits=bits, max_bytes=max_bytes)


def cleaned(root, given, **settings):
    cleaning = dataclasses.replace(PLAIN, **settings)
    clean, ledger = clean_table(
        documents_of(given), source=SOURCE, cleaning=cleaning, root_url=root.url
    )
    return clean.to_pylist(), ledger


def test_learning_again_is_the_same_model(platform):
    root = platform[0]
    first, again = learn(root), learn(root)
    assert first == again
    assert first.documents == len(GOOD)
    assert first.num_bytes == sum(map(len, GOOD))
    assert learn(root, order=3).sha256 != first.sha256
    less = learn(root, max_bytes=5_000)
    assert less.num_bytes <= 5_000 < less.num_bytes + len(GOOD[0]) + 200
    record = thaw(root.url, "perplexity", first.sha256).record
    assert record["sources"] == ["wiki"]
    assert (record["order"], record["bits"]) == (2, 14)


def test_perplexity_is_measured_and_the_worst_is_dropped(platform):
    root = platform[0]
    model = learn(root).sha256
    given = [sentences(999, 12), BAD[0], "..."]
    rows, ledger = cleaned(root, given, perplexity=PerplexitySettings(model=model))
    assert [row["decision"] for row in ledger.to_pylist()] == ["kept", "kept", "dropped"]
    assert rows[0]["perplexity"] < 30 < rows[1]["perplexity"]
    assert rows[2]["perplexity"] is None
    percentiles = learn_perplexity_percentiles(
        root, ["wiki"], model=model, max_bytes=1 << 20
    ).sha256
    limited = PerplexitySettings(model=model, percentiles=percentiles, drop_above=80)
    rows, ledger = cleaned(root, [*GOOD, BAD[0]], perplexity=limited)
    assert rows[-1]["signals"]["perplexity_percentile"] == 100.0
    counts = count_decisions(ledger)
    # A fifth of what the percentiles were learned from, and what is none of it.
    assert counts["dropped"] == {"perplexity_percentile": pytest.approx(len(GOOD) / 5 + 1, abs=1)}
    lost = ledger.to_pylist()[-1]
    assert (lost["value"], lost["threshold"]) == (100.0, 80.0)
    capped = PerplexitySettings(model=model, max_perplexity=30)
    _, ledger = cleaned(root, [GOOD[0], BAD[0]], perplexity=capped)
    assert count_decisions(ledger)["dropped"] == {"perplexity": 1}


def test_the_stage_uses_a_model_of_its_root(platform):
    root, settings, log = platform
    perplexity = PerplexitySettings(model=learn(root).sha256, max_perplexity=30)
    cleaning = dataclasses.replace(PLAIN, perplexity=perplexity)
    changed = dataclasses.replace(settings, cleaning=cleaning)
    report = materialize_clean(root, changed, log, ("wiki", "spam"))
    assert report.num_done == 2
    assert report.by_source()["spam"]["dropped"] == {"perplexity": len(BAD)}
    assert report.by_source()["wiki"]["kept"] == len(GOOD)
    materialize_clean(root, settings, log, ("wiki", "spam"))


def test_a_classifier_of_two_sources(platform):
    root = platform[0]
    learned = learn_quality(root, ["wiki"], ["spam"], bits=12, max_bytes=1 << 20)
    assert learned == learn_quality(root, ["wiki"], ["spam"], bits=12, max_bytes=1 << 20)
    assert learned.facts["right on what it learned from"] == 1.0
    assert learned.facts["negative documents"] > 0
    quality = QualitySettings(model=learned.sha256, min_score=0.5)
    unseen = sentences(500, 9), sentences(501, 9, (NOISE, NOISE))
    rows, ledger = cleaned(root, unseen, quality=quality)
    assert count_decisions(ledger)["dropped"] == {"quality": 1}
    assert rows[0]["signals"]["quality"] > 0.9 > 0.1 > rows[1]["signals"]["quality"]


def test_a_fasttext_model_is_a_classifier_too(platform, tmp_path):
    from assets.cleaning.language import model_path  # noqa: PLC0415

    path = str(model_path())
    english = QualitySettings(fasttext=path, label="__label__en", min_score=0.5)
    german = "Das ist ein deutscher Satz, und hier steht noch einer. " * 3
    rows, ledger = cleaned(platform[0], [GOOD[0], german], quality=english)
    assert rows[0]["signals"]["quality"] > 0.9
    assert count_decisions(ledger)["dropped"] == {"quality": 1}
    missing = QualitySettings(fasttext=path + ".bin")
    with pytest.raises(ConfigurationError, match=r"ftz.bin cannot be read"):
        cleaned(platform[0], GOOD[:1], quality=missing)
    other = QualitySettings(fasttext=path, label="__label__hq", min_score=0.5)
    with pytest.raises(ConfigurationError, match=r"no label '__label__hq'; it has 176: __label__"):
        cleaned(platform[0], GOOD[:1], quality=other)
    broken = tmp_path / "broken.bin"
    broken.write_bytes(b"not a model")
    with pytest.raises(ConfigurationError, match=r"broken.bin is no fastText model"):
        cleaned(platform[0], GOOD[:1], quality=QualitySettings(fasttext=str(broken)))


def test_scores_do_not_depend_on_what_stands_beside():
    given = model_words(text_array([*GOOD[:3], ""]))
    model = LinearModel.train(given, model_words(text_array(BAD)), bits=12)
    alone = [model.scores(model_words(text_array([text])))[0] for text in (*GOOD[:3], "")]
    assert model.scores(given).tolist() == alone


def test_what_cannot_be_learned(platform, tmp_path):
    root = platform[0]
    with pytest.raises(StageError, match="nothing of books is cleaned yet"):
        learn(root, sources=("books",))
    with pytest.raises(StageError, match=r"larger than --max-bytes \(3\)"):
        learn(root, max_bytes=3)
    with pytest.raises(ConfigurationError, match="has no perplexity model"):
        cleaned(root, GOOD[:1], perplexity=PerplexitySettings(model="0" * 64))
    models = [learn(root, order=order).sha256 for order in (2, 3)]
    other = learn_perplexity_percentiles(root, ["wiki"], model=models[0], max_bytes=1 << 20)
    with pytest.raises(ConfigurationError, match="were learned with the model"):
        cleaned(
            root,
            GOOD[:1],
            perplexity=PerplexitySettings(model=models[1], percentiles=other.sha256),
        )
    for wrong in (
        {"model": "x"},
        {"model": "0" * 64, "drop_above": 80.0},
        {"model": "0" * 64, "percentiles": "1" * 64, "drop_above": 100.0},
    ):
        with pytest.raises(ConfigurationError):
            PerplexitySettings(**wrong)
    with pytest.raises(ConfigurationError, match="set one of"):
        QualitySettings()


def test_a_damaged_model_is_refused(tmp_path):
    root = Root(str(tmp_path / "root"))
    sha256 = freeze(root, "perplexity", {"kind": "x"}, {"a": np.arange(9)})
    assert thaw(root.url, "perplexity", sha256).arrays["a"].tolist() == list(range(9))
    folder = tmp_path / "root" / "models" / "perplexity" / sha256
    for name in ("a.npy", "model.json"):
        thaw.cache_clear()
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-1] + b"!")
        with pytest.raises(IntegrityError, match=name):
            thaw(root.url, "perplexity", sha256)
        (folder / name).write_bytes(content)
    (folder / "a.npy").unlink()
    thaw.cache_clear()
    with pytest.raises(IntegrityError, match=r"a.npy is missing"):
        thaw(root.url, "perplexity", sha256)


def test_the_command(platform, tmp_path, capsys):
    root = platform[0]
    config = tmp_path / "c.yaml"
    sources = "".join(
        f"  - {{name: {name}, paths: [x.jsonl], profile: text}}\n" for name in ("wiki", "spam")
    )
    config.write_text(f"root: {root.url}\nsources:\n{sources}tokenizer: {{path: t.json}}\n")

    def run(*arguments):
        code = main(["learn", *arguments, "--config", str(config)])
        return code, capsys.readouterr()

    code, shown = run("perplexity", "--source", "wiki", "--order", "2", "--bits", "12")
    assert code == 0
    model = learn(root, bits=12).sha256
    assert f"perplexity: {{model: {model}}}" in shown.out
    assert "120 documents" in shown.out
    named_before = ["learn", "--config", str(config), "perplexity", "--source", "wiki"]
    assert main([*named_before, "--order", "2", "--bits", "12"]) == 0
    assert model in capsys.readouterr().out
    assert run("percentiles", "--source", "wiki")[0] != 0
    code, shown = run("percentiles", "--source", "wiki", "--model", model)
    assert code == 0
    assert "drop_above: 80" in shown.out
    assert run("quality", "--source", "wiki", "--negative", "spam", "--bits", "12")[0] == 0
    code, shown = run("perplexity", "--source", "nothing")
    assert code != 0
    assert "no source is named 'nothing'" in shown.err


def test_a_distribution_is_learned_and_drops_what_is_unlike(platform):
    root = platform[0]
    learned = learn_distribution(root, ["wiki"], max_bytes=1 << 20)
    assert learned == learn_distribution(root, ["wiki"], max_bytes=1 << 20)
    assert learned.facts["words"] == sum(len(text.split()) for text in GOOD)
    most = learned.facts["divergence of 99 % of the texts is at most"]
    rules = CleaningRules(
        gopher_quality=GopherQualityRules(enabled=False),
        distribution=DistributionRules(enabled=True, model=learned.sha256, max_divergence=most),
    )
    _, ledger = cleaned(root, [*GOOD[:20], BAD[0]], rules=rules)
    assert count_decisions(ledger)["dropped"] == {"unlike_the_corpus": 1}
    assert ledger["rule"].to_pylist()[-1] == "unlike_the_corpus"
