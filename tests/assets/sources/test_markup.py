from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, strategies as st

from assets.settings.reading import ReadSettings
from assets.sources.formats import markdown
from assets.sources.formats.html_fragment import html_to_text
from assets.sources.formats.latex import latex_to_text
from assets.sources.formats.man_page import man_to_text
from assets.sources.formats.markdown import markdown_to_text
from assets.sources.formats.markup import CONVERTERS
from assets.sources.formats.record import UnusableError
from assets.sources.formats.rst import rst_to_text
from tests.assets.sources.reading import only_found, only_lost, outcomes, read_bytes, read_file
from tests.shared_data import shared_folder

LATEX = [
    (r"\documentclass{a}\newcommand{\x}{y}\begin{document}Hi\end{document} tail", "Hi"),
    (r"\section*{One} \emph{two} \textbf{three {four}}", "One\n\ntwo three four"),
    ("a % comment\nb 5\\% \\& \\_ \\{x\\}", "a b 5% & _ {x}"),
    (r"``q'' -- a---b~c \ldots \LaTeX{} x", "\u201cq\u201d \u2013 a\u2014b c \u2026LaTeX x"),
    (r"\'etale na\"{\i}ve \c{c} \v{S} Erd\H{o}s \~n", "étale naïve ç Š Erdős ñ"),
    ("$a_{b}$ and \\(c\\) \\[ d \\label{e} \\]", "$a_{b}$ and $c$\n\n$$d$$"),
    ("\\begin{align*}\na &= b \\\\\nc\n\\end{align*}x", "$$a &= b \\\\\nc$$\n\nx"),
    ("\\begin{lemma}[Euler] \\label{l}\nWe \\cite[p.~2]{k} see \\ref{l}.\\end{lemma}",
     "Lemma (Euler). We [k, p. 2] see [l]."),
    ("\\begin{itemize}\\item one\n\\item[(b)] two\\end{itemize}", "- one\n\n(b) two"),
    ("\\begin{tabular}{ll}a & b \\\\ \\hline c & d\\end{tabular}", "a | b\nc | d"),
    ("\\begin{verbatim}\n  x = {1}  % y\n\\end{verbatim}", "  x = {1}  % y"),
    (r"\verb|a_{b}| \url{http://x/~y} \href{http://z}{label}", "a_{b} http://x/~y label"),
    (r"a\footnote{note} \index{b!c} \textcolor{red}{d} \foo[x]{e}", "a (note) d e"),
    ("text \\UU in a line\n\\layout\nmore", "text $\\UU$ in a line more"),
    (r"price \$5 and an unclosed $x", "price $5 and an unclosed $x"),
    (r"\begin{comment}gone\end{comment}\begin{figure}\caption{Seen}\end{figure}", "Seen"),
]  # fmt: skip
RST = [
    ("=====\nTitle\n=====\n\nOne\ntwo.\n\nSub\n---\nx", "Title\n\nOne two.\n\nSub\n\nx"),
    ("``c*d`` **b** *i* `t <http://x>`__ :pep:`8` :func:`~a.b` |v|\n\n.. |v| replace:: 3",
     "c*d b i t PEP 8 b 3"),
    ("See Python_ and foo_bar_ [1]_.\n\n.. _Python: http://x\n.. [1] Note\n   more",
     "See Python and foo_bar_ [1].\n\n[1] Note more"),
    ("Code::\n\n    a = **1**\n\n      b\n\nafter", "Code:\n\na = **1**\n\n  b\n\nafter"),
    (".. code-block:: c\n   :linenos:\n\n   int *x;\n\nend", "int *x;\n\nend"),
    (".. note:: See\n   this *one*.\n\n.. image:: a.png\n   :alt: b\n\n.. a comment\n   more\n\nz",
     "See\n\nthis one.\n\nz"),
    (".. unknown:: arg\n\n   content\n\n   - item", "arg\n\ncontent\n\n- item"),
    ("* one\n  more\n* two\n\n1. x\n2. y", "- one more\n- two\n\n1. x\n2. y"),
    ("==  ==\nA   B\n==  ==\n1   2\n==  ==\n", "A | B\n1 | 2"),
    ("+---+---+\n| a | b |\n+===+===+\n| c | d |\n+---+---+", "a | b\nc | d"),
    (":Date: 2020\n:Author: X\n\n>>> f(`x`)\n1\n", "Date: 2020\nAuthor: X\n\n>>> f(`x`)\n1"),
    ("a\\ b \\*c\n\n----\n\n| l1\n| l2", "ab *c\n\nl1\nl2"),
    ("- item::\n\n      lit\n\n  Back ``x``.", "- item:\n\nlit\n\nBack x."),
]  # fmt: skip
MAN = [
    ('.TH LS 1\n.SH "NAME"\nls \\- list\n', "NAME\n\nls - list"),
    (".PP\nA \\fBbold\\fP\nline.\n.br\n.B x y\n.BR cat (1),", "A bold line.\nx y cat(1),"),
    (".TP\n.B \\-a\nall\nof it\n.TP\n\\-b\nbe", "-a\nall of it\n\n-b\nbe"),
    (".IP \\(bu 2\none\n.IP (x)\ntwo", "- one\n\n(x)\ntwo"),
    (".nf\n  a\n\n  b\\e\n.fi\nc", "  a\n\n  b\\\n\nc"),
    (".de XX\n.B gone\n..\n.if t gone\n.ie n yes\n.el no\n.if t \\{\\\ngone\n.\\}\nend", "yes end"),
    (".ds V 1.2\nv\\*V \\*(lqq\\*(rq \\(aa \\[u00e9] \\s-1X\\s0", "v1.2 \u201cq\u201d \u00b4 é X"),
    (".TS\ntab(;);\nl l.\na;T{\nb c\nT}\n_\nd;e\n.TE\n", "a | b c\nd | e"),
    ('.UR http://x\nsite\n.UE .\n.\\" comment\n.ad l\nx \\" c', "site <http://x>. x"),
    ((".Dd x\n.Dt CAT 1\n.Sh NAME\n.Nm cat\n.Nd concatenate\n.Sh S\n.Nm\n"
     ".Op Fl b Ar file ...\n.Xr ls 1 ."),
     "NAME\n\ncat concatenate\n\nS\n\ncat [-b file ...] ls(1)."),
    ("'\\\" t\n.SS\nHead\nfoo\\\nbar", "Head\n\nfoobar"),
]  # fmt: skip
MARKDOWN = [
    ("# T\n\nA *b* [c](http://x) ![d](e.png) `f*`\n\n> q\n", "T\n\nA b c d f*\n\nq"),
    ("- a\n- b\n  1. c\n  2. d\n\nend", "- a\n- b\n1. c\n2. d\n\nend"),
    ("```py\nx = '*'\n```\n\n    code\n\n***\n", "x = '*'\n\ncode"),
    ("| a | b |\n|---|---|\n| 1 | *2* |\n", "a | b\n1 | 2"),
    ("<div class=x>in <b>html</b></div>\n\na<br>b &amp; <!-- c -->", "in html\n\na\nb &"),
    ("~~x~~ a\\*b \\\nc", "x a*b\nc"),
]
HTML = [
    ("<p>One <b>two</b></p><p>three</p>", "One two\n\nthree"),
    ("<pre><code>a\n  b\n</code></pre>", "a\n  b"),
    ("plain", "plain"),
    ("<!doctype html><p>x<!-- y --></p><?php z ?>", "x"),
    ("see L<perlcall>,\n\nVec<T> if a<b", "see L<perlcall>,\n\nVec<T> if a<b"),
    ("<p>Vec<T> and 1 < 2 &lt; x<-y</p>", "Vec<T> and 1 < 2 < x<-y"),
    ("<ul><li>x</li><li>y</li></ul>", None),
]


