"""The values that a program document is made of: lists, dies, counts, exact numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from instances.errors import InputError
from instances.hardware import MAX_DIES
from instances.mesh import Die

LONGEST = Fraction(10**6)
"""Seconds; see ``instances.units.LONGEST_S``."""
MOST_BYTES = Fraction(2**61)
SLOWEST, FASTEST = Fraction(1, 10**9), Fraction(10**30)
"""Bytes per second; inside these, times of any amounts stay far from the ends of doubles."""


def as_list(value: object, field: str) -> list[Any]:
    """A list."""
    if not isinstance(value, list | tuple):
        raise InputError(field, value, "a list")
    return list(value)


def as_die(value: object, field: str) -> Die:
    """A position [row, column]."""
    pair = as_list(value, field)
    if len(pair) != 2:
        raise InputError(field, value, "[row, column]")
    return as_count(pair[0], field, high=MAX_DIES - 1), as_count(pair[1], field, high=MAX_DIES - 1)


def as_count(value: object, field: str, *, low: int = 0, high: int | None = None) -> int:
    """A whole number from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        raise InputError(field, value, f"a whole number from {low}" + ("" if high is None else f" to {high}"))
    return value


def as_number(
    value: object,
    field: str,
    *,
    low: Fraction | None = Fraction(0),
    high: Fraction,
) -> Fraction:
    """The decimal as written, 0.1 is one tenth, not the nearest double; ``low`` of None allows down to -``high``."""
    low = -high if low is None else low
    # Compared as it is, before anything else: a whole number may be too long for a double. NaN compares false.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise InputError(field, value, f"a finite number from {float(low):g} to {float(high):g}")
    return Fraction(str(value))
