"""How compiled functions that span several files are kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def name_with_sources(name: str, modules: Iterable[ModuleType]) -> str:
    """A name that changes with the sources of `modules`."""
    digest = hashlib.sha256()
    for module in modules:
        path = Path(getattr(module, "__file__", None) or "")
        digest.update(path.read_bytes() if path.is_file() else b"")
    return f"{name}_{digest.hexdigest()[:16]}"


def cached_entry(*modules: ModuleType, **options: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls, and keep it on disk together with what it calls in other files.

    Numba's cache looks at no file but the function's own, so the name under which it is kept carries a hash of the
    sources of `modules`: an edit there is not missed. ``options`` are those of ``numba.njit``.
    """

    def compile_cached(function: Function) -> Function:
        function.__qualname__ = name_with_sources(function.__name__, modules)
        try:
            return cast(Function, numba.njit(cache=True, **options)(function))
        except RuntimeError:
            # Neither the source folder nor the user's cache folder can be written: compile anew in each process.
            return cast(Function, numba.njit(**options)(function))

    return compile_cached
