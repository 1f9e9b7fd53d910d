"""What the commands and environments of LaTeX mean for a reader of the text."""

from __future__ import annotations

SECTIONS = frozenset(
    {"part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph"}
    | {"title", "subtitle", "frametitle", "minisec", "addsec", "addchap"}
)
"""Their argument is a title on a line of its own."""
HIDDEN = {
    **dict.fromkeys(
        [
            "label",
            "index",
            "indexdef",
            "indexfoot",
            "indexdefn",
            "symbolindex",
            "hypertarget",
            "vspace",
            "hspace",
            "includegraphics",
            "input",
            "include",
            "subfile",
            "bibliography",
            "bibliographystyle",
            "usepackage",
            "pagestyle",
            "documentclass",
            "documentstyle",
            "thispagestyle",
            "pagenumbering",
            "nocite",
            "graphicspath",
            "theoremstyle",
            "geometry",
            "hypersetup",
            "linespread",
            "cline",
            "cmidrule",
            "phantom",
            "vphantom",
            "hphantom",
            "tikzset",
            "usetikzlibrary",
            "lstset",
            "captionsetup",
            "enlargethispage",
            "stepcounter",
            "refstepcounter",
            "bookmarksetup",
            "hyphenation",
            "tikz",
            "markboth",
            "allowdisplaybreaks",
            "date",
            "thanks",
            "orcid",
            "glsadd",
            "printbibliography",
            "addbibresource",
            "RequirePackage",
            "ProvidesPackage",
            "makeatletter",
            "subjclass",
            "MRnumber",
            "bibitem",
        ],
        1,
    ),
    **dict.fromkeys(
        [
            "setcounter",
            "addtocounter",
            "setlength",
            "addtolength",
            "newcounter",
            "rule",
            "fontsize",
            "settowidth",
            "newtheorem",
            "DeclareMathOperator",
            "indexdefsee",
            "indexsee",
            "definecolor",
            "color@",
            "newcommand",
            "renewcommand",
            "providecommand",
            "def",
            "let",
            "newif",
            "DeclareRobustCommand",
        ],
        2,
    ),
    **dict.fromkeys(["addcontentsline", "newenvironment", "renewenvironment"], 3),
}
"""Number of arguments that are no text, with the command."""
HIDDEN_FIRST = frozenset(
    {
        "textcolor",
        "color",
        "href",
        "colorbox",
        "raisebox",
        "parbox",
        "makebox",
        "scalebox",
        "resizebox",
    }
    | {
        "hyperref",
        "hyperlink",
        "multirow",
        "multicolumn",
        "foreignlanguage",
        "todo",
        "texorpdfstring@",
    }
)
"""Their first argument is no text, the others are; `multicolumn` and its like have two such."""
HIDDEN_TWO = frozenset({"multicolumn", "multirow", "resizebox"})
LAYOUT = frozenset(
    {"noindent", "indent", "centering", "maketitle", "tableofcontents", "listoffigures", "appendix"}
    | {
        "listoftables",
        "frontmatter",
        "mainmatter",
        "backmatter",
        "phantomsection",
        "protect",
        "qed",
    }
    | {"it", "bf", "em", "sc", "rm", "sf", "tt", "sl", "itshape", "bfseries", "scshape", "rmfamily"}
    | {"sffamily", "ttfamily", "normalfont", "tiny", "scriptsize", "footnotesize", "small", "large"}
    | {
        "normalsize",
        "Large",
        "LARGE",
        "huge",
        "Huge",
        "raggedright",
        "raggedleft",
        "sloppy",
        "hfill",
    }
    | {
        "vfill",
        "null",
        "relax",
        "leavevmode",
        "toprule",
        "midrule",
        "bottomrule",
        "hline",
        "nolimits",
    }
    | {"printindex", "columnbreak", "nopagebreak", "pagebreak", "makeatother", "ignorespaces", "fi"}
    | {"pause", "onecolumn", "twocolumn", "doublespacing", "singlespacing", "qedhere", "endinput"}
)
"""They only say how things look."""
REFERENCES = frozenset(
    {
        "ref",
        "cref",
        "Cref",
        "eqref",
        "autoref",
        "pageref",
        "nameref",
        "vref",
        "cite",
        "citep",
        "citet",
    }
    | {
        "citealp",
        "citealt",
        "citeauthor",
        "citeyear",
        "parencite",
        "textcite",
        "autocite",
        "footcite",
    }
    | {"crefrange", "citeyearpar", "labelcref", "fullcite", "gls", "Gls", "glspl", "textref"}
)
"""Shown as the label or key they name, in brackets."""
AROUND = {
    "footnote": (" (", ")"),
    "footnotetext": (" (", ")"),
    "marginpar": (" (", ")"),
    "caption": ("\n\n", "\n\n"),
    "captionof": ("\n\n", "\n\n"),
}
"""What is written before and after their argument."""
MATH = frozenset(
    {"equation", "align", "gather", "multline", "eqnarray", "displaymath", "math", "alignat"}
    | {"flalign", "narrowmultline", "mathpar", "mathparpagebreakable", "dmath", "subequations"}
    | {"equations", "IEEEeqnarray", "gathered", "aligned", "cd", "tikzcd", "CD", "xy", "array"}
)
VERBATIM = frozenset({"verbatim", "Verbatim", "lstlisting", "minted", "alltt", "listing", "code"})
DROPPED = frozenset(
    {"tikzpicture", "comment", "filecontents", "picture", "pspicture", "pgfpicture"}
)
ARGUMENTS = {
    **dict.fromkeys(
        [
            "tabular",
            "longtable",
            "tabularx",
            "tabulary",
            "minipage",
            "thebibliography",
            "wrapfigure",
        ],
        1,
    ),
    **dict.fromkeys(
        ["multicols", "adjustbox", "list", "spacing", "textblock", "subfigure", "column"], 1
    ),
    "tabular*": 2,
}
"""Number of arguments of environments that are no text."""
_THEOREMS = (
    "theorem lemma proposition corollary definition remark remarks example examples exercise claim "
    "conjecture axiom question problem solution fact notation convention situation observation "
    "assumption hypothesis construction algorithm proof note slogan"
)
THEOREMS = {
    **{name: name.capitalize() for name in _THEOREMS.split(" ")},
    "thm": "Theorem",
    "lem": "Lemma",
    "prop": "Proposition",
    "cor": "Corollary",
    "coro": "Corollary",
    "defn": "Definition",
    "dfn": "Definition",
    "rmk": "Remark",
    "rem": "Remark",
    "ex": "Exercise",
    "eg": "Example",
    "exa": "Example",
    "conj": "Conjecture",
}
"""Environments whose name is printed before their text."""
SYMBOLS = {
    "ldots": "\u2026",
    "dots": "\u2026",
    "textellipsis": "\u2026",
    "cdots": "\u22ef",
    "LaTeX": "LaTeX",
    "TeX": "TeX",
    "BibTeX": "BibTeX",
    "LaTeXe": "LaTeX2e",
    "ss": "\u00df",
    "ae": "\u00e6",
    "AE": "\u00c6",
    "oe": "\u0153",
    "OE": "\u0152",
    "o": "\u00f8",
    "O": "\u00d8",
    "aa": "\u00e5",
    "AA": "\u00c5",
    "l": "\u0142",
    "L": "\u0141",
    "i": "i",
    "j": "j",
    "dh": "\u00f0",
    "th": "\u00fe",
    "dag": "\u2020",
    "ddag": "\u2021",
    "S": "\u00a7",
    "P": "\u00b6",
    "copyright": "\u00a9",
    "pounds": "\u00a3",
    "euro": "\u20ac",
    "textdegree": "\u00b0",
    "degree": "\u00b0",
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textbar": "|",
    "textless": "<",
    "textgreater": ">",
    "textquotedbl": '"',
    "textbullet": "\u2022",
    "textendash": "\u2013",
    "textemdash": "\u2014",
    "textregistered": "\u00ae",
    "slash": "/",
    "texttrademark": "\u2122",
    "guillemotleft": "\u00ab",
    "guillemotright": "\u00bb",
    "og": "\u00ab",
    "fg": "\u00bb",
    "quad": " ",
    "qquad": " ",
    "space": " ",
    "textquoteright": "\u2019",
    "textquoteleft": "\u2018",
    "lq": "\u2018",
    "rq": "\u2019",
    "par": "\n\n",
    "newline": "\1",
    "linebreak": "\1",
    "newpage": "\n\n",
    "clearpage": "\n\n",
    "bigskip": "\n\n",
    "medskip": "\n\n",
    "smallskip": "\n\n",
    "hline": "",
    "today": "",
    "and": ", ",
    "smiley": ":-)",
}
ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "k": "\u0328",
    "r": "\u030a", "b": "\u0331", "d": "\u0323",
}  # fmt: skip