@pytest.mark.parametrize(("source", "text"), LATEX)
def test_latex(source: str, text: str) -> None:
    assert latex_to_text(source).text == text


@pytest.mark.parametrize(("source", "text"), RST)
def test_restructured_text(source: str, text: str) -> None:
    assert rst_to_text(source).text == text


@pytest.mark.parametrize(("source", "text"), MAN)
def test_manual_pages(source: str, text: str) -> None:
    assert man_to_text(source).text == text


@pytest.mark.parametrize(("source", "text"), MARKDOWN)
def test_markdown(source: str, text: str) -> None:
    assert markdown_to_text(source).text == text


@pytest.mark.parametrize(("source", "text"), HTML)
def test_html_fragments(source: str, text: str | None) -> None:
    found = html_to_text(source).text
    assert "<li" not in found
    assert "</" not in found
    assert text is None or found == text


def test_titles_and_counts_are_metadata() -> None:
    drawn = "\\title{T x}\n\\begin{document}a\\begin{tikzpicture}\\end{tikzpicture}\\end{document}"
    assert latex_to_text(drawn).metadata == {"title": "T x", "left_out": {"drawings": 1}}
    assert man_to_text(".TH LS 1 2020\nx").metadata == {"title": "LS", "section": "1"}
    assert rst_to_text("PEP: 1\nTitle: Some\n\nA\n=\n").metadata == {"title": "Some"}
    head = markdown_to_text('---\ntitle: "T"\ntags: [a]\n---\n# H\nx')
    assert head.metadata == {"front_matter": {"title": "T", "tags": "[a]"}, "title": "H"}


