"""The errors of the platform; each message names what was asked, what is, and what to do.

::

    DataPlatformError            anything this platform refuses or cannot finish
    |-- ConfigurationError       the configuration is wrong (also a ValueError)
    |   `-- PinnedRootError      it would change bytes that a root has already published
    |-- LandingError             landed files cannot be listed or told apart
    |-- RootError                a root cannot be read or written
    |-- IntegrityError           stored bytes are not what their record says
    `-- StageError               a stage could not finish its work
        `-- LossLimitError       a source lost more than its limit allows
"""

from __future__ import annotations


class DataPlatformError(Exception):
    """Base of every error a user of the platform can meet."""


class ConfigurationError(DataPlatformError, ValueError):
    """A configuration file, or a combination of its values, is wrong."""


class PinnedRootError(ConfigurationError):
    """The configuration would change bytes that a root has already published."""


class LandingError(DataPlatformError):
    """The landed files of a source cannot be listed, read or told apart."""


class RootError(DataPlatformError):
    """A root is missing, not writable, or in use in a way that cannot go on."""


class IntegrityError(DataPlatformError):
    """Stored bytes differ from what their record says."""


class StageError(DataPlatformError):
    """A stage could not finish its work."""


class LossLimitError(StageError):
    """A source lost more than `limits` allows."""
