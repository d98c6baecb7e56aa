"""Shell scripts that start an engine on one node, in lines that people can read and edit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence


def launch_script(
    says: str, exports: Mapping[str, str], command: Sequence[str], flags: Sequence[tuple[str, ...]]
) -> str:
    """A script: environment, then the command with one flag a line; further arguments are passed on.

    ``command`` is taken as it is, so that it may hold variables of the shell; exports and flags are quoted.
    """
    lines = ["#!/usr/bin/env bash", f"# {says}", "set -euo pipefail", ""]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in exports.items()]
    lines += ["", " ".join(["exec", *command]) + " \\"]
    lines += ["    " + " ".join(_quoted(word) for word in flag) + " \\" for flag in flags]
    return "\n".join([*lines, '    "$@"', ""])


def _quoted(word: str) -> str:
    """Quoted for the shell, but for a variable that has to be filled in."""
    return f'"{word}"' if word.startswith("${") else shlex.quote(word)
