from __future__ import annotations

import bz2
import json

import pytest

from assets.settings.reading import ReadSettings
from assets.sources.formats import xml_elements
from assets.sources.formats.record import Found
from tests.assets.sources.reading import only_found, only_lost, outcomes, read_bytes, read_file
from tests.shared_data import shared_folder

HEAD = """<mediawiki xml:lang="bg">
  <siteinfo>
    <dbname>bgwiki</dbname>
    <base>https://bg.wikipedia.org/wiki/%D0%9D</base>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Файл</namespace>
      <namespace key="14" case="first-letter">Категория</namespace>
    </namespaces>
  </siteinfo>
"""


def wiki_page(text: str, title: str = "A &amp; B", namespace: str = "0", more: str = "") -> str:
    return (
        f"  <page>\n<title>{title}</title><ns>{namespace}</ns><id>7</id>{more}"
        "<revision><id>1</id><text>old</text></revision>"
        "<revision><id>2</id><timestamp>2016-04-22T10:19:33Z</timestamp>"
        "<contributor><username>someone</username><id>9</id></contributor>"
        f'<model>wikitext</model><text xml:space="preserve">{text}</text></revision></page>\n'
    )


def dump(*pages: str) -> bytes:
    return (HEAD + "".join(pages) + "</mediawiki>\n").encode()


def test_a_page_is_its_last_revision_as_plain_text() -> None:
    data = dump(wiki_page("'''Words''' [[Файл:a.png]][[Категория:Букви]]&lt;ref&gt;x&lt;/ref&gt;"))
    (record,) = read_bytes(data, "dump")
    assert isinstance(record, Found)
    assert (record.text, record.user_id) == ("Words", "7")
    assert record.url == "https://bg.wikipedia.org/wiki/A_&_B"
    assert record.fetched_at is not None
    assert record.fetched_at.isoformat() == "2016-04-22T10:19:33+00:00"
    assert record.metadata == {
        "title": "A & B",
        "namespace": 0,
        "revision": "2",
        "model": "wikitext",
        "wiki": "bgwiki",
        "categories": ["Букви"],
        "left_out": {"files": 1, "references": 1},
    }


def test_what_is_no_article_is_counted_by_name() -> None:
    data = dump(
        wiki_page("#REDIRECT [[B]]", more='<redirect title="B" />'),
        wiki_page("talk", namespace="1"),
        wiki_page("{{only}}"),
        wiki_page("words"),
        wiki_page("x").replace("<model>wikitext", "<model>javascript"),
    )
    expected = ["<redirect>", "<other_namespace>", "<empty_body>", "words", "<not_text>"]
    assert outcomes(data, "dump.xml", format="wiki_xml") == expected
    read = ReadSettings(namespaces=(0, 1))
    assert outcomes(data, "d", format="wiki_xml", read=read)[1] == "talk"


def test_markup_may_be_kept() -> None:
    (record,) = only_found(
        read_bytes(dump(wiki_page("'''a'''")), format="wiki_xml", read=ReadSettings(markup="keep"))
    )
    assert (record.text, record.content_type) == ("'''a'''", "text/x-wiki")


def test_a_damaged_page_costs_only_itself() -> None:
    good = wiki_page("good")
    data = dump(good, wiki_page("<b>bad</i>"), good, wiki_page("&lol;"), "<page><title>", good)
    assert outcomes(data, "dump") == ["good", "<bad_xml>", "good", "<bad_xml>", "<bad_xml>", "good"]
    assert [record.position is not None for record in read_bytes(data, "dump")] == [True] * 6


def test_entities_and_nesting_are_refused() -> None:
    bomb = '<!DOCTYPE m [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n'
    data = (bomb + HEAD + wiki_page("&b;") + "</mediawiki>").encode()
    assert outcomes(data, format="wiki_xml") == ["<bad_xml>"]
    inner = wiki_page('<!DOCTYPE m [<!ENTITY a "x">]>')
    assert outcomes(dump(inner), format="wiki_xml") == ["<bad_xml>"]
    deep = wiki_page("").replace("<title>", "<a>" * 50_000 + "<title>")
    (lost,) = only_lost(read_bytes(dump(deep), format="wiki_xml"))
    assert "levels deep" in lost.reason


