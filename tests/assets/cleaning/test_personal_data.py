"""The step of cleaning that masks personal data: rows, spans, ledger, settings."""

from __future__ import annotations

import hashlib
import json

import pytest

from assets.cleaning.pipeline import pipeline_identity
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningSettings
from assets.settings.pii import NameSettings, PiiSettings
from assets.settings.reader import build
from assets.settings.sources import SourceSettings
from tests.assets.cleaning.given_documents import clean

TEXTS = [
    "Nothing of the kind.",
    "Gr\u00fc\u00dfe an ann@example.org \r\nund (212) 555-0147.",
    "a@b.com c@d.com e@f.com",
    "...",
]


def cleaned(**settings):
    return clean(TEXTS, profile="text", cleaning=with_pii(**settings))


def with_pii(**settings) -> CleaningSettings:
    rules = {"gopher_quality": {"enabled": False}}
    value = {"rules": rules, "pii": settings}
    return build(CleaningSettings, value, file="test")


def test_what_is_found_is_masked_and_said():
    rows, ledger = cleaned()
    text = "Gr\u00fc\u00dfe an |||EMAIL_ADDRESS|||\nund |||PHONE_NUMBER|||."
    assert [row["text"] for row in rows[:2]] == [TEXTS[0], text]
    assert [row["pii_replaced"] for row in rows] == [0, 2, 3, None]
    assert [row["spans"] and len(row["spans"]) for row in rows] == [[], 2, 3, None]
    data = text.encode()
    assert [(data[s["start"] : s["end"]].decode(), s["kind"]) for s in rows[1]["spans"]] == [
        ("|||EMAIL_ADDRESS|||", "email"),
        ("|||PHONE_NUMBER|||", "phone"),
    ]
    assert rows[1]["text_hash"] == hashlib.sha256(data).digest()
    assert [(row["decision"], row["rule"]) for row in ledger] == [
        ("kept", None),
        ("modified", "normalised"),
        ("modified", "pii_masked"),
        ("dropped", "empty"),
    ]
    assert json.loads(ledger[1]["detail"]) == {
        "line_endings": 1,
        "pii_email": 1,
        "pii_phone": 1,
        "trailing": 1,
    }


def test_too_many_values_drop_a_document():
    rows, ledger = cleaned(drop_above=2)
    assert rows[2]["text"] is None
    assert rows[1]["pii_replaced"] == 2
    lost = ledger[2]
    assert (lost["decision"], lost["rule"]) == ("dropped", "pii_too_many")
    assert (lost["value"], lost["threshold"]) == (3.0, 2.0)
    assert json.loads(lost["detail"]) == {"pii_email": 3}
    assert "@" not in json.dumps(ledger, default=str)


def test_after_dedup_notes_where_values_are_and_leaves_the_text():
    rows, ledger = cleaned(after_dedup=True)
    assert rows[2]["text"] == TEXTS[2]
    assert [(span["start"], span["end"]) for span in rows[2]["spans"]] == [
        (0, 7),
        (8, 15),
        (16, 23),
    ]
    assert ledger[2]["decision"] == "kept"


def test_off_by_default_and_out_of_the_fingerprint():
    rows, _ = clean(TEXTS, profile="none")
    assert [row["text"] for row in rows[:3]] == TEXTS[:3]
    assert {row["pii_replaced"] for row in rows} == {None}
    source = SourceSettings(name="test", paths=("*",), profile="none")
    assert "pii" not in pipeline_identity(source, CleaningSettings())
    plain = pipeline_identity(source, with_pii())["pii"]
    assert (
        plain
        == pipeline_identity(source, with_pii(replacements={"email": "|||EMAIL_ADDRESS|||"}))["pii"]
    )
    assert plain != pipeline_identity(source, with_pii(replacements={"email": "<E>"}))["pii"]
    assert plain != pipeline_identity(source, with_pii(drop_above=5))["pii"]


def test_code_is_masked_too_but_for_its_decorators():
    text = "@property\ndef mail(self):\n    return 'dev@pallets.org'\n"
    rows, _ = clean([text], profile="code", cleaning=with_pii())
    assert rows[0]["text"] == text.replace("dev@pallets.org", "|||EMAIL_ADDRESS|||")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"kinds": []}, "nothing to look for"),
        ({"kinds": ["mail"]}, "'mail' is not one of"),
        ({"replacements": {"mail": "x"}}, "'mail' is not one of email, phone"),
        ({"replacements": {"email": "x" * 300}}, "at most 256"),
        ({"phone_regions": ["us"]}, "two capital letters"),
        ({"drop_above": -1}, "at least 0"),
        ({"names": {"model": "os.path"}}, "'os.path' is not one of"),
        ({"names": {"max_characters": 1}}, "outside"),
        ({"after_dedupe": True}, "did you mean 'after_dedup'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, expected):
    with pytest.raises(ConfigurationError, match=expected):
        with_pii(**settings)
    assert PiiSettings().kinds


def test_a_model_that_is_not_installed_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr("assets.cleaning.pii.names._PACKAGES", {"en_core_web_sm": ()})
    cleaning = CleaningSettings(pii=PiiSettings(names=NameSettings()))
    source = SourceSettings(name="test", paths=("*",))
    with pytest.raises(ConfigurationError, match=r"'en_core_web_sm' is not installed"):
        pipeline_identity(source, cleaning)
