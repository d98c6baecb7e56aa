"""Functions that the tests of `isolated` run in a child process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from instances.errors import InputError


def add(left: int, right: int) -> int:
    return left + right


def noisy() -> str:
    print("on standard output")  # noqa: T201  # must not disturb the parent's
    os.write(1, b"below sys.stdout\n")
    return "quiet"


def import_path() -> list[str]:
    return sys.path


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def count_up(emit: Callable[[Any], None]) -> str:
    for number in range(3):
        emit(number)
    return "done"


def announce_and_sleep(emit: Callable[[Any], None]) -> None:
    emit(os.getpid())
    time.sleep(600)


def announce_family_and_sleep(emit: Callable[[Any], None]) -> None:
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    emit([os.getpid(), grandchild.pid])
    time.sleep(600)


def abort() -> None:
    sys.stderr.write("the engine went wrong\n")
    sys.stderr.flush()
    os.abort()


def leave() -> None:
    sys.exit(7)


def raise_value_error() -> None:
    raise ValueError("no such thing")


class AwkwardError(Exception):
    """Cannot be unpickled: its argument is not what it was made from."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} and {right}")


def raise_awkward_error() -> None:
    raise AwkwardError(1, 2)


def raise_input_error() -> None:
    raise InputError("pipeline.stages", 0, "at least 1")


def large(size: int) -> bytes:
    return bytes(size)


def interrupt_self() -> str:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.05)
    return "not interrupted"
