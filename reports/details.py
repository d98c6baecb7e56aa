"""What a method tells beside its answer: single numbers as facts, runs that it compared as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from instances.numbers import UNKNOWN, byte_text, digits, share_text
from reports.content import Cell, Fact, Section, Table, words
from reports.result_tables import count, time_cell

_LABELS = {"ttft": "time to first token", "tbt": "time between tokens"}
_UNITS = ("_per_s", "_s", "_bytes")


def details_section(details: Mapping[str, Any]) -> Section | None:
    """All of it, each under its own name; None if there is nothing."""
    facts = [
        Fact(_label(name), _cell(name, value), f"details.{name}" if _is_number(value) else None)
        for name, value in details.items()
        if not _is_rows(value) and not isinstance(value, Mapping)
    ]
    tables = [*_lists(details), *_named_rows(details)]
    return Section("What the method says", facts=facts, tables=tables) if facts or tables else None


def _lists(details: Mapping[str, Any]) -> Iterator[Table]:
    """A table for each list of runs, and for each group of runs that have names."""
    for name, value in details.items():
        if _is_rows(value):
            yield _table(_label(name).capitalize(), [("", row) for row in value])
        elif _is_group(value):
            yield _table(_label(name).capitalize(), [(_label(run), row) for run, row in value.items()])


def _named_rows(details: Mapping[str, Any]) -> Iterator[Table]:
    """One table of all runs that stand alone under a name."""
    rows = [
        (_label(name), value) for name, value in details.items() if isinstance(value, Mapping) and not _is_group(value)
    ]
    if rows:
        yield _table("Runs compared", rows)


def _table(title: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    keys = list(dict.fromkeys(key for _, row in rows for key in row))
    # A column in which no row has anything says nothing.
    keys = [key for key in keys if any(row.get(key) is not None for _, row in rows)]
    named = any(name for name, _ in rows)
    cells = [[*([words(name)] if named else []), *(_cell(key, row.get(key)) for key in keys)] for name, row in rows]
    labels = [_label(key) for key in keys]
    numbers = [label for key, label in zip(keys, labels, strict=True) if all(_fits(row.get(key)) for _, row in rows)]
    return Table(title, [*(["run"] if named else []), *labels], cells, numbers)


def _cell(name: str, value: Any) -> Cell:
    """A value in the unit that its name ends in."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return words(", ".join(_cell(name, one).text for one in value) or UNKNOWN)
    if not _is_number(value):
        return words(UNKNOWN if value is None else str(value))
    if name.endswith("_per_s"):
        return Cell(f"{digits(value)}/s", value)
    if name.endswith("_s"):
        return time_cell(value)
    if name.endswith("_bytes"):
        return Cell(byte_text(value), value)
    if name.endswith("_rate"):
        return Cell(share_text(value), value)
    return count(value) if isinstance(value, int) else Cell(digits(value), value)


def _label(name: str) -> str:
    bare = next((name.removesuffix(unit) for unit in _UNITS if name.endswith(unit)), name)
    return " ".join(_LABELS.get(part, part) for part in bare.split("_"))


def _is_rows(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _is_group(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(row, Mapping) for row in value.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(value: Any) -> bool:
    return value is None or _is_number(value)
