"""The values that a program document is made of: lists, dies, counts, exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NoReturn

from instances.errors import InputError
from instances.mesh import Die


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
    return as_count(pair[0], field), as_count(pair[1], field)


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
    positive: bool = False,
) -> Fraction:
    """The decimal as written: 0.1 is one tenth, not the nearest double."""
    kind = "a finite number"
    if low is not None:
        kind += " greater than 0" if positive else f" of at least {low}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        _refuse(value, field, kind)
    number = Fraction(str(value))
    if (low is not None and number < low) or (positive and number == 0):
        _refuse(value, field, kind)
    return number


def _refuse(value: object, field: str, allowed: str) -> NoReturn:
    raise InputError(field, value, allowed)
