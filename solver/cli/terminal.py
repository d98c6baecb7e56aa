"""Standard output for results, standard error for progress, and what Ctrl-C does."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from instances.numbers import share_text, time_text
from solver.incumbent import Incumbent


def show(*parts: RenderableType) -> None:
    """Print tables and lines on standard output; a string is taken as it is, without markup, and never wrapped."""
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    with console.capture() as printed:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
    show_text("\n".join(line.rstrip() for line in printed.get().rstrip("\n").split("\n")))


def show_json(data: Any) -> None:
    """Print plain data as JSON on standard output."""
    show_text(json.dumps(data, indent=1, allow_nan=False))


def show_text(text: str) -> None:
    """Print text on standard output, never wrapped."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Progress:
    """What a run is doing, as one line: phase, elapsed time, value, bound, gap."""

    def __init__(self) -> None:
        self.phase = "start"
        self.incumbent: Incumbent | None = None

    def note(self, line: str) -> None:
        """A part of the work starts."""
        self.phase = line

    def listen(self, incumbent: Incumbent) -> None:
        """Value or bound became better."""
        self.incumbent = incumbent

    def __rich__(self) -> Text:
        best = self.incumbent
        if best is None:
            return Text(self.phase)
        parts = [
            f"{best.deadline.elapsed_s:.0f} s",
            self.phase,
            f"value {time_text(best.value)}",
            f"bound {time_text(best.bound)}",
            f"gap {share_text(best.gap)}",
        ]
        return Text(" | ".join(parts), no_wrap=True, overflow="ellipsis")


@contextmanager
def progress() -> Iterator[Progress]:
    """Show progress on standard error while the block runs, if that is a terminal."""
    state = Progress()
    if not sys.stderr.isatty():
        yield state
        return
    console = Console(file=sys.stderr, markup=False, highlight=False, emoji=False)
    with Live(state, console=console, transient=True, redirect_stdout=False, redirect_stderr=False):
        yield state


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C, and a request to terminate, a KeyboardInterrupt, even where a script started us in the background.

    The second one is raised where the first is being handled, and so ends the command at once.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
