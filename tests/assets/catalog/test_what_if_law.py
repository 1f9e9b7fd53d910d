"""For every rule: what would be dropped and what would go on is what a run with it decides."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from assets.catalog.what_if import DROPS, RETURNS, Effect, what_if
from assets.cleaning.clean import materialize_clean
from assets.cleaning.pipeline import clean_table
from assets.cleaning.rule_groups.judged import JudgedRule, judged_rules
from assets.document import DOCUMENTS
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.cleaning import CleaningSettings
from assets.settings.language import LanguageSettings
from assets.settings.pii import PiiSettings
from assets.settings.profiles import CleaningRules
from assets.settings.rules import (
    C4Rules,
    CharacterRules,
    FineWebRules,
    GopherRepetitionRules,
    ParagraphRules,
    ShareRules,
    WebLineRules,
)
from assets.settings.schema import EngineSettings, Settings
from assets.settings.sources import SourceSettings
from assets.settings.tokens import TokenizerSettings
from assets.sources.documents import materialize_documents
from assets.sources.landing import land
from tests.assets.catalog.test_what_if import TEXTS
from tests.assets.cleaning.test_rule_groups import GOOD, OTHER, THIRD

GIVEN = [
    *TEXTS,
    *(f"{OTHER}\nWrite to ann{n}@example.org" + " or bob@example.org" * n for n in range(3)),
    *(GOOD.upper(), GOOD + " \u0416\u0417\u0418" * 60, "Sign-in\n3 likes\n" + GOOD, GOOD[:300]),
    *(f"{{ {GOOD}", "Lorem ipsum. " + GOOD, THIRD + "\n%%%&&&///" * 9, GOOD + "\nx" * 30),
]
CLEANING = CleaningSettings(
    language_threshold=0.5,
    language=LanguageSettings(thresholds={"de": 0.6}),
    rules=CleaningRules(
        web_lines=WebLineRules(enabled=True, max_removed_word_ratio=0.1),
        c4=C4Rules(enabled=True, require_end_mark=False, min_sentences=2),
        shares=ShareRules(enabled=True, max_base64_ratio=0.5),
        characters=CharacterRules(enabled=True),
        fineweb=FineWebRules(enabled=True, max_duplicate_character_ratio=0.3),
        paragraphs=ParagraphRules(enabled=True, min_third_longest_line=0),
        gopher_repetition=GopherRepetitionRules(enabled=True, max_top_2gram_ratio=0.3),
    ),
    pii=PiiSettings(drop_above=1),
)
GROUPS = [field.name for field in dataclasses.fields(CleaningRules)]


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory) -> tuple[Root, Settings]:
    folder = tmp_path_factory.mktemp("law")
    (folder / "prose").mkdir()
    lines = [json.dumps({"text": text}) + "\n" for text in GIVEN]
    (folder / "prose/a.jsonl").write_text("".join(lines))
    source = SourceSettings(
        name="prose",
        paths=(str(folder / "prose/*.jsonl"),),
        profile="text",
        languages=("en", "de"),
        format="jsonl",
    )
    settings = Settings(
        root=str(folder / "root"),
        sources=(source,),
        cleaning=CLEANING,
        tokenizer=TokenizerSettings(path="none.json"),
        engine=EngineSettings(processes=1),
        base_dir=str(folder),
    )
    root = Root(settings.root)
    log = land(root, settings)
    materialize_documents(root, settings, log, ("prose",))
    materialize_clean(root, settings, log, ("prose",))
    return root, settings


def decided(root: Root, settings: Settings, cleaning: CleaningSettings) -> dict[str, Any]:
    """Return (stays, rule) by document when the corpus is cleaned so."""
    (entry,) = Manifest.load(root, "documents").entries()
    documents = root.read_table(entry.objects["data"], DOCUMENTS.names)
    _, ledger = clean_table(documents, source=settings.source("prose"), cleaning=cleaning)
    return {
        row["doc_id"].hex(): (row["decision"] in ("kept", "modified"), row["rule"])
        for row in ledger.to_pylist()
    }


def with_threshold(rule: JudgedRule, value: float | None) -> CleaningSettings:
    """Return `CLEANING` with another threshold of one rule."""
    number: Any = value
    if rule.name == "pii_too_many":
        return dataclasses.replace(CLEANING, pii=PiiSettings(drop_above=number))
    if rule.name == "language_score":
        return dataclasses.replace(CLEANING, language_threshold=number or 0.0)
    if rule.label is not None:
        own = LanguageSettings(thresholds={rule.label: number or 0.0})
        return dataclasses.replace(CLEANING, language=own)
    for group in GROUPS:
        rules = getattr(CLEANING.rules, group)
        for field in dataclasses.fields(rules):
            changed = dataclasses.replace(
                CLEANING,
                rules=dataclasses.replace(
                    CLEANING.rules,
                    **{group: _changed(rules, field.name)},
                ),
            )
            if _threshold_of(changed, rule.name) == MARK:
                own_rules = dataclasses.replace(rules, **{field.name: number})
                kept = dataclasses.replace(CLEANING.rules, **{group: own_rules})
                return dataclasses.replace(CLEANING, rules=kept)
    raise AssertionError(rule.name)


MARK = 0.987654


def _changed(rules: Any, name: str) -> Any:
    if not name.startswith(("min_", "max_")) or name == "max_word_length":
        return rules
    return dataclasses.replace(rules, **{name: MARK})


def _threshold_of(cleaning: CleaningSettings, name: str) -> float | None:
    source = SourceSettings(name="prose", paths=("*",), profile="text", languages=("en", "de"))
    return next(rule.threshold for rule in judged_rules(source, cleaning) if rule.name == name)


SKIPPED = {"url_soft_words", "perplexity", "perplexity_percentile", "quality", "unlike_the_corpus"}
SKIPPED |= {"c4_bad_words", "too_much_hex"}
RULES = [
    rule
    for rule in judged_rules(
        SourceSettings(name="prose", paths=("*",), profile="text", languages=("en", "de")),
        CLEANING,
    )
    if rule.name not in SKIPPED
]


def values_of(root: Root, rule: JudgedRule) -> list[float]:
    (entry,) = Manifest.load(root, "clean").entries()
    table = root.read_table(entry.objects["data"])
    rows = table.to_pylist()
    if rule.is_signal:
        found = [row["signals"][rule.column] for row in rows if row["signals"] is not None]
    else:
        found = [row[rule.column] for row in rows]
    return sorted(value for value in found if value is not None)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_it_is_what_a_run_decides(cleaned, rule):
    root, settings = cleaned
    now = decided(root, settings, CLEANING)
    values = values_of(root, rule)
    assert values
    asked: list[float | None] = [values[len(values) // 4], values[3 * len(values) // 4], None]
    if rule.column == "language_score":
        asked = [0.3, 0.9]
    for threshold in asked:
        effects = what_if(root, settings, {rule.name: threshold}, num_ids=len(GIVEN))
        then = decided(root, settings, with_threshold(rule, threshold))
        _check(now, then, effects, rule)


def _check(
    now: Mapping[str, Any], then: Mapping[str, Any], effects: list[Effect], rule: JudgedRule
) -> None:
    told = {
        effect: {one for item in effects if item.effect == effect for one in item.doc_ids}
        for effect in (DROPS, RETURNS)
    }
    assert all(len(item.doc_ids) == item.documents for item in effects if item.effect in told)
    for document, (stays, reason) in now.items():
        stays_then, reason_then = then[document]
        if document in told[DROPS]:
            assert stays
            assert (stays_then, reason_then) == (False, rule.ledger_name)
        elif document in told[RETURNS]:
            assert reason == rule.ledger_name
            assert reason_then != reason
        else:
            assert stays_then == stays, (document, reason, reason_then)
