"""The last line of every page: versions."""

from __future__ import annotations

import importlib.metadata
import platform

PACKAGES = ("waferplan", "ortools", "highspy", "numba", "numpy", "vl-convert-python")


def footer_text() -> str:
    """Versions of what computed and drew the page."""
    known = []
    for name in PACKAGES:
        try:
            known.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            known.append(f"{name} (not installed)")
    return f"Made with {', '.join(known)}, Python {platform.python_version()}."
