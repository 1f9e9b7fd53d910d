"""The resource `platform`: which configuration, and with it which root, a run works on."""

from __future__ import annotations

import dagster as dg
from typing_extensions import override

from assets.data_platform import OpenPlatform, open_for_run, open_platform
from dagster_project.run_tags import process_tag


class PlatformResource(dg.ConfigurableResource[None]):
    """Opens the configuration and its root; both can be changed for one run in the launchpad."""

    config: str
    """Path of the configuration file."""
    root: str = ""
    """Another root than the configuration's; empty for the configuration's own."""
    processes: int = 0
    """Worker processes; 0 for the configuration's number."""

    @override
    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Note on the run which process works on it."""
        if context.instance is not None and context.run is not None:
            context.instance.add_run_tags(context.run.run_id, process_tag())

    def open(self) -> OpenPlatform:
        """Load the configuration, open its root for writing, and check its tokenizer."""
        return open_for_run(self.config, root=self.root or None, processes=self.processes or None)

    def open_for_look(self) -> OpenPlatform:
        """Load the configuration and open its root; what it asks for is checked by the runs."""
        return open_platform(self.config, root=self.root or None, processes=self.processes or None)
