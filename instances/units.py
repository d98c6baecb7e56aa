"""Quantities in JSON: a number in the base unit, or a string with a unit.

Base units are seconds, bytes, tokens and FLOPs. Decimal prefixes are powers of 1000, binary ones powers of 1024
(specification, introduction).
"""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*?)?\s*")


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
    if isinstance(value, bool):
        raise ValueError(example)
    if isinstance(value, int | float):
        number, factor = float(value), 1.0
    elif isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise ValueError(example)
        unit = match.group(2)
        if unit is not None and unit not in units:
            raise ValueError(example)
        number, factor = float(match.group(1)), units[unit] if unit is not None else 1.0
    else:
        raise ValueError(example)
    # Divide by the exact power of ten: 50 * 1e-9 is not the double nearest to 50 ns, 50 / 1e9 is.
    result = number * factor if factor >= 1.0 else number / round(1.0 / factor)
    if not math.isfinite(result):
        raise ValueError("a finite number")
    return result


def _quantity(units: dict[str, float], *, positive: bool) -> BeforeValidator:
    def read(value: object) -> float:
        number = parse_quantity(value, units)
        if number < 0 or (positive and number == 0):
            raise ValueError("a number greater than 0" if positive else "a number of at least 0")
        return number

    return BeforeValidator(read)


def _whole_tokens(value: object) -> int:
    number = parse_quantity(value, TOKENS)
    if number != int(number) or number < 0:
        raise ValueError("a whole number of tokens, at least 0 (k = 1024 tokens)")
    return int(number)


Seconds = Annotated[float, _quantity(SECONDS, positive=False)]
Bytes = Annotated[float, _quantity(BYTES, positive=True)]
BytesPerSecond = Annotated[float, _quantity(BYTES_PER_S, positive=True)]
FlopsPerSecond = Annotated[float, _quantity(FLOPS_PER_S, positive=True)]
Tokens = Annotated[int, BeforeValidator(_whole_tokens)]
