"""Quantities in JSON: a number in the base unit, or a string with a unit.

Base units are seconds, bytes, tokens and FLOPs. Decimal prefixes are powers of 1000, binary ones powers of 1024
(specification, introduction).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
# Keyboards and fonts know two micro signs: the symbol (U+00B5) and the Greek letter (U+03BC).
_TIME = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
    "min": 60.0,
    "h": 3600.0,
}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")

LONGEST_S = 1e6
"""Longest time a document may hold, 11 days: the replay counts picoseconds in 64 bits, which end after 106 days."""
MOST_BYTES = 1e18
"""An exabyte: the replay counts bytes, or parts of them, in 62 bits."""
SLOWEST, FASTEST = 1.0, 1e24
"""Bytes or FLOPs per second; inside these, times of all sizes stay far from the ends of doubles."""
MOST_TOKENS = 2**40
"""Far above any context; keeps whole numbers of tokens exact."""


def _byte_units(suffix: str = "") -> dict[str, float]:
    return {f"{prefix}B{suffix}": factor for prefix, factor in {**_DECIMAL, **_BINARY}.items()}


SECONDS = dict(_TIME)
BYTES = _byte_units()
BYTES_PER_S = _byte_units("/s")
FLOPS_PER_S = {f"{prefix}{name}": factor for prefix, factor in _DECIMAL.items() for name in ("FLOP/s", "FLOPS")}
TOKENS = {"tokens": 1.0, "k": 1024.0, "K": 1024.0, "Ki": 1024.0, "M": 1024.0**2, "Mi": 1024.0**2}


def parse_quantity(value: object, units: dict[str, float]) -> float:
    """Read a finite number in base units from a JSON number or a string with one of ``units``.

    Raises
    ------
    ValueError
        With the units that are allowed, for any other value: wrong unit, NaN, infinity, a Boolean.
    """
    example = f"a number in the base unit or a string with a unit ({', '.join(list(units)[:8])}, ...)"
    text, factor = "", 1.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and (match := _NUMBER.fullmatch(value)) is not None:
        text, unit = match.group(1), match.group(2)
        if unit is not None and unit not in units:
            raise ValueError(example)
        number, factor = float(text), units[unit] if unit is not None else 1.0
    else:
        raise ValueError(example)
    try:
        finite = math.isfinite(number * factor)
    except OverflowError:  # a whole number beyond the range of doubles
        finite = False
    if not finite:
        raise ValueError("a finite number")
    if factor == 1.0 or number == 0:
        return float(number) + 0.0  # no negative zero
    # Exact until the one rounding at the end: 50 * 1e-9 is not the double nearest to 50 ns, nor 64.4 * 1e9 to 64.4 GB.
    exact = Fraction(int(factor)) if factor > 1.0 else Fraction(1, round(1.0 / factor))
    return float(Fraction(text) * exact)


def _quantity(units: dict[str, float], *, positive: bool, least: float = 0.0, most: float) -> BeforeValidator:
    def read(value: object) -> float:
        number = parse_quantity(value, units)
        if number < 0 or (positive and number == 0):
            raise ValueError("a number greater than 0" if positive else "a number of at least 0")
        if number < least:
            raise ValueError(f"a number of at least {least:g}")
        if number > most:
            raise ValueError(f"a number of at most {most:.0f}" if most < 1e9 else f"a number of at most {most:.0e}")
        return number

    return BeforeValidator(read)


def _whole_tokens(value: object) -> int:
    number = parse_quantity(value, TOKENS)
    if not (number.is_integer() and 0 <= number <= MOST_TOKENS):
        raise ValueError(f"a whole number of tokens from 0 to {MOST_TOKENS} (k = 1024 tokens)")
    return int(number)


Seconds = Annotated[float, _quantity(SECONDS, positive=False, most=LONGEST_S)]
Bytes = Annotated[float, _quantity(BYTES, positive=True, most=MOST_BYTES)]
BytesPerSecond = Annotated[float, _quantity(BYTES_PER_S, positive=True, least=SLOWEST, most=FASTEST)]
FlopsPerSecond = Annotated[float, _quantity(FLOPS_PER_S, positive=True, least=SLOWEST, most=FASTEST)]
Tokens = Annotated[int, BeforeValidator(_whole_tokens)]
