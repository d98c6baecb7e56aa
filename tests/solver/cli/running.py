"""Runs commands: in this process, or as a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from solver.cli.app import app
from tests.shared_data import REPOSITORY


@dataclass(frozen=True)
class Outcome:
    """What a command answered and printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON; fails if there is anything else on it."""
        return json.loads(self.out)


def waferplan(*arguments: str | Path, columns: int = 80) -> Outcome:
    """Run a command in this process; an exception that it should have caught is raised here."""
    environment = {"COLUMNS": str(columns), "FORCE_COLOR": None, "NO_COLOR": None}
    result = CliRunner().invoke(app, [str(part) for part in arguments], prog_name="waferplan", env=environment)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def start(*arguments: str | Path, cwd: Path, **streams: Any) -> subprocess.Popen[str]:
    """Start a command as a process of its own, in a folder where nothing may appear unasked."""
    path = os.pathsep.join(part for part in (str(REPOSITORY), os.environ.get("PYTHONPATH", "")) if part)
    return subprocess.Popen(
        [sys.executable, "-m", "solver", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for a process."""
    with process:
        out, err = process.communicate(timeout=120)
    return Outcome(process.returncode, out or "", err or "")