def test_a_page_above_the_limit_and_a_cut_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml_elements, "MAX_RECORD_BYTES", 2000)
    data = dump(wiki_page("a"), wiki_page("b" * 700_000), wiki_page("c"))
    assert outcomes(data, "dump") == ["a", "<too_large>", "c"]
    stored = bz2.compress(dump(wiki_page("a"), wiki_page("b")))
    assert outcomes(stored[:-20], "x.xml.bz2")[-1] == "<truncated>"
    cut = dump(wiki_page("a"), wiki_page("b"))[:-80]
    assert outcomes(cut, "dump") == ["a", "<bad_xml>"]


def test_a_dump_in_utf16() -> None:
    data = dump(wiki_page("думи")).decode().encode("utf-16")
    (record,) = only_found(read_bytes(data, "dump"))
    assert (record.text, record.metadata["charset"]) == ("думи", "utf-16")


def test_real_dumps_become_prose() -> None:
    folder = shared_folder("demo", "wiki")
    (path,) = folder.glob("bgwiki*.bz2")
    (record,) = only_found(read_file(path))
    assert record.metadata["title"] == "Григориански календар"
    assert record.text.startswith("Папа Григорий XIII")
    assert not any(mark in record.text for mark in ("[[", "{{", "<ref", "thumb|"))


@pytest.mark.parametrize("namespace", ["--5", "-", "", "5-", " 0", "9" * 40])
def test_a_namespace_that_is_no_number_costs_its_page(namespace: str) -> None:
    data = dump(wiki_page("words", namespace=namespace), wiki_page("more"))
    assert outcomes(data, "a.xml", format="wiki_xml") == ["<bad_xml>", "more"]


def test_many_starts_before_one_end_take_linear_time() -> None:
    data = (HEAD + "<page>" * 60_000 + wiki_page("words") + "</mediawiki>").encode()
    records = read_bytes(data, "a.xml", format="wiki_xml")
    assert len(records) == 60_001
    assert [record.text for record in only_found(records)] == ["words"]


def test_a_page_with_a_damaged_start_is_counted() -> None:
    data = dump(wiki_page("one"), wiki_page("two"), wiki_page("three"), wiki_page("four"))
    damaged = data.replace(b"<page>", b"<PAGE>", 2).replace(b"<PAGE>", b"<page>", 1)
    assert outcomes(damaged, "a.xml", format="wiki_xml") == ["one", "<bad_xml>", "three", "four"]
    last = data[: data.rindex(b"<page>")] + data[data.rindex(b"<page>") + 6 :]
    assert outcomes(last, "a.xml", format="wiki_xml") == ["one", "two", "three", "<bad_xml>"]
    first = data.replace(b"<page>", b"<Page>", 1)
    assert outcomes(first, "a.xml", format="wiki_xml") == ["<bad_xml>", "two", "three", "four"]


@pytest.mark.parametrize(
    "text",
    [
        "#REDIRECT [[B]]",
        "#redirect:[[B|b]] {{R from move}}",
        "\n #WEITERLEITUNG [[B#part]]",
        "#Перенаправление [[B]]",
        "#YÖNLENDİRME [[B]]",
        "#yönlendirme [[B]]",
        "\uff03転送\n[[B]]",
    ],
)
def test_redirects_without_an_element_are_told_by_their_text(text: str) -> None:
    page = dump(wiki_page(text, title="A"))
    (lost,) = only_lost(read_bytes(page, "dump"))
    assert (lost.rule, lost.reason.split(" leads to ")[0]) == ("redirect", "'A'")
    assert outcomes(page, "dump", read=ReadSettings(markup="keep")) == ["<redirect>"]
    row = json.dumps({"text": text}).encode()
    assert outcomes(row, read=ReadSettings(text_markup="wikitext")) == ["<redirect>"]
    assert outcomes(row) == [text]  # plain text, as the source says


@pytest.mark.parametrize(
    "text",
    ["#Redirects of [[B]]", "# REDIRECT [[B]]", "#REDIRECT B", "a\n#REDIRECT [[B]]", "#[[B]]"],
)
def test_pages_that_only_look_like_redirects_are_kept(text: str) -> None:
    assert len(only_found(read_bytes(dump(wiki_page(text)), "dump"))) == 1


def test_a_script_with_the_text_of_a_redirect_is_a_script() -> None:
    page = wiki_page("#REDIRECT [[B]]").replace("<model>wikitext", "<model>javascript")
    assert outcomes(dump(page), "dump") == ["<not_text>"]
