"""What a run ran on: versions, processor, revision of the sources."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("waferplan", "ortools", "highspy", "pulp", "numpy", "numba")
_SOURCES = Path(__file__).parents[2]


@dataclass(frozen=True)
class Environment:
    """Facts about this process and machine; None where they cannot be told."""

    versions: dict[str, str]
    cpu: str | None
    revision: str | None


def environment() -> Environment:
    """Look everything up."""
    versions = {name: version for name in PACKAGES if (version := package_version(name)) is not None}
    return Environment({**versions, "python": platform.python_version()}, cpu(), revision())


def package_version(name: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu() -> str | None:
    """Model of the processor and number of cores that this process may use."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {usable_cores()} cores" if model else None


def revision() -> str | None:
    """Git revision of the sources, with ``+changes`` if they differ from it; None outside a repository."""
    head = _git("rev-parse", "--short=12", "HEAD")
    if head is None or _git("ls-files", "--error-unmatch", "solver/__init__.py") is None:
        return None
    return f"{head}+changes" if _git("status", "--porcelain", "--", "*.py") else head


def _git(*arguments: str) -> str | None:
    """Output of a git command in the folder of the sources; None if it fails."""
    command = ["git", "-C", str(_SOURCES), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
