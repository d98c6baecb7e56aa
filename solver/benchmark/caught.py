"""Exceptions as words: whatever goes wrong in a run is a record, and no reason to end the benchmark."""

from __future__ import annotations

import traceback
from contextlib import AbstractContextManager
from types import TracebackType

_FRAMES = 3


class Caught(AbstractContextManager["Caught"]):
    """Keeps an exception that ends its block as words, in ``error``.

    Parameters
    ----------
    letting
        Exceptions that go on; what is no ``Exception``, as an interruption, does so anyway.
    """

    def __init__(self, *letting: type[Exception]) -> None:
        self._letting = letting
        self.error: str | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._letting):
            return False
        frames = traceback.extract_tb(trace)[-_FRAMES:]
        places = ", ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames)
        self.error = f"{type(error).__name__}: {error} (at {places})"
        return True
