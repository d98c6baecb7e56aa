"""Tables: what they hold equals what the run measured; files give them back with units, nulls and metadata."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings

from instances.errors import InputError
from solver.export import export_result
from solver.export.columns import tables_of
from solver.export.source import replayed
from solver.simulation.engine import run
from solver.simulation.program_file import read_program
from tests.solver.export.results import small_result, spilling_result
from tests.solver.simulation.documents import line, run_document, spill
from tests.strategies import programs

# Stage 0 spills to stage 1 and to its host.
SPILLED = line(
    [[2, 5], [9, 1]],
    activation_bytes=[1, 1],
    kv_bytes=[[3, 1], [1, 1]],
    static_bytes=[0.5, 0],
    spill=[spill(0, 0, 1, 2), spill(0, 0, "host", 1)],
    host={"host_bytes": 4, "host_bytes_per_s": 1},
)
TABLES = ["tasks", "transfers", "memory", "stalls", "links"]


def _rows(table: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].tolist() for name in names), strict=True))


def test_rows_show_the_run() -> None:
    tables = tables_of(*run_document(SPILLED, traced=True))
    assert list(tables) == TABLES
    # Chunk 0 runs from 0 to 2; chunk 1 starts at 2 and its compute is over at 7. The activation takes 2 to 3, the write
    # to stage 1 follows on that link, 3 to 5, and comes back 5 to 7; the host's byte goes 2 to 3 and comes back 3 to 4.
    assert _rows(tables["tasks"], "wave", "stage", "chunk", "die_row", "die_column", "start_s", "end_s")[:3] == [
        (0, 0, 0, 0, 0, 0.0, 2.0),
        (0, 1, 0, 0, 1, 3.0, 14.0),
        (0, 0, 1, 0, 0, 2.0, 7.0),
    ]
    names = ("kind", "chunk", "from_column", "to_column", "size_bytes", "requested_s", "start_s", "arrival_s", "hops")
    assert _rows(tables["transfers"], *names) == [
        ("activation", 0, 0, 1, 1.0, 2.0, 2.0, 3.0, 1),
        ("spill write", 0, 0, 1, 2.0, 2.0, 3.0, 5.0, 1),
        ("spill write", 0, 0, -1, 1.0, 2.0, 2.0, 3.0, 0),
        ("remote fetch", 1, 1, 0, 2.0, 2.0, 5.0, 7.0, 1),
        ("remote fetch", 1, -1, 0, 1.0, 2.0, 3.0, 4.0, 0),
        ("activation", 1, 0, 1, 1.0, 7.0, 7.0, 8.0, 1),
    ]
    # While 2 bytes go back, die 1 stands still.
    assert _rows(tables["stalls"], "die_column", "start_s", "length_s") == [(1, 5.0, 2.0)]
    links = _rows(tables["links"], "link", "bandwidth_bytes_per_s", "carried_bytes", "busy_s")
    assert links[0] == ("(0,0)->(0,1)", 1.0, 4.0, 4.0)
    memory = _rows(tables["memory"], "memory", "time_s", "used_bytes", "hosted_bytes")
    # The host has its byte from the grant at 2 to the release at 7.
    assert [row for row in memory if row[0] == "host"] == [("host", 2.0, 1.0, 1.0), ("host", 7.0, 0.0, 0.0)]


def test_without_overlap_compute_starts_after_the_fetches() -> None:
    tasks = tables_of(*run_document(SPILLED | {"overlap": False}, traced=True))["tasks"]
    # Chunk 1 of stage 0 starts at 2 and has its bytes back at 7; it computes for 5.
    named = {row[:2]: row[2:] for row in _rows(tasks, "stage", "chunk", "start_s", "compute_start_s", "end_s")}
    assert named[0, 1] == (2.0, 7.0, 12.0)


def test_what_never_ran_has_no_times() -> None:
    document = line([[1, 1], [1, 1]], kv_bytes=[[1, 1], [1, 1]], capacity_bytes=[9, 1])
    tasks = tables_of(*run_document(document, traced=True))["tasks"]
    ends = {row[:2]: row[2] for row in _rows(tasks, "stage", "chunk", "end_s")}
    assert ends[1, 0] == 2.0
    assert np.isnan(ends[1, 1])


def test_a_run_must_be_traced() -> None:
    program = read_program(SPILLED)
    with pytest.raises(ValueError, match="traced=True"):
        tables_of(program, run(program))


@settings(max_examples=50)
@given(programs())
def test_sums_and_peaks_are_those_of_the_run(document: dict[str, Any]) -> None:
    program, outcome = run_document(document, traced=True)
    tables = tables_of(program, outcome)
    transfers, memory, stalls = tables["transfers"], tables["memory"], tables["stalls"]
    byte_hops = float((transfers["size_bytes"] * transfers["hops"]).sum())
    assert byte_hops == pytest.approx(outcome.byte_hops_units / program.units_per_byte)
    assert tables["links"]["carried_bytes"].sum() == pytest.approx(
        byte_hops + transfers["size_bytes"][transfers["hops"] == 0].sum()
    )
    assert stalls["length_s"].sum() == pytest.approx(outcome.stall_ps.sum() / 1e12)
    for die, (row, column) in enumerate(program.network.dies.tolist()):
        here = (memory["memory"] == "die") & (memory["die_row"] == row) & (memory["die_column"] == column)
        assert memory["used_bytes"][here].max() == program.bytes_of(outcome.peak_units[die])
    assert (transfers["requested_s"] <= transfers["start_s"]).all()
    assert (transfers["start_s"] <= transfers["arrival_s"]).all()


@pytest.mark.parametrize(
    ("to", "read"), [("parquet", pyarrow.parquet.read_table), ("arrow", pyarrow.feather.read_table)]
)
def test_files_give_the_tables_back(tmp_path: Path, to: str, read: Any) -> None:
    result = spilling_result()
    said = export_result(result, to, tmp_path / "tables")
    # 4 waves, 8 chunks, 4 stages.
    assert said.startswith("128 tasks, ")
    assert sorted(path.name for path in (tmp_path / "tables").iterdir()) == sorted(f"{name}.{to}" for name in TABLES)
    source = replayed(result)
    for name, expected in tables_of(source.program, source.run).items():
        table = read(tmp_path / "tables" / f"{name}.{to}")
        assert table.column_names == list(expected)
        assert table.schema.metadata[b"fingerprint"].decode() == result.fingerprint
        assert {b"waferplan_version", b"instance", b"method"} <= table.schema.metadata.keys()
        for column in table.column_names:
            values = expected[column].tolist()
            if column.endswith(("_row", "_column")):
                values = [None if value < 0 else value for value in values]
            assert table[column].to_pylist() == values


def test_empty_tables_keep_their_types(tmp_path: Path) -> None:
    for result, folder in ((small_result(), "without"), (spilling_result(), "with")):
        export_result(result, "parquet", tmp_path / folder)
    stalls = [pyarrow.parquet.read_table(tmp_path / folder / "stalls.parquet") for folder in ("without", "with")]
    assert (stalls[0].num_rows, stalls[1].num_rows) == (0, 224)
    assert stalls[0].schema.equals(stalls[1].schema)


@pytest.mark.parametrize("to", ["parquet", "arrow"])
def test_a_missing_library_is_named(to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "solver.export.arrow", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"tensorrt-llm, or pyarrow installed: pip install 'waferplan\[arrow\]'"):
        export_result(small_result(), to, tmp_path / "tables")
    assert not list(tmp_path.iterdir())
