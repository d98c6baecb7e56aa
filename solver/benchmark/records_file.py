"""A records file: one JSON line a run, appended whole when the run ends, readable whatever happened to the writer."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from instances.base import parse_json
from instances.errors import InputError
from solver.benchmark.record import Record, RunKey

FIELD = "records"


@dataclass(frozen=True)
class Problem:
    """A line that is no record; lines are counted from 1."""

    line: int
    says: str


@dataclass(frozen=True)
class Reading:
    """Content of a records file.

    Attributes
    ----------
    records
        In the order of the file; of runs with equal keys the last one.
    problems
        Lines that are no records, which are skipped.
    good_bytes
        Length without a torn last line: one whose writer was killed.
    """

    records: tuple[Record, ...]
    problems: tuple[Problem, ...]
    good_bytes: int


def read_records(path: Path) -> Reading:
    """Read a records file.

    Raises
    ------
    InputError
        If the file cannot be read, or has lines but not a single record.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(FIELD, str(path), f"a file that can be read ({error.strerror})") from None
    return _reading(data, path)


def _reading(data: bytes, path: Path) -> Reading:
    found: dict[RunKey, Record] = {}
    problems: list[Problem] = []
    good_bytes = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines, start=1):
        torn = number == len(lines)
        try:
            record = _record(line) if line.strip() else None
        except InputError as error:
            if not torn:
                problems.append(Problem(number, str(error)))
            elif not found:
                raise InputError(FIELD, str(path), _foreign(Problem(number, str(error)))) from None
        else:
            if record is not None:
                found.pop(record.key, None)
                found[record.key] = record
            if torn:
                good_bytes += len(line)
        if not torn:
            good_bytes += len(line) + 1
    if problems and not found:
        raise InputError(FIELD, str(path), _foreign(problems[0]))
    return Reading(tuple(found.values()), tuple(problems), good_bytes)


def _record(line: bytes) -> Record:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise InputError("", line[:20], "UTF-8 text") from None
    return Record.parse(parse_json(text))


def _foreign(problem: Problem) -> str:
    return f"a file of records, or a new one; line {problem.line} is no record ({problem.says})"


class RecordsFile:
    """An open records file of which this process is the only writer.

    Records are appended by one write each and forced to the disk, so that a killed benchmark loses the runs in flight
    and nothing else. A torn last line is cut off when the file is opened.
    """

    def __init__(self, path: Path, descriptor: int, reading: Reading) -> None:
        self.path = path
        self._descriptor = descriptor
        self.reading = reading

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open or create a records file.

        Raises
        ------
        InputError
            If it cannot be written, holds something else, or another benchmark writes it.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InputError(FIELD, str(path), f"a file that can be written ({error.strerror})") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            reading = read_records(path)
            _mend(descriptor, reading.good_bytes)
        except BlockingIOError:
            os.close(descriptor)
            raise InputError(FIELD, str(path), "a file that no other benchmark writes at the moment") from None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(path, descriptor, reading)

    def append(self, record: Record) -> None:
        """Add a record, on the disk when this returns; InputError if there is no room."""
        line, before = record.line(), os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, line)
            if written == len(line):
                os.fsync(self._descriptor)
                return
            reason = "the disk is full"
        except OSError as error:
            reason = error.strerror or str(error)
        os.ftruncate(self._descriptor, before)
        raise InputError(FIELD, str(self.path), f"a file that can be written ({reason})")

    def close(self) -> None:
        """Close it, and let others write."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _mend(descriptor: int, good_bytes: int) -> None:
    """Cut a torn last line off, and end a whole one that lacks its line end."""
    os.ftruncate(descriptor, good_bytes)
    if good_bytes and os.pread(descriptor, 1, good_bytes - 1) != b"\n":
        os.write(descriptor, b"\n")
