"""How the functions of the event loop are compiled."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

import numba

from formulations.compiled import Function, cached_entry


def compiled(function: Function) -> Function:
    """Compile a part of the loop: a function that is given arrays, and neither makes nor returns any.

    Counting references to the arrays would take longer than the function itself, so that is switched off (``_nrt``).
    """
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
    return cast(Function, numba.njit(**options)(function))


def compiled_entry(*parts: ModuleType) -> Callable[[Function], Function]:
    """Compile the function that Python calls, and keep it on disk with all that it calls in ``parts``."""
    return cached_entry(*parts, error_model="numpy")
