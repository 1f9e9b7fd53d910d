"""The errors of the loader, in one tree.

Each message names the file, what was found and what to do.

::

    LoaderError
    |-- ConfigurationError (ValueError)       arguments that cannot work
    |   |-- NotInThisVersion (NotImplementedError)  it comes with a later version
    |   |-- UnknownPlanError                  the data set has no plan of that id
    |   |-- DtypeError (TypeError)            no type of numpy's, or none for token ids
    |   `-- BatchShapeError (AssertionError)  sizes that do not divide by the number of ranks
    |-- IntegrityError                        bytes are not what header, index or plan say
    |   |-- ShortReadError (OSError)          a file ended before the bytes asked for
    |   `-- MissingFileError (FileNotFoundError)  a file that is named is not there
    |-- ReadError (OSError)                   bytes cannot be had: disk, network, server
    |-- StateError (ValueError)               a state of other data, another plan or shape
    |-- PlanExhausted                         a plan of one pass has been read to its end
    `-- WorkerError (RuntimeError)            a reading thread or process died, or hangs

This module imports nothing.
"""

from __future__ import annotations


class LoaderError(Exception):
    """Base of every error that the loader raises itself."""


class ConfigurationError(LoaderError, ValueError):
    """An argument, or a combination of arguments, that cannot work."""


class NotInThisVersion(ConfigurationError, NotImplementedError):  # noqa: N818 - reads as the sentence it prints
    """A value that a later version will understand."""


class UnknownPlanError(ConfigurationError):
    """A plan that the data set does not have, or not any more."""


class DtypeError(ConfigurationError, TypeError):
    """A name that is no numpy type, or a type that holds no token ids."""


class BatchShapeError(ConfigurationError, AssertionError):
    """A batch size or number of examples that does not divide by the number of ranks."""


class IntegrityError(LoaderError):
    """Bytes on disk differ from what their header, index record or plan says."""


class ShortReadError(IntegrityError, OSError):
    """A file ended before the bytes that were asked for."""


class MissingFileError(IntegrityError, FileNotFoundError):
    """A file that a plan, a header or the caller names is not there, or not there any more."""


class ReadError(LoaderError, OSError):
    """Bytes cannot be had now: a disk's error, a network's, or a server's, after all attempts."""


class StateError(LoaderError, ValueError):
    """A loader state that does not fit this data set, plan or batch shape."""


class PlanExhausted(LoaderError):  # noqa: N818 - reads as the sentence it prints
    """A plan that is one pass (extended, or a mixture) has no further epoch."""


class WorkerError(LoaderError, RuntimeError):
    """A reading thread or process ended without a result, or does not answer in time."""
