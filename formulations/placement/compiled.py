"""How the searches for placements are compiled: without Python's lock."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import cast

import numba

from formulations.compiled import Function, cached_entry


def part(function: Function) -> Function:
    """Compile a function that other compiled ones call; it is kept on disk with those only."""
    return cast(Function, numba.njit(nogil=True)(function))


def entry(*modules: ModuleType) -> Callable[[Function], Function]:
    """Compile a function that Python calls, with what it calls in ``modules``."""
    return cached_entry(*modules, nogil=True)
