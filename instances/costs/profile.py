"""Measured chunk times: rows of chunk, prefix and seconds, from a CSV file."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from instances.base import read_text
from instances.errors import InputError
from instances.units import LONGEST_S, MOST_TOKENS

FloatArray = npt.NDArray[np.float64]

CHUNK_NAMES = ("chunk", "chunk_tokens", "chunk_size")
PREFIX_NAMES = ("prefix", "prefix_tokens", "prefix_size")
UNITS_PER_SECOND = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e3),
    **dict.fromkeys(("us", "µs", "usec", "microsecond", "microseconds"), 1e6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e9),
}
_BETWEEN_WORDS = re.compile(r"[\s_.:()\[\]-]+")
_TIME_NAME = re.compile(r"(?:(?:time|latency|duration|t)_)?(?P<unit>[a-zµ]+)")
SHORTEST_S = 1e-12
"""Shortest time that can have been measured: the replay's clock has no shorter one."""
_ROW = (
    f"finite numbers: whole tokens, chunk > 0 and prefix >= 0, at most {MOST_TOKENS}, and a time from {SHORTEST_S:g} "
    f"to {LONGEST_S:.0f} s"
)
_HEADER = "a header of three columns: chunk, prefix, and a time with its unit, such as seconds, time_ms or us"


@dataclass(frozen=True)
class Profile:
    """Times of the whole model for one sequence: three arrays of one length, sorted by chunk, then prefix."""

    chunk: FloatArray
    prefix: FloatArray
    seconds: FloatArray

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[float]], *, where: str, file: str | None = None) -> Profile:
        """Sort and check rows (chunk, prefix, seconds).

        Raises
        ------
        InputError
            Without rows, for a value that is no number of tokens or out of range, for a (chunk, prefix) given twice.
        """
        ordered = sorted((float(chunk), float(prefix), float(seconds)) for chunk, prefix, seconds in rows)
        if not ordered:
            raise InputError(where, [], "at least one measured row", file=file)
        for row in ordered:
            whole = all(tokens.is_integer() and tokens <= MOST_TOKENS for tokens in row[:2])
            if not (whole and row[0] > 0 and row[1] >= 0 and SHORTEST_S <= row[2] <= LONGEST_S):
                raise InputError(where, list(row), _ROW, file=file)
        for first, second in itertools.pairwise(ordered):
            if first[:2] == second[:2]:
                raise InputError(where, list(second), "each pair of chunk and prefix once", file=file)
        table = np.array(ordered, dtype=np.float64)
        return cls(chunk=table[:, 0], prefix=table[:, 1], seconds=table[:, 2])

    def rows(self) -> tuple[tuple[float, float, float], ...]:
        """The rows again, as (chunk, prefix, seconds)."""
        return tuple(
            (float(chunk), float(prefix), float(seconds))
            for chunk, prefix, seconds in zip(self.chunk, self.prefix, self.seconds, strict=True)
        )


def column_name(title: str) -> str:
    """A title in lower case with ``_`` between its words; the two micro signs are one.

    Any other character stays: a slash or a damaged micro sign must not leave the unit of another quantity behind
    ("tokens/s" is no time, and neither is what became of "µs" in a wrong encoding a second).
    """
    return _BETWEEN_WORDS.sub("_", title.lower().replace("\u03bc", "µ")).strip("_")


def csv_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Numbers and cells of the lines of a CSV file that are not empty.

    Raises
    ------
    InputError
        For a file that cannot be read, or whose cells are not separated by commas.
    """
    file = str(path)
    try:
        rows = enumerate(csv.reader(read_text(path).splitlines()), start=1)
        lines = [(number, cells) for number, cells in rows if any(cell.strip() for cell in cells)]
    except InputError as error:
        raise error.in_file(file) from None
    except csv.Error as error:
        raise InputError("", file, f"a file of comma-separated values ({error})", file=file) from None
    for number, cells in lines[:1]:
        if len(cells) == 1 and re.search(r"[;\t]", cells[0]):
            allowed = "cells separated by commas, numbers with a decimal point"
            raise InputError(f"line {number}", cells[0], allowed, file=file)
    return lines


def read_profile(path: Path) -> Profile:
    """Read a CSV file of measured times; the unit of the time is in its column's name.

    Raises
    ------
    InputError
        For an unreadable file, an unknown, missing or doubled column, or a cell that is no number.
    """
    file = str(path)
    lines = csv_lines(path)
    if not lines:
        raise InputError("", "", _HEADER, file=file)
    (_, header), *body = lines
    chunk, prefix, time, divisor = _columns(header, file)
    rows = []
    for number, cells in body:
        if len(cells) != len(header):
            raise InputError(f"line {number}", ",".join(cells), f"{len(header)} cells", file=file)
        try:
            rows.append((float(cells[chunk]), float(cells[prefix]), float(cells[time]) / divisor))
        except ValueError:
            raise InputError(f"line {number}", ",".join(cells), "numbers in every column", file=file) from None
    return Profile.from_rows(rows, where="rows", file=file)


def _columns(header: list[str], file: str) -> tuple[int, int, int, float]:
    """Positions of chunk, prefix and time, and what the time is divided by to give seconds."""
    chunk = prefix = time = -1
    divisor = 1.0
    for position, title in enumerate(header):
        name = column_name(title)
        match = _TIME_NAME.fullmatch(name)
        if name in CHUNK_NAMES and chunk < 0:
            chunk = position
        elif name in PREFIX_NAMES and prefix < 0:
            prefix = position
        elif match is not None and match["unit"] in UNITS_PER_SECOND and time < 0:
            time, divisor = position, UNITS_PER_SECOND[match["unit"]]
        else:
            raise InputError(title, ",".join(header), _HEADER, file=file)
    if min(chunk, prefix, time) < 0:
        raise InputError("", ",".join(header), _HEADER, file=file)
    return chunk, prefix, time, divisor
