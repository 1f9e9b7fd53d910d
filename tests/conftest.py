"""How thorough the property tests are: HYPOTHESIS_PROFILE is dev (default), ci or deep."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: a test that syncs a file takes as long as the disk takes.
settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True)
settings.register_profile("deep", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
