"""What may be set of the repair of texts."""

from __future__ import annotations

from dataclasses import dataclass

from assets.settings.checks import require


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairSettings:
    """Repairs of prose beyond normalisation, each counted; see `assets.cleaning.repair`."""

    enabled: bool = False
    mojibake: bool = True
    """UTF-8 that was read as Latin-1 or Windows-1252, once or more often, is read right."""
    zero_width: bool = True
    """Invisible characters without a meaning go."""
    spaces: bool = True
    """No-break spaces and others of fixed width become U+0020, U+2028 and U+2029 become LF."""
    nfc: bool = True
    """Unicode normal form C."""
    strip_urls: bool = False
    """Web addresses in the running text are cut out."""
    max_blank_lines: int | None = 1
    """More blank lines than this in a row become so many; null leaves them."""

    def __post_init__(self) -> None:
        most = self.max_blank_lines
        require(most is None or most >= 0, f"max_blank_lines: {most} is negative")
