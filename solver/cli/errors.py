"""Exit codes, and errors as one message on standard error."""

from __future__ import annotations

import sys

import typer

DONE = 0
INFEASIBLE = 1
"""No plan exists, a check fails, a replay deadlocks."""
BAD_INPUT = 2
NO_PLAN = 3
"""Neither a plan nor a proof within the limit."""
INTERRUPTED = 130

_LONGEST = 2000


def complain(message: str) -> None:
    """Print one line on standard error."""
    print(one_line(message), file=sys.stderr)


def one_line(text: str) -> str:
    """The text on one line of printable characters: names in files may hold anything."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def usage_message(error: typer.TyperException, program: str) -> str:
    """What is wrong with a command line, and where to read more."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else program
    return f"{command}: {' '.join(error.format_message().split())} (see {command} --help)"