def test_files_are_converted_or_kept() -> None:
    data = gzip.compress(b".TH A 1\n.SH NAME\na \\- b\n")
    (record,) = only_found(read_bytes(data, "man/a.1.gz"))
    assert (record.text, record.content_type) == ("NAME\n\na - b", "text/plain")
    keep = ReadSettings(markup="keep")
    (record,) = only_found(read_bytes(data, "a.1.gz", format="man", read=keep))
    assert (record.text[:3], record.content_type) == (".TH", "text/troff")
    assert outcomes(b".so man1/b.1\n", "a.1") == ["<redirect>"]
    assert outcomes(b"% nothing\n", "a.tex") == ["<empty_body>"]
    assert outcomes("# \u0416\n".encode("utf-16"), "a.md") == ["\u0416"]


def test_texts_of_rows_are_converted() -> None:
    line = {"text": "<p>a</p><p>b</p>", "title": "T", "id": "7"}
    data = json.dumps(line).encode() + b"\nbad\n"
    read = ReadSettings(text_markup="html")
    records = read_bytes(data, read=read)
    (record,) = only_found(records)
    assert (record.text, record.user_id, record.metadata) == ("a\n\nb", "7", {"title": "T"})
    assert [lost.rule for lost in only_lost(records)] == ["bad_json"]


HOSTILE = [
    "\\begin{a}", "\\footnote{", "\\section{", "{", "}", "$", "\\[",
    "\\(", "\\item[", "\\cite[x", "\\'",
    "\\begin{align}", "\\begin{verbatim}", "\\href{", "\\verb|", "\\\\[",
    "%", "~", "\\label{a}\n",
    "``", "`a", "*a ", "**a", "|a", "[a]_", ".. ", ".. a::\n  ", ".. |",
    "a::\n\n ", "==", "a\n=\n",
    "= =\n", "+-+\n", ":a:`", "_`", "\n  ", ">>> ", "- ", ":a: ", ".. _a: b\n",
    "\\ ", ".. note::\n\n ",
    ".if n ", ".ie n \\{", ".de x\n", ".TS\n", "T{\n", "\\*(", "\\f",
    ".ds a \\*a\\*a\n", ".BR ", '."', "\\",
    ".Op ", ".Oo ", ".It ", "\n.nf\n", ".UR ", "\\h'", "\\[",
]  # fmt: skip


