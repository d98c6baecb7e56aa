"""How the functions of the event loop are compiled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a part of the loop: a function that is given arrays, and neither makes nor returns any.

    Counting references to the arrays would take longer than the function itself, so that is switched off (``_nrt``).
    """
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
    return cast(Function, numba.njit(**options)(function))


def compiled_entry(*parts: ModuleType) -> Callable[[Function], Function]:
    """Compile the function that Python calls, and keep it on disk with all that it calls in ``parts``.

    Numba's cache looks only at the file of the function itself. The name under which it keeps the function therefore
    carries a hash of the sources of ``parts``, so that an edit there is not missed.
    """

    def compile_cached(function: Function) -> Function:
        function.__qualname__ = f"{function.__name__}_{_digest(parts)}"
        try:
            return cast(Function, numba.njit(cache=True, error_model="numpy")(function))
        except RuntimeError:
            # Neither the source folder nor the user's cache folder can be written: compile anew in each process.
            return cast(Function, numba.njit(error_model="numpy")(function))

    return compile_cached


def _digest(parts: tuple[ModuleType, ...]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        path = Path(part.__file__ or "")
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:16]
