"""Delete what nothing in a root refers to: superseded parts, orphans, task records, leftovers.

What is younger than a day is left alone, because a running task may be about to commit it. What a
manifest, the index, a plan or dataset.json names is never touched.
"""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from assets.errors import ConfigurationError, RootError
from assets.ordering.published import in_dataset, read_published
from assets.root import Root
from assets.storage.local import STAGING
from assets.upkeep.references import TASK_RECORD, Garbage, References, find_garbage
from olmo_loader.dataset_file import DATASET_FILE
from olmo_loader.plan import PLAN_FILE, PLAN_FOLDER

DAY_S = 86_400.0
ATTEMPTS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class GcReport:
    """What nothing refers to, and what became of it."""

    garbage: tuple[Garbage, ...]
    """By name; everything old enough to be deleted."""
    too_young: tuple[Garbage, ...]
    """Named by nothing as well, but left alone."""
    is_deleted: bool

    @property
    def num_bytes(self) -> int:
        """Bytes of `garbage`."""
        return sum(item.size for item in self.garbage)


def gc(
    root: Root,
    *,
    older_than_s: float = DAY_S,
    dry_run: bool = True,
    plan: str | None = None,
) -> GcReport:
    """List what nothing refers to; delete it unless `dry_run`.

    Args:
        root: the root.
        older_than_s: younger objects are left alone.
        dry_run: only list.
        plan: an older plan to give up: its files are garbage whatever their age.

    Raises:
        ConfigurationError: `plan` is the current plan, or there is no such plan.
        IntegrityError: a manifest, the index or dataset.json is damaged; nothing was deleted.
    """
    given_up = _plan_files(root, plan) if plan is not None else []
    if plan is not None and not dry_run:
        _give_up_plan(root, plan)
    found = [item for item in find_garbage(root) if item.name not in {g.name for g in given_up}]
    found += _leftovers(root)
    now = time.time()
    old = [item for item in found if now - _modified_at(root, item.name) >= older_than_s]
    garbage = sorted([*given_up, *old], key=lambda item: item.name)
    young = sorted(set(found) - set(old), key=lambda item: item.name)
    if not dry_run:
        _delete(root, garbage)
    return GcReport(garbage=tuple(garbage), too_young=tuple(young), is_deleted=not dry_run)


def _delete(root: Root, garbage: Iterable[Garbage]) -> None:
    """Delete task records first, so that no run takes up what follows; then look once more."""
    objects = []
    for item in garbage:
        if item.name.endswith(TASK_RECORD) or item.name.startswith(f"{STAGING}/"):
            _remove(root, item.name)
        else:
            objects.append(item)
    references = References.read(root)
    # A plan without plan.json does not exist, so that goes before what it describes.
    for item in sorted(objects, key=lambda item: not item.name.endswith(f"/{PLAN_FILE}")):
        if references.explain(item.name) is not None:
            _remove(root, item.name)


def _remove(root: Root, name: str) -> None:
    path = root.storage.local_path(name)
    if path is not None and path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        root.storage.remove(name)


def _leftovers(root: Root) -> Iterator[Garbage]:
    """Files that killed runs left where objects are made; each entry is one file or workspace."""
    folder = root.storage.local_path(STAGING)
    for path in sorted(folder.iterdir()) if folder is not None and folder.is_dir() else ():
        files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
        yield Garbage(
            name=f"{STAGING}/{path.name}",
            size=sum(item.stat().st_size for item in files),
            reason="left in the making by a run that was killed",
        )


def _modified_at(root: Root, name: str) -> float:
    path = root.storage.local_path(name)
    if path is None:
        raise RootError(f"{root.url}: gc of a remote root is not in this version")
    newest = [path, *path.rglob("*")] if path.is_dir() else [path]
    return max((_mtime(item) for item in newest), default=0.0)


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _plan_files(root: Root, plan: str) -> list[Garbage]:
    published = read_published(root)
    plans = () if published is None else published.file.plans
    if plan not in plans:
        raise ConfigurationError(
            f"{root.url}: there is no plan {plan}; the plans are {', '.join(plans) or 'none'}"
        )
    assert published is not None, "a listed plan was published"
    if plan == published.file.plan:
        raise ConfigurationError(
            f"{root.url}: {plan} is the current plan, which a loader opens; publish another one "
            "(other `ordering`, or new data) before giving it up"
        )
    return [
        Garbage(name=name, size=size, reason=f"plan {plan} is given up")
        for name, size in root.storage.list(in_dataset(f"{PLAN_FOLDER}/{plan}/"))
    ]


def _give_up_plan(root: Root, plan: str) -> None:
    """Take a plan out of dataset.json; its files are garbage from then on."""
    for _ in range(ATTEMPTS):
        _plan_files(root, plan)
        published = read_published(root)
        assert published is not None, "a listed plan was published"
        left = tuple(item for item in published.file.plans if item != plan)
        data = dataclasses.replace(published.file, plans=left).to_bytes()
        name = in_dataset(DATASET_FILE)
        if root.storage.replace(name, data, expected=published.version):
            return
    raise RootError(f"{root.url}: dataset.json was replaced by other runs {ATTEMPTS} times")
