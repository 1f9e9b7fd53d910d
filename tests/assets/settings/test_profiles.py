"""Profiles of the user's own: which rules with which thresholds a source is asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from assets.cleaning.pipeline import clean_table, pipeline_identity
from assets.errors import ConfigurationError
from assets.pins import changed_pins, pinned_settings, pins_to_publish
from assets.settings.load import load_settings
from assets.settings.schema import Settings
from tests.assets.cleaning.given_documents import documents_of
from tests.assets.cleaning.test_rule_groups import GOOD, OTHER

CONFIG = """
root: root
sources:
  - {{name: forum, paths: ["a"], profile: forum, languages: [en]}}
  - {{name: notes, paths: ["b"], profile: text}}
cleaning:
  profiles:
    forum:
{profile}
tokenizer: {{path: none.json}}
"""
FORUM = """\
      like: text
      language_threshold: 0.3
      rules:
        gopher_quality: {min_words: 15, min_stop_words: null}
        gopher_repetition:
        code: {max_line_length: 400, max_mean_line_length: null}
        urls: {domains: bad.txt}
"""


def loaded(folder: Path, profile: str = FORUM) -> Settings:
    file = folder / "config.yaml"
    file.write_text(CONFIG.format(profile=profile))
    (folder / "bad.txt").write_text("bad.example\n")
    return load_settings(file)


def rules_of(settings: Settings, name: str, texts: list[str]) -> list[str | None]:
    source, cleaning = settings.cleaning_of(name)
    _, ledger = clean_table(documents_of(texts), source=source, cleaning=cleaning)
    rules: list[str | None] = ledger["rule"].to_pylist()
    return rules


def test_a_source_is_asked_what_its_profile_names_and_nothing_else(tmp_path):
    settings = loaded(tmp_path)
    short = OTHER.partition(" Visitors")[0]
    long_line = GOOD.replace("\n", " ") * 2
    texts = [short, long_line, (short + "\n") * 5, "too short"]
    assert rules_of(settings, "forum", texts) == [
        None,  # gopher_short_doc at 50 by default
        "code_line_too_long",  # a group of another profile
        "dup_line_frac",  # a group named without a value
        "gopher_short_doc",
    ]
    assert rules_of(settings, "notes", texts)[:3] == ["gopher_short_doc", None, None]


def test_the_profile_is_seen_in_the_settings(tmp_path):
    settings = loaded(tmp_path)
    source, cleaning = settings.cleaning_of("forum")
    assert (source.profile, cleaning.language_threshold) == ("text", 0.3)
    assert settings.source("forum").profile == "forum"
    assert cleaning.rules.urls.domains == str(tmp_path / "bad.txt")
    assert settings.cleaning_of("notes")[1] is settings.cleaning
    assert pipeline_identity(source, cleaning)["rules_code"]["max_line_length"] == 400


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("      like: wbe", "'wbe' is not one of 'web'"),
        ("      rules: {c5: {}}", r"unknown key 'c5'; did you mean 'c4'\?"),
        ("      rules: {c4: {min_sentence: 1}}", "did you mean 'min_sentences'"),
        ("      rules: [c4]", "expected a mapping"),
        ("      rules: {c4: 7}", "expected a mapping"),
        ("      language_threshold: 2.0", "outside"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, profile, message):
    with pytest.raises(ConfigurationError, match=message):
        loaded(tmp_path, profile)


def test_names_are_checked(tmp_path):
    with pytest.raises(ConfigurationError, match="'web' is built in"):
        loaded(tmp_path, "      like: web\n    web: {}")
    settings = loaded(tmp_path)
    forum, notes = settings.sources
    wrong = dataclasses.replace(forum, profile="form")
    with pytest.raises(ConfigurationError, match=r"forum: .* 'form' .* did you mean 'forum'"):
        dataclasses.replace(settings, sources=(wrong, notes))


def test_what_a_profile_asks_is_pinned_and_its_name_is_not(tmp_path):
    settings = loaded(tmp_path)
    held = pins_to_publish(
        settings, landed_sources=["forum", "notes"], tokenizer_sha256="ab" * 32, published={}
    )
    further = loaded(tmp_path, FORUM + "    other: {rules: {c4: {}}}\n")
    assert changed_pins(held, pinned_settings(further)) == {}
    changed = loaded(tmp_path, FORUM.replace("min_words: 15", "min_words: 16"))
    assert [*changed_pins(held, pinned_settings(changed))] == [
        "sources[forum].profile.rules.gopher_quality.min_words"
    ]
    dropped = loaded(tmp_path, FORUM.replace("        gopher_repetition:\n", ""))
    assert changed_pins(held, pinned_settings(dropped))
