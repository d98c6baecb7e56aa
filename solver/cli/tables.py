"""Numbers for people, and the plain look of all tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.table import Table
from rich.text import Text

UNKNOWN = "–"
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def seconds(value: float | None) -> str:
    """A time with five digits and a unit that suits it."""
    if value is None:
        return UNKNOWN
    size, unit = next(((size, unit) for size, unit in _TIMES if abs(value) >= size), (1.0, "s"))
    return f"{digits(value / size)} {unit}"


def digits(value: float) -> str:
    """Five significant digits, never in scientific notation for what a person reads as a number."""
    if value == 0 or not 1e-4 <= abs(value) < 1e15:
        return f"{value:.5g}"
    if abs(value) >= 1e5:
        return f"{value:.0f}"
    return f"{value:#.5g}".rstrip(".")


def percent(part: float | None) -> str:
    """A share in percent."""
    if part is None:
        return UNKNOWN
    shown = 100 * part
    if 0 < abs(shown) < 0.005:
        return "<0.01 %" if shown > 0 else ">-0.01 %"
    return f"{shown:.2f} %"


def amount(value: float | None, unit: str = "B") -> str:
    """Bytes and the like with four digits and a decimal prefix."""
    if value is None:
        return UNKNOWN
    size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if abs(value) >= size), (1.0, ""))
    whole = size == 1.0 and value == int(value)
    number = f"{value:.0f}" if whole else f"{value / size:#.4g}".rstrip(".")
    return f"{number} {prefix}{unit}".rstrip()


def shortened(text: str, limit: int) -> str:
    """The start of a text, cut at a word where it is too long."""
    if len(text) <= limit:
        return text
    cut = text[: limit - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[limit // 2 :] else cut}…"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str] = ()) -> Table:
    """A table whose columns of ``numbers`` are set right and never broken; only the last column wraps."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(columns):
        is_number, is_last = name in numbers, place == len(columns) - 1
        side: Literal["left", "right"] = "right" if is_number else "left"
        made.add_column(name, justify=side, no_wrap=is_number or not is_last, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Labels and what belongs to them, in two columns without lines."""
    made = Table.grid(padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for label, text in rows:
        made.add_row(Text(label), Text(text))
    return made
