"""Write the report and the prompt of a root into a folder."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from assets.errors import RootError
from assets.report_page.figures import Figures, read_figures
from assets.report_page.page import render_page
from assets.report_page.prompt import render_prompt
from assets.root import Root
from assets.settings.schema import Settings

PAGE = "report.html"
PROMPT = "prompt-data-quality-checker.md"


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What was written, and what is in it."""

    page: Path
    prompt: Path
    figures: Figures


def write_report(root: Root, settings: Settings, folder: Path) -> Written:
    """Write `report.html` and `prompt-data-quality-checker.md`; the same root gives the same bytes.

    Raises:
        IntegrityError: a record or part of the root is damaged.
        RootError: the files cannot be written.
    """
    figures = read_figures(root, settings)
    files = {PAGE: render_page(figures), PROMPT: render_prompt(figures)}
    for name, text in files.items():
        _replace(folder / name, text)
    return Written(page=folder / PAGE, prompt=folder / PROMPT, figures=figures)


def _replace(path: Path, text: str) -> None:
    """Write a file whole: a reader sees the old one or the new one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        raise RootError(f"{path} cannot be written: {error}") from error
