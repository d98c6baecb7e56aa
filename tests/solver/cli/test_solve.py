"""``waferplan solve``: what it prints, writes and answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instances.plan import Plan
from solver.result import Result
from tests.builders import small_document
from tests.solver.cli.running import waferplan


def write(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps(small_document(**changes)), encoding="utf-8")
    return path


def test_json_is_the_result_and_nothing_else(tmp_path: Path, instance_file: Path) -> None:
    target = tmp_path / "r.json"
    outcome = waferplan("solve", instance_file, "--json", "--out", target)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == target.read_text(encoding="utf-8")
    result = Result.load(target)
    assert outcome.json["objective"]["value"] == result.objective.value
    assert result.status == "optimal"
    # Result files stand alone: the plan inside is a plan file, and check and simulate take the file as it is.
    assert Plan.load(target) == result.plan
    assert waferplan("check", instance_file, target).code == 0
    replayed = waferplan("simulate", instance_file, target, "--json")
    assert replayed.json["mean_latency_s"] == result.objective.value


def test_summary_has_every_method_and_both_bounds(instance_file: Path) -> None:
    outcome = waferplan("solve", instance_file)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("small: four-layers, 4 stages on 2x2 mesh, 4 requests of 2048 tokens")
    first = [line.split()[0] for line in lines if line]
    for row in ("exact", "mocap", "terapipe", "gpipe", "cpp", "value", "bound", "trivial", "gap", "scope", "status"):
        assert row in first
    assert any(line.startswith("status") and "optimal" in line and "proved" in line for line in lines)
    assert "--out" in lines[-1]


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit_the_terminal_without_colours_or_trailing_blanks(instance_file: Path, columns: int) -> None:
    outcome = waferplan("solve", instance_file, "--verbose", columns=columns)
    assert "\x1b" not in outcome.out
    for line in outcome.out.splitlines():
        assert len(line) <= columns
        assert line == line.rstrip()


def test_verbose_has_a_row_for_each_stage(instance_file: Path) -> None:
    lines = waferplan("solve", instance_file, "--verbose").out.splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("stage"))
    assert [line.split()[0] for line in lines[header + 2 : header + 6]] == ["0", "1", "2", "3"]


def test_says_how_to_replay(tmp_path: Path) -> None:
    instance, target = write(tmp_path / "my instance.json"), tmp_path / "r.json"
    lines = waferplan("solve", instance, "--out", target, "--method", "cpp").out.splitlines()
    # Never broken over lines, so that it can be copied; a blank is quoted.
    assert f"replay         waferplan simulate '{instance}' {target}" in lines


def test_names_are_shown_harmlessly(tmp_path: Path) -> None:
    instance = write(tmp_path / "i.json", name="a\x1b[31mred\n[bold]x")
    outcome = waferplan("solve", instance, "--method", "cpp")
    assert outcome.out.startswith("a\\x1b[31mred\\n[bold]x: ")


def test_options_reach_the_search(instance_file: Path) -> None:
    result = waferplan(
        "solve", instance_file, "--json", "--method", "cpp", "--chunks", "4", "--seed", "7", "--gap", "50%"
    ).json
    assert (result["method"], result["seed"]) == ("cpp", 7)
    assert [len(sizes) for sizes in result["plan"]["chunks"].values()] == [4]
    assert result["objective"]["bound_scope"]["chunks"] == [4, 4]


def test_a_gap_that_is_wide_enough_ends_the_run(instance_file: Path) -> None:
    result = waferplan("solve", instance_file, "--json", "--method", "gpipe", "--gap", "99%").json
    # gpipe alone is far from the bound, so the gap that was asked for is what stops it.
    assert (result["status"], result["stop_reason"]) == ("feasible", "gap")


def test_knobs_are_set(instance_file: Path) -> None:
    result = waferplan("solve", instance_file, "--json", "--set", "compare=no").json
    assert result["compared"] == []


def test_deterministic_runs_repeat(instance_file: Path) -> None:
    plans = [
        waferplan("solve", instance_file, "--json", "--deterministic", "--method", "mocap", "--seed", "3").json["plan"]
        for _ in range(2)
    ]
    assert plans[0] == plans[1]


def test_weights_that_never_fit_are_infeasible(tmp_path: Path) -> None:
    # Each die needs 73 kB for its layer alone.
    instance = write(tmp_path / "i.json", hardware__die__hbm_bytes="50 kB")
    outcome = waferplan("solve", instance, "--json")
    assert outcome.code == 1
    result = outcome.json
    assert (result["status"], result["plan"], result["objective"]["value"]) == ("infeasible", None, None)
    assert "capacity_at_rest" in result["reason"]
    people = waferplan("solve", instance)
    assert people.code == 1
    assert "capacity_at_rest" in people.out


def test_no_plan_within_the_limit(instance_file: Path) -> None:
    outcome = waferplan("solve", instance_file, "--json", "--time-limit", "0.000001")
    assert outcome.code == 3
    assert (outcome.json["status"], outcome.json["plan"]) == ("unknown", None)
    assert waferplan("solve", instance_file, "--time-limit", "0.000001").code == 3


def test_an_existing_result_is_replaced_and_nothing_else_is_left(tmp_path: Path, instance_file: Path) -> None:
    target = tmp_path / "r.json"
    target.write_text("old", encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    assert waferplan("solve", instance_file, "--method", "cpp", "--out", target).code == 0
    assert sorted(tmp_path.iterdir()) == before
    assert Result.load(target).method == "cpp"


def test_a_link_is_followed(tmp_path: Path, instance_file: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    assert waferplan("solve", instance_file, "--method", "cpp", "--out", link).code == 0
    assert link.is_symlink()
    assert Result.load(target).method == "cpp"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder that even root cannot write")
def test_a_folder_that_cannot_be_written_is_refused_first(instance_file: Path) -> None:
    outcome = waferplan("solve", instance_file, "--out", "/proc/r.json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--out: '/proc/r.json' is not allowed; expected a file in a folder that can be written" in outcome.err


def test_a_result_that_cannot_be_written_is_still_printed(
    tmp_path: Path, instance_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("solver.cli.files.write_whole", full)
    outcome = waferplan("solve", instance_file, "--method", "cpp", "--json", "--out", tmp_path / "r.json")
    assert outcome.code == 2
    assert outcome.json["method"] == "cpp"
    assert "--out" in outcome.err
    assert "No space left" in outcome.err
