from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from assets.sources.formats.charset import (
    declared_in_markup,
    decode_text,
    find_charset,
    looks_binary,
)

# ruff: noqa: RUF001 (letters of other scripts are what this is about)

TAIWANESE = "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神相對待。"
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. "
JAPANESE = "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
CHINESE = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"
FRENCH = "Tous les êtres humains naissent libres et égaux en dignité. Ça à été rédigé où? "
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια. "


@pytest.mark.parametrize(
    ("label", "codec"),
    [
        ("utf8", "utf-8"),
        (" 'UTF-8' ", "utf-8"),
        ("latin1", "cp1252"),
        ("ISO-8859-1", "cp1252"),
        ("gb2312", "gb18030"),
        ("windows-1251", "cp1251"),
        ("x-sjis", "cp932"),
        ("none", None),
        ("utf-7", None),
        ("rot13", None),
        ("", None),
        (None, None),
    ],
)
def test_labels_mean_what_they_mean_on_the_web(label: str | None, codec: str | None) -> None:
    assert find_charset(label) == codec


@given(st.text(min_size=1).filter(lambda text: text[0] not in "\ufeff\0" and "\x1b" not in text))
def test_utf8_is_never_taken_for_anything_else(text: str) -> None:
    # Zeros at every other place are how UTF-16 without a mark is known.
    if "\0" not in text:
        assert decode_text(text.encode()).text == text
        assert decode_text(text.encode(), ["iso-8859-1", "windows-1251"]).text == text


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (JAPANESE, "iso2022_jp"),
        (CHINESE, "gb18030"),
        (TAIWANESE, "big5hkscs"),
        (FRENCH, "cp1252"),
        (GREEK, "cp1253"),
        (FRENCH, "utf-16-le"),
        (FRENCH, "utf-16-be"),
    ],
)
def test_undeclared_charsets_are_detected(text: str, codec: str) -> None:
    data = (text * 5).encode(codec, "ignore")
    assert decode_text(data).text == data.decode(codec)


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_mark_decides_and_goes(codec: str) -> None:
    decoded = decode_text(FRENCH.encode(codec), ["windows-1251"])
    assert decoded.text == FRENCH


@pytest.mark.parametrize("codec", ["gb18030", "euc-jp"])
def test_one_damaged_byte_does_not_change_the_charset(codec: str) -> None:
    text = (CHINESE if codec == "gb18030" else JAPANESE) * 10
    data = text.encode(codec)
    decoded = decode_text(data[:200] + b"\xff" + data[200:], [codec])
    assert decoded.num_replaced >= 1
    assert decoded.text.count(text[20:40]) >= 9


def test_damaged_utf8_stays_utf8_and_counts_what_was_replaced() -> None:
    data = (RUSSIAN * 3).encode()
    decoded = decode_text(data[:11] + b"\xff" + data[11:])
    assert decoded.charset == "utf-8"
    assert decoded.num_replaced in (1, 2, 3)
    assert decoded.text.endswith(RUSSIAN)


def test_latin1_declared_as_utf8_is_read_as_latin1() -> None:
    data = ("plain words " * 50 + FRENCH).encode("latin-1")
    assert decode_text(data, ["utf-8"]).text == data.decode("cp1252")
    assert decode_text(b"na\xefve", ["utf-8"]).text == "naïve"


@pytest.mark.parametrize(
    ("markup", "label"),
    [
        (b"<meta charset=koi8-r>", "koi8-r"),
        (b'<META http-equiv="Content-Type" content="text/html; charset = gb2312">', "gb2312"),
        (b'<?xml version="1.0" encoding="Shift_JIS"?><html>', "Shift_JIS"),
        (b"<meta charset='UTF-16LE'>", "utf-8"),
        (b"<metadata charset=x><p charset=y>", None),
        (b"no markup", None),
        (b" " * 5000 + b"<meta charset=koi8-r>", None),
    ],
)
def test_declarations_in_markup(markup: bytes, label: str | None) -> None:
    assert declared_in_markup(markup) == label


def test_binary_content_is_seen() -> None:
    assert looks_binary("\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert not looks_binary("words and one stray \0 zero")
    assert not looks_binary("")
