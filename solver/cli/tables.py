"""The plain look of all tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.table import Table
from rich.text import Text

from instances.numbers import byte_text


def amount(value: float | None, unit: str = "B") -> str:
    """Bytes and the like with all four digits, so that they line up in a column."""
    return byte_text(value, unit, aligned=True)


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
