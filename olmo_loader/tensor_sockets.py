"""Whether a worker process of torch's ``DataLoader`` can hand its tensors over.

It does so through a Unix socket in the temporary folder. A socket's path has a small limit (``man 7
unix``); beyond it the thread that sends prints an error, the batch is lost and the reader waits
for ever. So it is refused before anything is read.
"""

from __future__ import annotations

import os
from multiprocessing.util import get_temp_dir

import torch.multiprocessing

from olmo_loader.errors import ConfigurationError

_LONGEST_PATH = 107
"""Bytes of a socket's path on Linux, without the zero at its end."""

_NAME = "/listener-12345678"
"""What ``multiprocessing.connection`` puts behind the folder: eight characters at random."""


def check_tensor_sockets() -> None:
    """Called in a worker process, before its first batch.

    Raises:
        ConfigurationError: the temporary folder's name leaves no room for a socket's.
    """
    if torch.multiprocessing.get_sharing_strategy() != "file_descriptor":  # type: ignore[no-untyped-call]
        return
    folder = get_temp_dir()
    if (length := len(os.fsencode(folder + _NAME))) > _LONGEST_PATH:
        raise ConfigurationError(
            f"a worker process of torch's DataLoader hands its tensors over through a socket in "
            f"{folder!r}, whose path would have {length} bytes, more than the {_LONGEST_PATH} that "
            "the system allows: set TMPDIR to a folder with a shorter name, or use num_workers=0 "
            "(olmo_loader reads with threads of its own)"
        )
