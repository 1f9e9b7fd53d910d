"""What may be set of main-text extraction: which extractor, and what a page may cost it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assets.settings.checks import require

Extractor = Literal["resiliparse", "resiliparse_body", "trafilatura", "readability"]
"""How the main text of a page is found; see docs/extraction.md for quality and speed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageLimits:
    """What an HTML page may be before its main text is extracted; beyond, it is quarantined.

    Extraction takes time with depth times size. The defaults keep the worst page to about five CPU
    seconds, seven with readability; real pages are up to 40 deep.
    """

    max_bytes: int = 5 << 20
    """UTF-8 bytes of decoded markup."""
    max_depth: int = 128
    """Elements open at once."""
    max_nodes: int = 80_000
    """Elements, those included that a parser opens again after a block closed them; an element at
    depth d counts as 1 + d // 32."""
    max_cpu_seconds: int = 128
    """CPU time of one page, twenty times what the other limits let it take: a backstop. It is in
    no fingerprint, because a page that ever ran into it keeps that verdict in the root."""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_depth", "max_nodes", "max_cpu_seconds"):
            require(getattr(self, name) >= 1, f"{name}: {getattr(self, name)} must be at least 1")
