"""Tables that are printed for people, or as Markdown for a README."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.text import Text

from solver.cli.tables import table


@dataclass(frozen=True)
class Sheet:
    """A table with a title; ``numbers`` are the columns set right."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: tuple[str, ...] = ()

    def printed(self) -> Iterator[RenderableType]:
        """For a terminal."""
        yield Text(self.title)
        yield table(self.columns, self.rows, numbers=self.numbers)
        yield ""

    def markdown(self) -> str:
        """The same in Markdown."""
        rule = (" ---: " if name in self.numbers else " --- " for name in self.columns)
        lines = [_line(f" {name} " for name in self.columns), _line(rule)]
        lines += [_line(f" {cell} " for cell in row) for row in self.rows]
        return "\n".join([f"{self.title}\n", *lines, ""])


def _line(cells: Iterator[str]) -> str:
    return f"|{'|'.join(cell.replace('|', chr(92) + '|') for cell in cells)}|"
