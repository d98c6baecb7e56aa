"""Exported scripts as a shell runs them: a stand-in for the engine says what it was started with."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_STAND_IN = """#!/bin/sh
env > "$STAND_IN_OUT/environment"
printf '%s\\n' "$@" > "$STAND_IN_OUT/arguments"
"""


@dataclass(frozen=True)
class Started:
    """Arguments and environment of the engine."""

    arguments: list[str]
    environment: dict[str, str]

    def value(self, flag: str) -> str:
        """What follows a flag."""
        return self.arguments[self.arguments.index(flag) + 1]


def start(script: Path, tmp_path: Path, *more: str, **variables: str) -> Started:
    """Run a script with ``python`` and ``vllm`` replaced; further arguments and shell variables as given."""
    tools = tmp_path / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("python", "vllm"):
        (tools / name).write_text(_STAND_IN, encoding="utf-8")
        (tools / name).chmod(0o755)
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "STAND_IN_OUT": str(tmp_path), **variables}
    subprocess.run(["bash", str(script), *more], check=True, env=environment, timeout=60)
    lines = (tmp_path / "environment").read_text(encoding="utf-8").splitlines()
    return Started(
        (tmp_path / "arguments").read_text(encoding="utf-8").splitlines(),
        dict(line.split("=", 1) for line in lines if "=" in line),
    )
