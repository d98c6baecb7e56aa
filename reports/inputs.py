"""What a report can be made of: results, capacity tables, records of benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from instances.base import parse_json, read_text
from instances.errors import InputError
from solver.benchmark.record import Record
from solver.benchmark.records_file import read_records
from solver.capacity.result import CapacityResult
from solver.result import Result

ALLOWED = "a result (solve --out), a capacity table (capacity --out) or the records of a benchmark (benchmark --out)"


@dataclass(frozen=True)
class Records:
    """Runs of a benchmark, and how many lines of their file are no records."""

    name: str
    records: tuple[Record, ...]
    skipped: int = 0


Source = Result | CapacityResult | Records
_KINDS = {Result: "a result", CapacityResult: "a capacity table", Records: "records of a benchmark"}


def read_source(path: Path) -> Source:
    """Read a file of any of the kinds.

    Raises
    ------
    InputError
        With the file's name, if it is of none.
    """
    name = str(path)
    try:
        if path.suffix == ".jsonl":
            return _records(path)
        data = parse_json(read_text(path))
        if isinstance(data, dict) and "methods" in data:
            return CapacityResult.parse(data)
        if isinstance(data, dict) and "objective" in data and "status" in data and "suite" not in data:
            return Result.parse(data)
        if isinstance(data, dict) and "suite" in data:
            return _records(path)
    except InputError as error:
        raise error.in_file(name) from None
    raise InputError("", data, ALLOWED, file=name)


def check_kinds(sources: Sequence[Source]) -> None:
    """InputError unless there are results alone, or one source of another kind."""
    if not sources:
        raise InputError("RESULT", [], ALLOWED)
    if len(sources) > 1 and not all(isinstance(source, Result) for source in sources):
        kinds = ", ".join(_KINDS[type(source)] for source in sources)
        raise InputError("RESULT", kinds, "several results, or one file of another kind")


def _records(path: Path) -> Records:
    reading = read_records(path)
    if not reading.records:
        raise InputError("records", str(path), "a file with at least one record")
    return Records(path.name, reading.records, len(reading.problems))
