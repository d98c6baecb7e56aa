"""Measured chunk times for a fit: rows in the order of the file, parts of one chunk added up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from instances.costs.profile import SHORTEST_S, csv_lines
from instances.errors import InputError
from instances.units import LONGEST_S, MOST_TOKENS
from solver.fitting.columns import HEADER, Columns, read_header

FloatArray = npt.NDArray[np.float64]
MOST_SEQUENCES = 10**6
Point = tuple[int, int, int]
Part = tuple[str, str]


@dataclass(frozen=True)
class Samples:
    """Times of one chunk each, in the order in which they were measured; four arrays of one length.

    ``layers`` is the number of layers that the times are of, None for the whole model.
    """

    batch: FloatArray
    chunk: FloatArray
    prefix: FloatArray
    seconds: FloatArray
    layers: int | None = None

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[float, ...]], layers: int | None = None) -> Samples:
        """Rows (chunk, prefix, seconds) of single sequences, or (chunk, prefix, seconds, batch)."""
        table = np.array([(*row, 1.0)[:4] for row in rows], dtype=np.float64)
        return cls(batch=table[:, 3], chunk=table[:, 0], prefix=table[:, 1], seconds=table[:, 2], layers=layers)

    @property
    def reach(self) -> int:
        """Longest context that was measured: prefix and chunk, in tokens."""
        return int(np.max(self.prefix + self.chunk))

    def chosen(self, keep: npt.NDArray[np.bool_]) -> Samples:
        """Some of the rows."""
        return Samples(self.batch[keep], self.chunk[keep], self.prefix[keep], self.seconds[keep], self.layers)

    def of_model(self, layers: int) -> Samples:
        """Times of a model with so many layers, from those of some of them."""
        factor = layers / (self.layers or layers)
        return Samples(self.batch, self.chunk, self.prefix, self.seconds * factor, None)


def read_samples(path: Path) -> Samples:
    """Read a CSV file; rows of several operators or layers of one chunk are added up, repeated ones give their median.

    Raises
    ------
    InputError
        For an unreadable or empty file, an unknown, missing or doubled column, a cell that is no number or out of
        range, and a chunk for which some operator or layer is missing.
    """
    file = str(path)
    lines = csv_lines(path)
    if not lines:
        raise InputError("", "", HEADER, file=file)
    columns = read_header(lines[0][1], file)
    rows = [_row(columns, cells, number, file) for number, cells in lines[1:]]
    if not rows:
        raise InputError("rows", [], "at least one measured row", file=file)
    measured_layers = 1 if columns.per_layer else None
    if columns.layer is not None:
        measured_layers = len({part[1] for _, part, _ in rows})
    if columns.layer is None and columns.operator is None:
        return Samples.from_rows([(c, p, seconds, b) for (b, c, p), _, seconds in rows], measured_layers)
    return Samples.from_rows(_added(rows, file), measured_layers)


def _row(columns: Columns, cells: list[str], number: int, file: str) -> tuple[Point, Part, float]:
    line = f"line {number}"
    if len(cells) != columns.count:
        raise InputError(line, ",".join(cells), f"{columns.count} cells", file=file)
    chunk = _whole(cells[columns.chunk], 1, MOST_TOKENS, f"{line}, chunk", file)
    prefix = 0 if columns.prefix is None else _whole(cells[columns.prefix], 0, MOST_TOKENS, f"{line}, prefix", file)
    batch = 1 if columns.batch is None else _whole(cells[columns.batch], 1, MOST_SEQUENCES, f"{line}, batch", file)
    part = tuple("" if at is None else cells[at].strip() for at in (columns.operator, columns.layer))
    seconds = _number(cells[columns.time], f"{line}, time", file) / columns.units_per_second
    if not SHORTEST_S <= seconds <= LONGEST_S:
        allowed = f"a time from {SHORTEST_S:g} to {LONGEST_S:.0f} s"
        raise InputError(f"{line}, time", cells[columns.time], allowed, file=file)
    return (batch, chunk, prefix), (part[0], part[1]), seconds


def _number(cell: str, field: str, file: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise InputError(field, cell, "a number", file=file) from None
    if not math.isfinite(number):
        raise InputError(field, cell, "a finite number", file=file)
    return number


def _whole(cell: str, least: int, most: int, field: str, file: str) -> int:
    number = _number(cell, field, file)
    if not (number.is_integer() and least <= number <= most):
        raise InputError(field, cell, f"a whole number from {least} to {most}", file=file)
    return int(number)


def _added(rows: list[tuple[Point, Part, float]], file: str) -> list[tuple[float, ...]]:
    """One row for each point, its parts added; every point needs all parts."""
    points: dict[Point, dict[Part, list[float]]] = {}
    for point, part, seconds in rows:
        points.setdefault(point, {}).setdefault(part, []).append(seconds)
    parts = dict.fromkeys(part for _, part, _ in rows)
    added: list[tuple[float, ...]] = []
    for (batch, chunk, prefix), times in points.items():
        lacking = next((part for part in parts if part not in times), None)
        if lacking is not None:
            name = " of layer ".join(text for text in lacking if text)
            allowed = f"a row for {name} too: the time of a chunk is the sum over all operators and layers in the file"
            raise InputError("rows", {"batch": batch, "chunk": chunk, "prefix": prefix}, allowed, file=file)
        added.append((chunk, prefix, sum(median(found) for found in times.values()), batch))
    return added
