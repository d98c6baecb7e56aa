"""Numbers for people: few digits, a unit that suits them, a dash where they are unknown."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = "–"
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True)
class Unit:
    """A unit for a whole axis: ``size`` base units."""

    size: float
    name: str


def time_unit(largest_s: float) -> Unit:
    """Unit of an axis that reaches so many seconds."""
    size, name = next((pair for pair in _TIMES if largest_s >= pair[0]), _TIMES[-1])
    return Unit(size, name)


def byte_unit(largest_bytes: float) -> Unit:
    """Unit of an axis that reaches so many bytes."""
    size, prefix = next((pair for pair in _PREFIXES if largest_bytes >= pair[0]), _PREFIXES[-1])
    return Unit(size, f"{prefix}B")


def time_text(value_s: float | None) -> str:
    """Five significant digits of a time."""
    if value_s is None:
        return UNKNOWN
    unit = time_unit(abs(value_s)) if value_s else Unit(1.0, "s")
    return f"{digits(value_s / unit.size)} {unit.name}"


def given_time_text(value_s: float) -> str:
    """A time that somebody wrote down: without zeros at its end."""
    unit = time_unit(value_s) if value_s else Unit(1.0, "s")
    return f"{value_s / unit.size:.6g} {unit.name}"


def byte_text(value: float | None, unit: str = "B", *, aligned: bool = False) -> str:
    """Four significant digits of bytes and the like, decimal prefixes.

    Parameters
    ----------
    unit
        What is counted; may be empty.
    aligned
        Zeros at the end are kept, as columns of a terminal want it; whole numbers without a prefix have none.
    """
    if value is None:
        return UNKNOWN
    size, prefix = next((pair for pair in _PREFIXES if abs(value) >= pair[0]), _PREFIXES[-1])
    shown = value / size
    if abs(shown) >= 1e4 or (size == 1 and value == int(value)):
        number = f"{shown:.0f}"
    else:
        number = f"{shown:#.4g}".rstrip(".") if aligned else f"{shown:.4g}"
    return f"{number} {prefix}{unit}".rstrip()


def share_text(part: float | None, *, signed: bool = False) -> str:
    """A share in percent, two decimals; what is smaller but not zero says so."""
    if part is None:
        return UNKNOWN
    shown = 100 * part
    if 0 < abs(shown) < 0.005:
        return "<0.01 %" if shown > 0 else ">-0.01 %"
    return f"{shown:+.2f} %" if signed and round(shown, 2) else f"{shown:.2f} %"


def count_text(number: float | None) -> str:
    """A whole number with thin spaces between the thousands."""
    return UNKNOWN if number is None else f"{number:,.0f}".replace(",", "\u202f")


def digits(value: float) -> str:
    """Five significant digits, and never scientific notation for what a person reads as a number."""
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.5g}"
    if abs(value) >= 1e5:
        return f"{value:.0f}"
    return f"{value:#.5g}".rstrip(".")
