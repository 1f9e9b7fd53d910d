"""`olmo-data explain DOC_ID`: what happened to one document, stage by stage."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import Any

from assets.catalog.explain import Chapter, Explainer, parse_doc_id
from assets.data_platform import open_platform
from dagster_project.command_line.terminal import escape, say


def execute(arguments: argparse.Namespace) -> int:
    """Print the chapters of the document's life."""
    doc_id = parse_doc_id(arguments.doc_id)
    platform = open_platform(arguments.config, root=arguments.root, writable=False)
    explainer = Explainer(platform.root, platform.settings)
    chapters = explainer.explain(doc_id, with_text=arguments.text)
    if arguments.json:
        said = [dataclasses.asdict(chapter) for chapter in chapters]
        say(json.dumps(said, default=str, indent=2, ensure_ascii=True))
        return 0
    say(f"Document {doc_id.hex()}")
    for chapter in chapters:
        say(_chapter(chapter))
    return 0


def _chapter(chapter: Chapter) -> str:
    lines = [f"\n{chapter.stage}: {chapter.what}"]
    for name, value in chapter.facts.items():
        if value is not None:
            lines.append(f"  {name.replace('_', ' '):22} {_shown(value)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,d}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return escape(str(value)).replace("\n", "\n" + " " * 25)
