"""Texts beside the corpus that it is compared with: evaluation items and external documents.

Both are frozen once documents that were compared with them are published.
"""

from __future__ import annotations

from dataclasses import dataclass

from assets.dedup.decontaminate import PublishedIndex, prepare_index
from assets.dedup.external import ExternalSet, prepare_external
from assets.dedup.generation import STAGE
from assets.dedup.signatures import signature_spec
from assets.errors import PinnedRootError
from assets.manifest import Manifest
from assets.root import Root
from assets.settings.schema import Settings
from olmo_loader.dataset_file import DATASET_FILE


@dataclass(frozen=True, kw_only=True, slots=True)
class SetsBeside:
    """Texts beside the corpus that it is compared with."""

    index: PublishedIndex | None
    """Evaluation items."""
    external: ExternalSet | None

    @property
    def identities(self) -> dict[str, str]:
        """Return what each is made of, as it stands in the entry of a generation."""
        found = {"evaluation_sets": self.index, "external_sets": self.external}
        return {name: item.sha256 for name, item in found.items() if item is not None}


def prepare_sets(root: Root, settings: Settings) -> SetsBeside:
    """Make and publish what the configuration names, if it is not there.

    Raises:
        ConfigurationError: a set cannot be read, or nothing of it can be used.
        LandingError: a file lies outside the folders that may be read.
    """
    dedup = settings.dedup
    external = prepare_external(root, settings, dedup.against, signature_spec(dedup))
    return SetsBeside(index=prepare_index(root, settings), external=external)


def check_sets_unchanged(root: Root, sets: SetsBeside) -> None:
    """Refuse sets that changed after something was published that was compared with the old ones.

    Raises:
        PinnedRootError: the files of a set are others than before.
    """
    if not sets.identities or root.storage.size(f"dataset/{DATASET_FILE}") is None:
        return
    what = {
        "evaluation_sets": ("evaluation items", "dedup.decontaminate.sets"),
        "external_sets": ("external documents", "dedup.against"),
    }
    for entry in Manifest.load(root, STAGE).entries():
        for name, identity in sets.identities.items():
            if entry.statistics.get(name, identity) != identity:
                texts, setting = what[name]
                raise PinnedRootError(
                    f"{root.url} has published documents that were compared with other {texts}: "
                    f"the files of {setting} have changed; set them back, or make another data set "
                    "beside this one: olmo-data run --config CONFIG --root NEW_ROOT"
                )
