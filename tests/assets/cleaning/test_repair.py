"""Repair: literals, agreement with plain Python, and that it changes nothing of what is right."""

from __future__ import annotations

import json
import re
import unicodedata

import ftfy.bad_codecs  # noqa: F401 - knows sloppy-windows-1252
import numpy as np
import pytest
from hypothesis import given, strategies as st

from assets.cleaning.repair import CHANGES, limit_blank_lines, repair
from assets.cleaning.text_column import text_array
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningSettings
from assets.settings.repair import RepairSettings
from tests.assets.cleaning.given_documents import clean
from tests.assets.cleaning.hostile_texts import texts
from tests.assets.cleaning.test_pipeline import ENGLISH, GERMAN
from tests.shared_data import shared_folder

ON = RepairSettings(enabled=True)


def repaired(text: str, settings: RepairSettings = ON) -> tuple[str, dict[str, int]]:
    result, counts = repair(text_array([text]), settings)
    found = zip(CHANGES, counts[0].tolist(), strict=True)
    return result[0].as_py(), {name: count for name, count in found if count}


def damaged(text: str, times: int = 1) -> str:
    for _ in range(times):
        text = text.encode().decode("sloppy-windows-1252")
    return text


@pytest.mark.parametrize(
    ("text", "expected", "changes"),
    [
        ("", "", {}),
        ("plain text\n", "plain text\n", {}),
        ("caf\u00e9 na\u00efve \u201cSpa\u00df\u201d \u00c0 bient\u00f4t", None, {}),
        ("zero\u200bwidth\u2060 soft\u00adhyphen\ufeff", "zerowidth softhyphen", {"zero_width": 4}),
        ("\ufeffmark first", "\ufeffmark first", {}),
        ("join\u200dme \u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None, {}),
        ("a\u00a0b\u2009c\u202fd\u3000e", "a b c d\u3000e", {"spaces": 3}),
        ("one\u2028two\u2029", "one\ntwo\n", {"separators": 2}),
        ("e\u0301t\u00e9", "\u00e9t\u00e9", {"nfc": 1}),
        ("\u212b \u1112\u1161\u11ab", "\u00c5 \ud55c", {"nfc": 1}),
        (
            "line one\ncafÃ© is broken\nline three",
            "line one\ncaf\u00e9 is broken\nline three",
            {"mojibake": 1},
        ),
        ("itâ€™s", "it\u2019s", {"mojibake": 1}),
    ],
)
def test_literals(text, expected, changes):
    found, counts = repaired(text)
    if text.startswith("join"):
        assert found == text.replace("join\u200dme", "joinme")
        assert counts == {"zero_width": 1}
        return
    assert (found, counts) == (text if expected is None else expected, changes)


@pytest.mark.parametrize("times", [1, 2])
def test_damage_of_real_languages_is_undone(times):
    sentences = [
        GERMAN,
        "L\u2019\u00e9t\u00e9 dernier, nous avons mang\u00e9 des cr\u00eapes \u00e0 la plage.",
        "\u041c\u043e\u0441\u043a\u0432\u0430 \u2014 \u0441\u0442\u043e\u043b\u0438\u0446\u0430.",
        "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u3002",
    ]
    for sentence in sentences:
        assert repaired(damaged(sentence, times))[0] == sentence
        assert repaired(sentence) == (sentence, {})


def test_of_real_sentences_only_the_damaged_ones_change():
    folder = shared_folder("langid")
    lines = (folder / "public.tsv").read_text(encoding="utf-8").splitlines()
    found, counts = repair(text_array(lines), RepairSettings(enabled=True, spaces=False))
    damaged_lines = np.flatnonzero(counts[:, 0]).tolist()
    assert [lines[number][:2] for number in damaged_lines] == ["cs", "lg", "lg", "lg", "ro"]
    assert (
        found[damaged_lines[0]]
        .as_py()
        .startswith("cs\tZ\u00e1v\u011br dokumentu vyzn\u00edv\u00e1")
    )
    changed = [n for n, line in enumerate(lines) if found[n].as_py() != line]
    for number in set(changed) - set(damaged_lines):
        kinds = {name for name, count in zip(CHANGES, counts[number], strict=True) if count}
        assert kinds <= {"nfc", "zero_width"}


@given(st.lists(texts, max_size=5), st.integers(0, 2))
def test_blank_lines_agree_with_plain_python(given_texts, most):
    found, counts = limit_blank_lines(text_array(given_texts), most)
    for text, result, count in zip(given_texts, found.to_pylist(), counts.tolist(), strict=True):
        expected = re.sub(rf"(?<!\n)\n{{{most + 2},}}", "\n" * (most + 1), "x" + text)[1:]
        start = len(text) - len(text.lstrip("\n"))
        if start > most:
            expected = "\n" * most + re.sub(
                rf"\n{{{most + 2},}}", "\n" * (most + 1), text.lstrip("\n")
            )
        assert result == expected
        assert count == len(text) - len(result)


@given(st.lists(texts, max_size=5))
def test_repair_is_valid_and_without_mojibake_plain(given_texts):
    settings = RepairSettings(enabled=True, mojibake=False)
    found, counts = repair(text_array(given_texts), settings)
    found.validate(full=True)
    for text, result, row in zip(given_texts, found.to_pylist(), counts.tolist(), strict=True):
        assert result == unicodedata.normalize("NFC", result)
        assert any(row) == (result != text)
        assert not re.search("[\u200b\u2060\u180e\u00ad\u00a0\u2000-\u200a\u2028\u2029]", result)


def test_the_pipeline_repairs_prose_and_leaves_code():
    settings = CleaningSettings(repair=ON)
    text = ENGLISH.replace(" ", "\u00a0", 2) + "\u200b \n\n\n\n" + damaged("caf\u00e9")
    rows, ledger = clean([text, ENGLISH], cleaning=settings)
    assert rows[0]["text"] == ENGLISH + "\n\ncaf\u00e9"
    assert (ledger[0]["decision"], ledger[0]["rule"]) == ("modified", "repaired")
    assert json.loads(ledger[0]["detail"]) == {
        "blank_lines": 2,
        "mojibake": 1,
        "spaces": 2,
        "trailing": 1,
        "zero_width": 1,
    }
    assert ledger[1]["decision"] == "kept"
    code = "x = 'caf\u00c3\u00a9'\u00a0# \u200b\n\n\n\n\ny = 1\n"
    rows, ledger = clean([code], profile="code", cleaning=settings)
    assert (rows[0]["text"], ledger[0]["decision"]) == (code, "kept")


def test_one_repair_can_be_switched_off():
    text = "a\u00a0\u200bb e\u0301"
    assert repaired(text, RepairSettings(zero_width=False, nfc=False))[1] == {"spaces": 1}
    assert repaired(text, RepairSettings(spaces=False, nfc=False))[1] == {"zero_width": 1}
    with pytest.raises(ConfigurationError, match="max_blank_lines: -1 is negative"):
        RepairSettings(max_blank_lines=-1)


def test_long_damaged_lines_take_linear_time():
    line = damaged("\u00e9\u2019" * 20_000)
    assert repaired(line)[0] == "\u00e9\u2019" * 20_000
    assert repaired("\u00c3" * 100_000 + "x")[1] == {}
