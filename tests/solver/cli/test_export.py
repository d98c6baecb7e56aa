"""``waferplan export``: from a result file alone to files of other tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from solver.cli.app import COMMANDS
from solver.export import FORMATS
from solver.result import Result
from tests.builders import small_instance, small_plan
from tests.solver.cli.running import Outcome, finish, start, waferplan
from tests.solver.export.results import result_of, small_result, spilling_result
from tests.solver.export.test_formats import locked_up
from tests.solver.export.trace_checks import assert_sound
from tests.solver.export.wire import read_traces


def _saved(result: Result, folder: Path) -> Path:
    """The result as a file in a folder of its own."""
    folder.mkdir()
    result.save(folder / "r.json")
    return folder / "r.json"


def _refused(outcome: Outcome, *parts: str, code: int = 2) -> None:
    """One line on standard error with all parts, nothing on standard output."""
    assert (outcome.code, outcome.out) == (code, ""), outcome
    assert len(outcome.err.splitlines()) == 1
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part in outcome.err


def test_the_command_is_listed() -> None:
    assert "export" in COMMANDS
    page = waferplan("export", "--help", columns=200)
    assert page.code == 0
    assert all(f"{name}: {form.says}" in page.out for name, form in FORMATS.items())


@pytest.mark.parametrize(
    ("to", "says"),
    [("perfetto", "trace events"), ("chakra", "4 traces with"), ("parquet", "128 tasks"), ("arrow", "128 tasks")],
)
def test_a_result_file_is_enough(tmp_path: Path, to: str, says: str) -> None:
    file = _saved(spilling_result(), tmp_path / "in")
    outcome = waferplan("export", file, "--to", to, "--out", tmp_path / "out")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{tmp_path / 'out'}: ")
    assert says in outcome.out
    assert len(outcome.out.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    if to == "perfetto":
        assert_sound(json.loads((tmp_path / "out").read_text(encoding="utf-8")))
    elif to == "chakra":
        assert "rounding to whole microseconds moves the compute time" in outcome.out
        assert len(read_traces(tmp_path / "out")[0]) == 4
    elif to == "parquet":
        assert pyarrow.parquet.read_table(tmp_path / "out" / "tasks.parquet").num_rows == 128


def test_it_runs_as_a_process_of_its_own(tmp_path: Path) -> None:
    file = _saved(small_result(), tmp_path / "in")
    (tmp_path / "elsewhere").mkdir()
    outcome = finish(start("export", file, "--to", "chakra", "--out", "traces", cwd=tmp_path / "elsewhere"))
    assert (outcome.code, outcome.err) == (0, "")
    assert sorted(path.name for path in (tmp_path / "elsewhere" / "traces").iterdir()) == [
        f"plan.{npu}.et" for npu in range(4)
    ]
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["traces"]


def test_bad_input_ends_with_2_and_writes_nothing(tmp_path: Path) -> None:
    file = _saved(small_result(), tmp_path / "in")
    without = _saved(result_of(small_instance(), None), tmp_path / "without")
    broken = tmp_path / "in" / "broken.json"
    broken.write_text(file.read_text(encoding="utf-8")[:-50], encoding="utf-8")
    out = tmp_path / "out"
    _refused(
        waferplan("export", file, "--to", "vhs", "--out", out),
        "--to",
        "'vhs'",
        "perfetto, chakra, sglang, vllm, vllm-ascend, tensorrt-llm, parquet, arrow",
    )
    _refused(waferplan("export", file, "--to", "chakra", "--out", tmp_path / "in"), "--out", "empty folder")
    _refused(waferplan("export", file, "--to", "perfetto", "--out", tmp_path / "a" / "b"), "--out", "existing folder")
    _refused(waferplan("export", tmp_path / "none.json", "--to", "chakra", "--out", out), "none.json", "existing file")
    _refused(waferplan("export", broken, "--to", "chakra", "--out", out), "broken.json", "JSON")
    _refused(waferplan("export", without, "--to", "chakra", "--out", out), str(without), "plan", "holds a plan")
    assert waferplan("export", file, "--out", out).code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "without"]


def test_a_plan_that_cannot_run_ends_with_1(tmp_path: Path) -> None:
    instance = locked_up()
    file = _saved(result_of(instance, small_plan(instance)), tmp_path / "in")
    outcome = waferplan("export", file, "--to", "chakra", "--out", tmp_path / "out")
    _refused(outcome, "infeasible: deadlock", "memory", code=1)
    assert not (tmp_path / "out").exists()


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _saved(small_result(), tmp_path / "in")
    monkeypatch.delitem(sys.modules, "solver.export.arrow", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    outcome = waferplan("export", file, "--to", "parquet", "--out", tmp_path / "out")
    _refused(outcome, "--to", "'parquet'", "tensorrt-llm, or pyarrow installed", "waferplan[arrow]")
