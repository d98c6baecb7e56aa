"""Records files: whole lines or nothing, whatever happened to the writer."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from instances.errors import InputError
from solver.benchmark.records_file import RecordsFile, read_records
from tests.solver.benchmark.making import record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def test_what_is_appended_is_read_again(path: Path) -> None:
    first, second = record(), record(seed=1, error="it crashed", value=None, plan=None)
    with RecordsFile.open(path) as file:
        file.append(first)
        file.append(second)
    assert read_records(path).records == (first, second)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]


def test_of_equal_runs_the_last_record_counts(path: Path) -> None:
    again = record(value=2.5)
    path.write_bytes(record().line() + record(seed=1).line() + again.line())
    assert read_records(path).records == (record(seed=1), again)


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_torn_last_line_is_cut_off(path: Path, kept: int) -> None:
    torn = record(seed=1).line()[:-1][:kept]
    path.write_bytes(record().line() + torn)
    with RecordsFile.open(path) as file:
        assert file.reading.records == (record(),)
        assert file.reading.problems == ()
        file.append(record(seed=2))
    assert path.read_bytes() == record().line() + record(seed=2).line()


def test_a_whole_last_line_without_its_end_is_kept(path: Path) -> None:
    path.write_bytes(record().line().rstrip())
    with RecordsFile.open(path) as file:
        file.append(record(seed=1))
    assert path.read_bytes() == record().line() + record(seed=1).line()


def test_lines_that_are_no_records_are_named_by_number_and_kept(path: Path) -> None:
    foreign = [
        b"not json\n",
        b'{"method": "gpipe"}\n',
        b"\xff\xfe\n",
        record().line().replace(b'"schema_version":1', b'"schema_version":2'),
    ]
    path.write_bytes(record().line() + b"\n" + b"".join(foreign) + record(seed=1).line())
    before = path.read_bytes()
    with RecordsFile.open(path) as file:
        # Line 1 is a record, line 2 empty, lines 3 to 6 are no records of this version.
        assert [problem.line for problem in file.reading.problems] == [3, 4, 5, 6]
        assert [found.seed for found in file.reading.records] == [0, 1]
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"import os\nprint()\n", b'{"name": "an instance"}', b"[1,\n2]\n"])
def test_a_file_of_something_else_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match="line 1 is no record"):
        RecordsFile.open(path)
    assert path.read_bytes() == content


def test_one_writer_at_a_time(path: Path) -> None:
    with RecordsFile.open(path), pytest.raises(InputError, match="no other benchmark"):
        RecordsFile.open(path)
    with RecordsFile.open(path) as file:
        file.append(record())


def test_a_record_that_does_not_fit_on_the_disk_leaves_no_trace(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with RecordsFile.open(path) as file:
        file.append(record())
        monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
        with pytest.raises(InputError, match="the disk is full"):
            file.append(record(seed=1))
        monkeypatch.undo()
        file.append(record(seed=2))
    assert [found.seed for found in read_records(path).records] == [0, 2]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a file that can be written"):
        RecordsFile.open(tmp_path / "none" / "records.jsonl")
    with pytest.raises(InputError, match="a file that can be read"):
        read_records(tmp_path / "none.jsonl")
