"""What is taken from the environment: the configuration, its root and Dagster's home.

This module and `assets.sources` (allowed folders, caches) are the only readers of environment
variables; it imports no Dagster, so that the quick commands stay quick.
"""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
CONFIG_VARIABLE = "OLMO_DATA_CONFIG"
ROOT_VARIABLE = "OLMO_DATA_ROOT"
HOME_VARIABLE = "DAGSTER_HOME"
DEFAULT_CONFIG = CHECKOUT / "configs" / "demo.yaml"
DEMO_CORPORA = CHECKOUT / "data" / "demo-corpora"
"""Where the demo's corpora are built; `configs/demo.yaml` names the same folder."""


def default_config() -> str:
    """Return the configuration's path: `OLMO_DATA_CONFIG`, or the demo's."""
    return os.environ.get(CONFIG_VARIABLE) or str(DEFAULT_CONFIG)


def default_root() -> str:
    """Return the root that takes the place of the configuration's: `OLMO_DATA_ROOT`, or empty."""
    return os.environ.get(ROOT_VARIABLE) or ""


def dagster_home() -> Path:
    """Return the folder of Dagster's instance: `DAGSTER_HOME`, or `.dagster` in the checkout."""
    value = os.environ.get(HOME_VARIABLE)
    return Path(value).expanduser().absolute() if value else CHECKOUT / ".dagster"


def export_for_dagster(home: Path, config: str | None = None, root: str | None = None) -> None:
    """Set what Dagster and the processes it starts read from the environment."""
    os.environ[HOME_VARIABLE] = str(home)
    os.environ["DAGSTER_DISABLE_TELEMETRY"] = "yes"
    if config is not None:
        os.environ[CONFIG_VARIABLE] = str(Path(config).absolute())
    if root is not None:
        os.environ[ROOT_VARIABLE] = root if "://" in root else str(Path(root).absolute())
