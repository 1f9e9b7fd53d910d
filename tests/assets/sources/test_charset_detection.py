"""Undeclared text of many charsets: one text in many languages, encoded as they are used."""

from __future__ import annotations

import pytest

from assets.sources.formats.charset import decode_text
from assets.sources.formats.html_fragment import html_to_text
from assets.sources.formats.sniff import find_format
from tests.shared_data import shared_folder

LANGUAGES = {
    "arb": "cp1256 iso8859-6 utf-8",
    "bul": "cp1251 iso8859-5 utf-8",
    "ces": "cp1250 iso8859-2 utf-8",
    "cmn_hans": "gb2312 gbk gb18030 utf-8",
    "cmn_hant": "big5 utf-8",
    "deu_1996": "cp1252 latin-1 utf-8 utf-16-le utf-16-be utf-32-le utf-32-be",
    "ell_monotonic": "cp1253 iso8859-7 utf-8",
    "fra": "cp1252 latin-1 utf-8",
    "heb": "cp1255 iso8859-8 utf-8",
    "hrv": "cp1250 iso8859-2 utf-8",
    "hun": "cp1250 iso8859-2 utf-8",
    "jpn": "euc-jp shift_jis cp932 iso2022_jp utf-8 utf-32-le",
    "kor": "euc-kr cp949 johab iso2022_kr utf-8",
    "pol": "cp1250 iso8859-2 utf-8",
    "rus": "cp1251 koi8-r iso8859-5 mac_cyrillic cp855 cp866 utf-8 utf-32-be",
    "slk": "cp1250 iso8859-2 utf-8",
    "slv": "cp1250 iso8859-2 utf-8",
    "spa": "cp1252 latin-1 utf-8 utf-8-sig utf-16 utf-32",
    "tha": "cp874 tis_620 utf-8",
    "tur": "cp1254 iso8859-9 utf-8",
}
PAIRS = [(name, charset) for name, charsets in LANGUAGES.items() for charset in charsets.split(" ")]


@pytest.mark.parametrize(("language", "charset"), PAIRS)
def test_text_is_decoded_without_a_declaration(language: str, charset: str) -> None:
    page = shared_folder("demo", "multilingual", "udhr", f"{language}.html")
    text = html_to_text(page.read_text(encoding="utf-8")).text
    data = text.encode(charset, "ignore")
    decoded = decode_text(data)
    assert decoded.text == data.decode(charset).removeprefix("\ufeff"), decoded.charset
    assert find_format(data, "x") == "text"
