"""The programming language of a source file, by its name, then by its first line.

Names of languages are those of GitHub's linguist. An extension that several languages share has the
one that is by far the most frequent in public repositories, or none.
"""

from __future__ import annotations

from pathlib import PurePosixPath

_EXTENSIONS = {
    "Ada": "ada adb ads",
    "Agda": "agda",
    "Assembly": "asm s",
    "AWK": "awk",
    "Batchfile": "bat cmd",
    "C": "c h",
    "C#": "cs csx",
    "C++": "cc cpp cxx c++ hpp hh hxx h++ ipp tpp",
    "Clojure": "clj cljs cljc edn",
    "CMake": "cmake",
    "CoffeeScript": "coffee",
    "Common Lisp": "lisp lsp cl",
    "Coq": "v",
    "Crystal": "cr",
    "CSS": "css",
    "Cuda": "cu cuh",
    "Cython": "pyx pxd pxi",
    "D": "d",
    "Dart": "dart",
    "Elixir": "ex exs",
    "Elm": "elm",
    "Emacs Lisp": "el",
    "Erlang": "erl hrl",
    "F#": "fs fsx fsi",
    "Fortran": "f f77 f90 f95 f03 for",
    "GLSL": "glsl frag vert",
    "Go": "go",
    "Groovy": "groovy gradle",
    "Haskell": "hs lhs",
    "HCL": "tf hcl",
    "Idris": "idr",
    "Isabelle": "thy",
    "Java": "java",
    "JavaScript": "js mjs cjs jsx",
    "Julia": "jl",
    "Jupyter Notebook": "ipynb",
    "Kotlin": "kt kts",
    "Lean": "lean",
    "Less": "less",
    "Lua": "lua",
    "Makefile": "mk mak",
    "Mathematica": "nb wl",
    "MATLAB": "matlab",
    "Nim": "nim",
    "Nix": "nix",
    "Objective-C": "m",
    "Objective-C++": "mm",
    "OCaml": "ml mli",
    "Pascal": "pas pp dpr",
    "Perl": "pl pm t",
    "PHP": "php phtml",
    "PowerShell": "ps1 psm1",
    "Prolog": "prolog",
    "Protocol Buffer": "proto",
    "PureScript": "purs",
    "Python": "py pyi pyw",
    "R": "r",
    "Racket": "rkt",
    "Ruby": "rb rake gemspec",
    "Rust": "rs",
    "Sass": "sass",
    "Scala": "scala sc sbt",
    "Scheme": "scm ss",
    "SCSS": "scss",
    "Shell": "sh bash zsh ksh fish",
    "Solidity": "sol",
    "SPARQL": "sparql rq",
    "SQL": "sql",
    "Standard ML": "sml",
    "Starlark": "bzl star",
    "Svelte": "svelte",
    "Swift": "swift",
    "SystemVerilog": "sv svh",
    "Tcl": "tcl",
    "Thrift": "thrift",
    "TypeScript": "ts tsx mts cts",
    "Verilog": "verilog",
    "VHDL": "vhd vhdl",
    "Vim Script": "vim",
    "Visual Basic .NET": "vb",
    "Vue": "vue",
    "WebAssembly": "wat",
    "Zig": "zig",
}
_BY_EXTENSION = {
    name: language for language, names in _EXTENSIONS.items() for name in names.split()
}
_BY_NAME = {
    "makefile": "Makefile",
    "gnumakefile": "Makefile",
    "dockerfile": "Dockerfile",
    "cmakelists.txt": "CMake",
    "rakefile": "Ruby",
    "gemfile": "Ruby",
    "build.bazel": "Starlark",
}
_INTERPRETERS = {
    "python": "Python",
    "bash": "Shell",
    "sh": "Shell",
    "dash": "Shell",
    "zsh": "Shell",
    "ksh": "Shell",
    "perl": "Perl",
    "ruby": "Ruby",
    "node": "JavaScript",
    "php": "PHP",
    "awk": "AWK",
    "gawk": "AWK",
    "lua": "Lua",
    "tclsh": "Tcl",
    "make": "Makefile",
    "Rscript": "R",
    "guile": "Scheme",
}
CODE_EXTENSIONS = frozenset(_BY_EXTENSION) - {"t", "v", "s", "d", "f", "sc", "cl", "nb", "pp"}
"""Extensions that name source code beyond doubt, for `format: auto`."""


def is_code_name(name: str) -> bool:
    """Tell whether a file name without a telling extension is one of source code: Makefile."""
    return name.lower() in _BY_NAME


def find_language(path: str, text: str = "") -> str | None:
    """Return the language of the source file at `path` that starts with `text`, None if unknown."""
    name = PurePosixPath(path.replace("\\", "/")).name.lower()
    found = _BY_NAME.get(name)
    if found is None and "." in name:
        found = _BY_EXTENSION.get(name.rpartition(".")[2])
    if found is None and text.startswith("#!"):
        found = _INTERPRETERS.get(_interpreter(text[2:256].split("\n", 1)[0]))
    return found


def _interpreter(command: str) -> str:
    """Return the program of a `#!` line without its folder and version; `env` is looked through."""
    words = [word for word in command.split() if not word.startswith("-")]
    names = [PurePosixPath(word).name.rstrip("0123456789.") for word in words[:2]]
    return names[-1] if names[:1] == ["env"] else next(iter(names), "")
