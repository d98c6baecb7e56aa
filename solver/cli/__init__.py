"""The command ``waferplan``: parse, call the library, print."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and exit.

    Everything else is imported after the first line, so that Ctrl-C is quiet from the start.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    importlib.import_module("solver.cli.app").app()
    sys.exit(0)  # not reached: the application exits itself


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End at once: an exception could surface anywhere, even as a broken import of an extension module.

    Commands with something to save handle the signal themselves while they run.
    """
    os._exit(128 + number)
