"""What a page is made of: facts, tables, figures and sections; plain data that the template writes down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.figure import Figure

Number = int | float


@dataclass(frozen=True)
class Cell:
    """A text, and the number behind it where there is one: for sorting, and for whoever reads the page by program."""

    text: str
    value: Number | None = None


@dataclass(frozen=True)
class Fact:
    """A labelled cell; ``key`` is where a result file has the same number."""

    label: str
    cell: Cell
    key: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table that readers can sort; ``numbers`` are the columns set right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A heading with what belongs under it, in this order: paragraphs, facts, figures, tables, code.

    ``link`` is what the list of sections calls it: its title unless given, and with an empty text it is left out.
    """

    title: str
    paragraphs: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    code: str = ""
    link: str | None = None


@dataclass(frozen=True)
class Page:
    """One HTML file."""

    title: str
    subtitle: str
    sections: Sequence[Section]
    footer: str

    @property
    def figures(self) -> list[Figure]:
        """All pictures, in order."""
        return [figure for section in self.sections for figure in section.figures]


def words(text: str) -> Cell:
    """A cell without a number."""
    return Cell(text)