@pytest.mark.parametrize("name", ["latex", "man", "rst"])
def test_time_grows_with_the_length_only(name: str) -> None:
    for piece in HOSTILE:
        # With the square of this length each would take minutes.
        CONVERTERS[name](piece * (50_000 // len(piece)))


def test_markdown_and_html_that_are_too_dense_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for piece in ("[", "![", "[a](", "*a_ ", "<a", "`a``", "> ", "- ", "  - a\n"):
        monkeypatch.setattr(markdown, "MAX_MARKS", 3000)
        try:
            markdown_to_text(piece * 20_000)
        except UnusableError as error:
            assert error.rule == "too_complex"  # noqa: PT017 (either is right)
    for source in ("<div>" * 50_000, "<p>" * 50_000, "x" * (2 << 20)):
        with pytest.raises(UnusableError):
            html_to_text(source)


@given(
    st.lists(st.sampled_from([*HOSTILE, "words ", "\n", "\n\n", "\0", "\x01", "é"]), max_size=40)
)
def test_any_mix_of_markup_is_text(pieces: list[str]) -> None:
    for converter in CONVERTERS.values():
        try:
            text = converter("".join(pieces)).text
        except UnusableError:
            continue
        text.encode()


def test_real_papers_docs_and_manuals_become_prose() -> None:
    demo = shared_folder("demo")
    (paper,) = only_found(read_file(demo / "papers/stacks-project/categories.tex.gz"))
    assert "Definition. A category $\\mathcal{C}$ consists of the following data:" in paper.text
    (manual,) = only_found(read_file(demo / "multilingual/man/de/chmod.1.gz"))
    assert "chmod - Dateimodusbits ändern" in manual.text
    (pep,) = only_found(read_file(demo / "docs/peps/pep-0004.rst"))
    assert "The deprecation process is outlined in PEP 387." in pep.text


HOSTILE_TEXTS = {
    "rst table": ("rst", "= " * 50_000 + "=\n" + "x\n" * 50_000),
    "rst roles": ("rst", (":a:`" + " " * 990 + "`") * 300),
    "markdown comments": ("markdown", "<!--\n\n" * 50_000),
    "markdown comments in a block": ("markdown", "<div>\n" + "<!-- " * 9_000 + "x" * 200_000),
    "markdown numbers": ("markdown", "<div>\n&#" + "1" * 5_000 + ";\n</div>"),
}


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_texts_take_linear_time(name: str) -> None:
    language, source = HOSTILE_TEXTS[name]
    assert CONVERTERS[language](source).text is not None


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("rst", ".. |a| replace:: " + "x" * 20_000 + "\n\n" + "|a| " * 1_000),
        ("man", ".ds a " + "x" * 190 + "\n" + "\\*a" * 200_001),
    ],
)
def test_replaced_texts_grow_a_document_to_a_limit(language: str, source: str) -> None:
    with pytest.raises(UnusableError) as caught:
        CONVERTERS[language](source)
    assert caught.value.rule == "too_complex"


def test_comments_in_blocks_of_html() -> None:
    source = "<div>\na <!-- x\n<b> --> b <!-- open\n</div>"
    assert markdown_to_text(source).text == "a  b <!-- open"


def test_a_tag_of_more_attributes_than_any_is_refused_and_ordinary_ones_are_not():
    many = " ".join(f"a{number}=1" for number in range(50_000))
    for attributes in (many, many.replace("=1", '=">"'), many.replace("=1", "")):
        with pytest.raises(UnusableError, match="attributes or more"):
            html_to_text(f"<a {attributes}>text</a>")
    ordinary = """<p class='a > b' data-x="1" hidden>text</p><a href=x/y>link</a>"""
    assert html_to_text(ordinary).text == "text\n\nlink"
    hostile = '<p a="' * 15_000
    with pytest.raises(UnusableError):
        html_to_text(hostile + "<b>" * 300)
