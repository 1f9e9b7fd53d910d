"""What may be set of the masking of personal data: which kinds, what stands in their place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from assets.settings.checks import require

PiiKind = Literal["email", "phone", "ip_address", "credit_card", "iban", "ssn", "secret"]
KINDS: tuple[PiiKind, ...] = (
    "email",
    "phone",
    "ip_address",
    "credit_card",
    "iban",
    "ssn",
    "secret",
)
"""Kinds that have a structure to be found and checked by."""
NAME = "name"
"""Names of people: found by a model, and only if one is named."""

DEFAULT_REPLACEMENTS = {
    "email": "|||EMAIL_ADDRESS|||",
    "phone": "|||PHONE_NUMBER|||",
    "ip_address": "|||IP_ADDRESS|||",
    "credit_card": "|||CREDIT_CARD|||",
    "iban": "|||IBAN|||",
    "ssn": "|||SSN|||",
    "secret": "|||SECRET|||",
    "name": "|||NAME|||",
}
"""What stands in the place of each kind; the first three are Dolma's."""
MAX_REPLACEMENT_BYTES = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class NameSettings:
    """Masking of people's names by a model for named entities."""

    model: Literal["en_core_web_sm"] = "en_core_web_sm"
    """A spaCy pipeline of the list of allowed ones. It has to be installed: a name neither imports
    nor downloads anything else."""
    max_characters: int = 100_000
    """Longer texts are looked at in pieces of this many characters, cut at a line or a space."""

    def __post_init__(self) -> None:
        require(
            1_000 <= self.max_characters <= 1_000_000,
            f"max_characters: {self.max_characters} is outside [1,000, 1,000,000]",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PiiSettings:
    """Masking of personal data; `cleaning.pii: {}` switches it on with these defaults."""

    kinds: tuple[PiiKind, ...] = KINDS
    replacements: dict[str, str] = field(default_factory=dict)
    """By kind, what stands in its place; kinds that are left out keep their default."""
    drop_above: int | None = None
    """A document with more found values is dropped as `pii_too_many`; null: none is."""
    after_dedup: bool = False
    """Leave the text of `clean` as it is and cut the values out of what `unique` keeps: duplicates
    are then told by the texts as they were written (the order of FineWeb)."""
    phone_regions: tuple[str, ...] = ("US", "GB", "DE", "FR", "IT", "ES")
    """ISO 3166 codes of the countries whose numbers are found without a leading +."""
    names: NameSettings | None = None

    def __post_init__(self) -> None:
        require(
            bool(self.kinds) or self.names is not None,
            "kinds: there is nothing to look for; leave `pii` out to switch it off",
        )
        for kind, text in self.replacements.items():
            require(
                kind in DEFAULT_REPLACEMENTS,
                f"replacements: {kind!r} is not one of {', '.join(DEFAULT_REPLACEMENTS)}",
            )
            size = len(text.encode())
            require(
                size <= MAX_REPLACEMENT_BYTES,
                f"replacements.{kind}: {size} bytes, at most {MAX_REPLACEMENT_BYTES} are allowed",
            )
        require(
            self.drop_above is None or self.drop_above >= 0,
            f"drop_above: {self.drop_above} must be at least 0",
        )
        for region in self.phone_regions:
            require(
                len(region) == 2 and region.isascii() and region.isupper(),
                f"phone_regions: {region!r} is not a code of two capital letters, such as US",
            )

    def replacement(self, kind: str) -> str:
        """Return what stands in the place of a kind."""
        return self.replacements.get(kind, DEFAULT_REPLACEMENTS[kind])
