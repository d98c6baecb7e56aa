"""Keeps an engine's own printing off standard output, where results go."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STANDARD_OUTPUT = 1


@contextmanager
def standard_output_turned_away() -> Iterator[None]:
    """Send what C code writes to file descriptor 1 to the null device.

    Works below `sys.stdout`, for the whole process: keep the block short.
    """
    sys.stdout.flush()
    try:
        kept = os.dup(STANDARD_OUTPUT)
    except OSError:  # standard output is closed: nothing to protect
        yield
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, STANDARD_OUTPUT)
        yield
    finally:
        # What C has buffered would come out later, on the restored descriptor.
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, STANDARD_OUTPUT)
        os.close(kept)
        os.close(null)
