"""``waferplan benchmark`` and ``waferplan suites``: grids, records, tables, what is refused, Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from instances.suites import suite_names
from solver.benchmark.records_file import read_records
from solver.cli.benchmark_progress import Board, duration
from tests.builders import small_document
from tests.solver.backends.test_isolated import is_gone
from tests.solver.benchmark.making import record, tasks
from tests.solver.cli.running import finish, start, waferplan


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of the small instance."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "small.json").write_text(json.dumps(small_document()), encoding="utf-8")
    return folder


def test_a_benchmark_that_goes_on_and_what_it_prints(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    options = ("--methods", "terapipe,gpipe", "--jobs", "2", "--time-limit", "20", "--out", out)
    first = waferplan("benchmark", suite, *options, "--json")
    assert (first.code, first.err) == (0, "")
    assert [(row["method"], row["runs"], row["solved"]) for row in first.json["summary"]] == [
        ("terapipe", 1, 1),
        ("gpipe", 1, 1),
    ]
    before = out.read_bytes()
    by_method = {one.method: one for one in read_records(out).records}
    best, worse = by_method["terapipe"].value, by_method["gpipe"].value
    assert best is not None
    assert worse is not None
    assert first.json["summary"][1]["worst_loss"] == pytest.approx(worse / best - 1)

    # The same again runs nothing; what is not a record is named by its line and kept.
    out.write_bytes(before + b"{}\n")
    again = waferplan("benchmark", suite, *options, columns=80)
    assert again.code == 0
    assert "line 3 is no record" in again.err
    assert out.read_bytes() == before + b"{}\n"
    assert max(map(len, again.out.splitlines())) <= 80
    assert f"{100 * (worse / best - 1):.2f} %" in again.out

    # Best-known values from the records at hand.
    updated = waferplan("benchmark", suite, *options, "--update-best-known", "--markdown")
    assert "small: value None ->" in updated.err
    assert "| instance | best known |" in updated.out
    known = json.loads((suite / "best_known.json").read_text(encoding="utf-8"))["instances"]["small"]
    assert known["value"] == best
    assert known["value_source"]["command"] == f"waferplan benchmark {suite} --methods terapipe --time-limit 20"
    assert "best known" not in waferplan("benchmark", suite, *options, "--update-best-known").err


def test_a_value_below_a_bound_is_an_error(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    options = ("--methods", "gpipe", "--jobs", "1", "--out", out)
    assert waferplan("benchmark", suite, *options).code == 0
    row = json.loads(out.read_text(encoding="utf-8"))
    out.write_text(json.dumps({**row, "bound": 2 * row["value"]}) + "\n", encoding="utf-8")
    outcome = waferplan("benchmark", suite, *options, "--json")
    assert outcome.code == 1
    assert "contradiction: mine/small: gpipe" in outcome.err
    assert len(outcome.json["contradictions"]) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tihgt"], "suite: 'tihgt' is not allowed"),
        ([], "SUITE"),
        (["tiny", "--methods", "exact,nothing"], "method"),
        (["tiny", "--methods", "mocap:none=1"], "knob none"),
        (["tiny", "--methods", ","], "--methods"),
        (["tiny", "--time-limit", "0"], "--time-limit"),
        (["tiny", "--memory-limit", "much"], "--memory-limit"),
        (["tiny", "--memory-limit", "1MB"], "--memory-limit"),
        (["tiny", "--seeds", "0"], "--seeds"),
        (["tiny", "--jobs", "0"], "--jobs"),
        (["tiny", "--out", "no/such/folder.jsonl"], "--out"),
        (["tiny", "--out", "."], "--out"),
        (["tiny", "--out", "something.txt"], "line 2 is no record"),
        (["tiny", "--paper"], "--paper"),
        (["--paper", "--update-best-known"], "--paper"),
    ],
)
def test_bad_input(arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "something.txt").write_text("\nimport this\n", encoding="utf-8")
    outcome = waferplan("benchmark", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_interrupted(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    endless = "gpipe,mocap:iterations=1000000000"
    process = start(
        "benchmark", suite, "--methods", endless, "--jobs", "1", "--time-limit", "9999", "--out", out, cwd=tmp_path
    )
    end = time.monotonic() + 100
    while not (out.exists() and out.stat().st_size) and time.monotonic() < end:
        time.sleep(0.02)
    while not (children := _children(process.pid)) and time.monotonic() < end:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    outcome = finish(process)
    assert outcome.code == 130
    assert outcome.err == "interrupted: 1 of 2 runs are in the records file\n"
    assert "gpipe" in outcome.out
    assert [one.method for one in read_records(out).records] == ["gpipe"]
    assert children
    assert all(is_gone(child) for child in children)


def _children(parent: int) -> list[int]:
    shown = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(pid) for pid, its_parent in map(str.split, shown.splitlines()) if int(its_parent) == parent]


def test_the_time_left() -> None:
    board = Board(workers=2)
    board.planned(total=10, known=1)
    assert board.left_s() is None
    assert "time left unknown" in str(board.__rich__())
    for seed in range(3):
        board.ended(record(seed=seed, runtime_s=4.0))
    # Six runs of 4 s, two at a time.
    assert board.left_s() == pytest.approx(12.0, abs=0.5)
    board.started(tasks()[0])
    shown = str(board.__rich__())
    assert "4/10 runs | 1 from before | about 12 s left | small/small gpipe" in shown
    assert [duration(seconds) for seconds in (59.6, 600, 7200)] == ["60 s", "10 min", "2.0 h"]


def test_suites() -> None:
    rows = waferplan("suites", "--json").json
    assert [row["suite"] for row in rows] == list(suite_names())
    assert all(row["asks"] and row["instances"] for row in rows)
    people = waferplan("suites", columns=80).out
    assert max(map(len, people.splitlines())) <= 80
    assert all(name in people for name in suite_names())
