from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from assets.sources.formats.wikitext import WikiNames, wikitext_to_text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'''Bold''' and ''italic'', l''''x", "Bold and italic, l'x"),
        ("[[A]], [[A|b]]s, [[:Category:C|d]], [[:File:E.png]]", "A, bs, d, File:E.png"),
        ("[[Category:X]][[de:Titel]][[Image:a.png]]words", "words"),
        ("[[File:a.jpg|thumb|200px|alt=x|A [[b|caption]]]]Text", "A caption\nText"),
        ("[http://a.example label] [http://a.example] [//b.example c d]", "label  c d"),
        ("{{Infobox|a=1\n|b={{x}}}}\nWords{{sfn|Q}}.", "Words."),
        ("{{lang|el|λόγος}}, {{convert|5|to|7|km|mi}}, {{nowrap|a b}}", "λόγος, 5 to 7 km, a b"),
        ("a{{ndash}}b {{abbr|Mr|Mister}} {{formatnum:12}}", "a\u2013b Mr 12"),
        ("a<ref>x {{c}}</ref> b<ref name=q /> c<br />d<!-- no -->", "a b c\nd"),
        ("<math>x^2 < {{a}}</math> <nowiki>[[raw]]</nowiki>", "$x^2 < {{a}}$ [[raw]]"),
        ("<syntaxhighlight lang=c>\nif (a[[1]]) {}\n</syntaxhighlight>", "if (a[[1]]) {}"),
        ("* a\n** b\n# c\n; d\n: e\n----\n", "- a\n- b\n- c\nd\ne"),
        ("== A ==\n=== B ===\nwords\n== Empty ==\n=== Also ===\n", "A\n\nB\n\nwords"),
        ("{| class=x\n|+ Cap\n|-\n! H1 !! H2\n|-\n| a || style=x | [[b|c]]\n|}", None),
        ("<gallery>\nFile:a.jpg|One ''[[x|two]]''\nb.jpg\n</gallery>", "One two"),
        ("__TOC__a&nbsp;&amp;&lt;b&gt;", "a &<b>"),
        ("an {{unclosed and [[open", "an {{unclosed and [[open"),
        ("stray ]] }} |} <b>bold</b> 3 < 4", "stray ]] }} |} bold 3 < 4"),
        ("a\0b", "ab"),
        ("", ""),
    ],
)
def test_markup_becomes_text(source: str, text: str | None) -> None:
    assert wikitext_to_text(source).text == ("Cap\nH1 | H2\na | c" if text is None else text)


def test_what_is_left_out_is_counted_and_categories_are_kept() -> None:
    plain = wikitext_to_text(
        "{{a}}{{b|{{c}}}}x<ref>y</ref>[[Category:One]][[File:f.png]]<timeline>z</timeline>"
        "[[Категория:Два]]",
        WikiNames.with_local((), ("категория",)),
    )
    assert plain.text == "x"
    assert plain.metadata == {
        "categories": ["One", "Два"],
        "left_out": {"embedded": 1, "files": 1, "references": 1, "templates": 3},
    }


HOSTILE = [
    *("[[", "{{", "{{{", "<b>", "[http://a ", "{|\n|-\n", "<ref>", "[[a|", "{{a|b=", "<!--"),
    *("<nowiki>", "</ref>", "]]", "}}", "\n|", "\n==a==", "\n====", "<ref>[[a|", "{|\n{{", "<a "),
    *("__A", "''", "("),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_length_only(piece: str) -> None:
    # With the square of this length it would take hours; as it is, a tenth of a second.
    assert wikitext_to_text(piece * 30_000).text is not None


@pytest.mark.parametrize("start", ["=", "= ", "[[File:x|", "[[File:x|1", "[[File:x|thumb"])
@pytest.mark.parametrize("piece", [" ", "\t", "1", "= "])
@pytest.mark.parametrize("end", ["", "x]]"])
def test_long_runs_in_headings_and_options_take_linear_time(
    start: str, piece: str, end: str
) -> None:
    assert wikitext_to_text(start + piece * 50_000 + end).text is not None


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("== a == b ==\nx", "a == b\n\nx"),
        ("======= a =======\nx", "= a\n\nx"),
        ("==\ta\t== \nx", "a\n\nx"),
        ("====\nx", "====\nx"),
        ("= a\nx", "= a\nx"),
        ("[[File:a.png| 20 x 30 px | upright | c]]", "c"),
    ],
)
def test_edges_of_headings_and_options(source: str, text: str) -> None:
    assert wikitext_to_text(source).text == text


def test_a_number_of_thousands_of_digits_is_no_character() -> None:
    assert wikitext_to_text("a&#" + "1" * 5000 + ";b<nowiki>&#" + "0" * 5000 + "65;</nowiki>").text
    assert wikitext_to_text("&#65;&#x42;&#99999999;").text == "AB\ufffd"


@given(st.lists(st.sampled_from([*HOSTILE, "words ", "|", "</ref>", "|}", "\n", "é"]), max_size=60))
def test_any_mix_of_markup_is_text(pieces: list[str]) -> None:
    text = wikitext_to_text("".join(pieces)).text
    assert "\0" not in text
    assert text.count("words") <= pieces.count("words ")
