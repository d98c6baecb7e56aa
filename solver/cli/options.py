"""Values of options from text: every problem is an InputError that names option, value and what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from instances.errors import InputError
from instances.units import SECONDS, TOKENS, parse_quantity

LONGEST_LIMIT_S = 1e6
"""Operating systems wait in milliseconds of 32 bits."""


@contextmanager
def about_option(option: str) -> Iterator[None]:
    """Name the option in an InputError that does not come from a file."""
    try:
        yield
    except InputError as error:
        if error.file:
            raise
        raise InputError(option, error.value, error.allowed) from error


def whole(option: str, text: str, *, least: int, most: int | None = None) -> int:
    """A whole number within limits."""
    allowed = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip()):
        raise InputError(option, text, allowed)
    number = int(text)
    if number < least or (most is not None and number > most):
        raise InputError(option, number, allowed)
    return number


def number_or_none(option: str, text: str | None, *, least: int, most: int | None = None) -> int | None:
    """A whole number within limits, or None where the option is not given."""
    return None if text is None else whole(option, text, least=least, most=most)


def positive(option: str, text: str, *, most: float) -> float:
    """A number in (0, most]."""
    allowed = f"a number greater than 0 and at most {most:g}"
    try:
        number = float(text)
    except ValueError:
        raise InputError(option, text, allowed) from None
    if not 0 < number <= most:
        raise InputError(option, text, allowed)
    return number


def share(option: str, text: str) -> float:
    """A share as a number (0.01) or in percent (1%)."""
    allowed = "a share of at least 0, as 0.01 or 1%"
    stripped = text.strip()
    digits, factor = (stripped[:-1], 0.01) if stripped.endswith("%") else (stripped, 1.0)
    try:
        number = float(digits) * factor
    except ValueError:
        raise InputError(option, text, allowed) from None
    if not (math.isfinite(number) and number >= 0):
        raise InputError(option, text, allowed)
    return number


def time_limit(option: str, text: str) -> float:
    """Seconds, or a time with a unit (10min)."""
    allowed = f"a time greater than 0 and at most {LONGEST_LIMIT_S:g} s, as 60 or 10min"
    try:
        seconds = parse_quantity(text, SECONDS)
    except ValueError:
        raise InputError(option, text, allowed) from None
    if not 0 < seconds <= LONGEST_LIMIT_S:
        raise InputError(option, text, allowed)
    return seconds


def tokens(option: str, text: str) -> int:
    """A number of tokens; k counts 1024."""
    allowed = "a whole number of tokens of at least 1, as 131072 or 128k (k = 1024)"
    try:
        number = parse_quantity(text, TOKENS)
    except ValueError:
        raise InputError(option, text, allowed) from None
    if number != int(number) or number < 1:
        raise InputError(option, text, allowed)
    return int(number)


def grid(option: str, text: str) -> tuple[int, int]:
    """ROWSxCOLUMNS."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text.strip())
    if match is None:
        raise InputError(option, text, "ROWSxCOLUMNS, both at least 1, as 4x4")
    return int(match.group(1)), int(match.group(2))


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE pairs, each name once."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise InputError(option, text, "KNOB=VALUE")
        if name in found:
            raise InputError(option, text, f"each knob at most once; {name} has the value {found[name]!r} already")
        found[name] = value
    return found
