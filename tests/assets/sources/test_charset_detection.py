"""Undeclared text of many charsets: one text in many languages, encoded as they are used."""

from __future__ import annotations

# ruff: noqa: RUF001 (letters of other scripts are what this is about)
import codecs
import hashlib
import os
import time
from pathlib import Path

import pytest

from assets.sources.formats.charset import decode_text, looks_binary
from assets.sources.formats.html_fragment import html_to_text
from assets.sources.formats.sniff import find_format
from benchmarks.charsets import print_table
from tests.shared_data import shared_folder

MAINFRAMES = {"cp273", "cp500", "cp875", "cp1026", "cp1140"}

LANGUAGES = {
    "arb": "cp1256 iso8859-6 cp720 utf-8",
    "bel": "cp1251 iso8859-5 cp866",
    "bul": "cp1251 iso8859-5 cp855 mac_cyrillic utf-8",
    "ces": "cp1250 iso8859-2 cp852 mac_latin2 utf-8",
    "cmn_hans": "gb2312 gbk gb18030 utf-8",
    "cmn_hant": "big5 utf-8",
    "dan": "cp1252 iso8859-1 cp865 cp850",
    "deu_1996": "cp1252 latin-1 cp437 cp273 mac_roman utf-8 utf-16-le utf-16-be utf-32-le",
    "ell_monotonic": "cp1253 iso8859-7 cp737 cp869 cp875 mac_greek utf-8",
    "epo": "iso8859-3",
    "fra": "cp1252 latin-1 cp850 cp863 cp500 cp1140 mac_roman utf-8",
    "gle": "iso8859-14 cp1252",
    "heb": "cp1255 iso8859-8 cp856 cp862 utf-8",
    "hrv": "cp1250 iso8859-2 utf-8",
    "hun": "cp1250 iso8859-2 cp852 utf-8",
    "isl": "cp1252 cp861 mac_iceland",
    "jpn": "euc-jp shift_jis cp932 iso2022_jp utf-8 utf-32-le",
    "kaz": "kz1048 ptcp154",
    "kor": "euc-kr cp949 johab iso2022_kr utf-8",
    "lit": "cp1257 iso8859-13 cp775",
    "pol": "cp1250 iso8859-2 cp852 mac_latin2 utf-8",
    "por_PT": "cp1252 cp860",
    "ron_1993": "cp1250",
    "rus": "cp1251 koi8-r iso8859-5 mac_cyrillic cp855 cp866 utf-8 utf-32-be",
    "slk": "cp1250 iso8859-2 utf-8",
    "slv": "cp1250 iso8859-2 utf-8",
    "spa": "cp1252 latin-1 utf-8 utf-8-sig utf-16 utf-32",
    "tgk": "koi8_t",
    "tha": "cp874 tis_620 utf-8",
    "tur": "cp1254 iso8859-9 cp857 cp1026 mac_turkish utf-8",
    "ukr": "cp1251 koi8-u cp1125 iso8859-5",
    "vie": "utf-8",
}
PAIRS = [(name, charset) for name, charsets in LANGUAGES.items() for charset in charsets.split(" ")]


@pytest.mark.parametrize(("language", "charset"), PAIRS)
def test_text_is_decoded_without_a_declaration(language: str, charset: str) -> None:
    page = shared_folder("demo", "multilingual", "udhr", f"{language}.html")
    text = html_to_text(page.read_text(encoding="utf-8")).text
    data = text.encode(charset, "ignore")
    decoded = decode_text(data)
    assert decoded.text == data.decode(charset).removeprefix("\ufeff"), decoded.charset
    if charset not in MAINFRAMES:
        assert find_format(data, "x") == "text"


def test_more_than_fifty_charsets_are_told() -> None:
    assert len({codecs.lookup(charset).name for _, charset in PAIRS}) >= 60


def test_public_files_decode_as_their_folders_say() -> None:
    folder = os.environ.get("OLMO_CHARSET_FILES")
    if not folder:
        pytest.skip("OLMO_CHARSET_FILES names no folder of chardet's test files")
    assert print_table(Path(folder)) >= 50


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("It’s the cat’s pyjamas", "mac-roman"),
        ("un café très serré, déjà bu", "cp1252"),
        ("Grüße aus München", "cp1252"),
        ("ログイン", "euc_jis_2004"),
    ],
)
def test_a_few_letters_are_enough_where_nothing_else_fits(text: str, charset: str) -> None:
    assert decode_text(text.encode(charset)).text == text


def test_a_foreign_letter_is_found_wherever_it_stands() -> None:
    start = b"An English line.\n" * 40_000
    end = "Les élèves français ont été très gênés par la sévérité de l’été.\n".encode("cp1252")
    assert decode_text(start + end).text.endswith("sévérité de l’été.\n")


@pytest.mark.parametrize(
    "unit", [b"+AAA", b"~{", b"\x1b$", b"\x81\x30", b"<meta charset=", b"\xff", b"\xa1"]
)
def test_detection_takes_no_time_on_hostile_bytes(unit: bytes) -> None:
    started = time.process_time()
    decode_text(unit * (1_000_000 // len(unit)) + b"\xff\xfe\x80")
    assert time.process_time() - started < 5  # quadratic ones take minutes


def test_random_bytes_are_no_text() -> None:
    data = hashlib.shake_256(b"noise").digest(20_000)
    assert looks_binary(decode_text(data).text)
