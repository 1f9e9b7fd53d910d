"""Documents dropped for their urls, and lists that users supply."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from assets.cleaning.pipeline import clean_table, pipeline_identity
from assets.cleaning.word_lists import read_word_list
from assets.errors import ConfigurationError
from assets.settings.cleaning import CleaningRules, CleaningSettings
from assets.settings.rules import UrlRules
from assets.settings.sources import SourceSettings
from tests.assets.cleaning.given_documents import documents_of
from tests.assets.cleaning.test_pipeline import ENGLISH

LISTS = Path(__file__).parents[3] / "configs" / "lists"
SOURCE = SourceSettings(name="test", paths=("*",), profile="web")


def settings_of(**rules) -> CleaningSettings:
    return CleaningSettings(rules=CleaningRules(urls=UrlRules(enabled=True, **rules)))


@pytest.fixture
def cleaning(tmp_path):
    (tmp_path / "domains").write_text("# comment\nBad.example\n\nworse.example.org # because\n")
    (tmp_path / "hard").write_text("porn\n")
    (tmp_path / "soft").write_text("sex\nfree\nteen\n")
    return settings_of(
        domains=str(tmp_path / "domains"),
        hard_words=str(tmp_path / "hard"),
        soft_words=str(tmp_path / "soft"),
    )


@pytest.mark.parametrize(
    ("url", "rule", "value"),
    [
        (None, None, None),
        ("https://good.example/page", None, None),
        ("https://bad.example/page", "url_domain", None),
        ("HTTPS://WWW.BAD.EXAMPLE:8080?x", "url_domain", None),
        ("http://user:word@a.bad.example./", "url_domain", None),
        ("bad.example/no/scheme", "url_domain", None),
        ("https://notbad.example/", None, None),
        ("https://example.org/bad.example", None, None),
        ("https://worse.example.org", "url_domain", None),
        ("https://a.example/hot-Porn/1", "url_hard_word", None),
        ("https://a.example/pornography", None, None),
        ("https://a.example/sex-education", None, None),
        ("https://a.example/free/sex.html", "url_soft_words", 2),
        ("https://a.example/sex?sex=sex", None, None),
        ("", None, None),
        ("//", None, None),
        ("https://" + "a" * 10_000, None, None),
    ],
)
def test_reasons(cleaning, url, rule, value):
    documents = documents_of([ENGLISH])
    documents = documents.set_column(
        documents.schema.get_field_index("url"), "url", pa.array([url], pa.string())
    )
    clean, ledger = clean_table(documents, source=SOURCE, cleaning=cleaning)
    (row,) = ledger.to_pylist()
    assert (row["rule"], row["value"]) == (rule, value)
    if rule in ("url_domain", "url_hard_word"):
        assert json.loads(row["detail"])["entry"] in ("bad.example", "worse.example.org", "porn")
    soft = clean["signals"][0].as_py()
    if rule is None and url is not None:
        assert soft["url_soft_words"] in (0, 1)


def test_the_lists_that_come_along_can_be_read():
    for name in ("url_domains", "url_hard_words", "url_soft_words"):
        words = read_word_list(str(LISTS / f"{name}.txt"))
        assert len(words) >= 3
        assert "" not in words


def test_a_list_enters_the_fingerprint_by_its_content(tmp_path):
    for name, text in (("a", "x.example\n"), ("b", "x.example\n"), ("c", "y.example\n")):
        (tmp_path / name).write_text(text)

    def identity(name):
        return pipeline_identity(SOURCE, settings_of(domains=str(tmp_path / name)))

    assert identity("a") == identity("b") != identity("c")
    assert "urls" not in pipeline_identity(SOURCE, CleaningSettings())


def test_bad_lists_are_errors(tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    (tmp_path / "phrase").write_text("one\ntwo words\n")
    with pytest.raises(ConfigurationError, match="latin: the list cannot be read"):
        read_word_list(str(tmp_path / "latin"))
    with pytest.raises(ConfigurationError, match="phrase: line 2 is not one word or domain"):
        read_word_list(str(tmp_path / "phrase"))
    with pytest.raises(ConfigurationError, match="none: the list cannot be read"):
        read_word_list(str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="name at least one of the lists"):
        UrlRules(enabled=True)
