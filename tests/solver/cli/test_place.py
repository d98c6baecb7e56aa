"""``waferplan place``: what it prints and answers."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.solver.cli.running import finish, start, waferplan
from tests.solver.cli.test_bad_input import refused
from tests.solver.cli.test_process import Terminal

GRAPH = "source,target,weight\na,b,2\nb,c,1\nc,d,1.5\nd,a,1\n"
ASSIGNMENT = "3\n0 1 2\n1 0 1\n2 1 0\n0 5 0\n5 0 0\n0 7 0\n"


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    """A ring of four nodes."""
    path = tmp_path / "ring.csv"
    path.write_text(GRAPH, encoding="utf-8")
    return path


@pytest.fixture
def assignment_file(tmp_path: Path) -> Path:
    """Three places in a line."""
    path = tmp_path / "line.dat"
    path.write_text(ASSIGNMENT, encoding="utf-8")
    return path


def test_json_of_a_graph(graph_file: Path) -> None:
    outcome = waferplan("place", graph_file, "--mesh", "2x2", "--json", "--time-limit", "10")
    assert (outcome.code, outcome.err) == (0, "")
    answer = outcome.json
    # Around the square: every edge has one hop.
    assert (answer["status"], answer["value"], answer["bound"]) == ("optimal", 5.5, 5.5)
    assert sorted(answer["placement"]) == ["a", "b", "c", "d"]
    assert sorted(answer["placement"].values()) == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_json_of_an_assignment(assignment_file: Path) -> None:
    outcome = waferplan("place", assignment_file, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert (outcome.json["status"], outcome.json["value"]) == ("optimal", 17)
    assert sorted(outcome.json["placement"]) == [1, 2, 3]


def test_picture_and_facts(graph_file: Path) -> None:
    outcome = waferplan("place", graph_file, "--mesh", "3x3")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    cells = [line.split() for line in lines[:3]]
    assert sorted(cell for row in cells for cell in row) == [".", ".", ".", ".", ".", "a", "b", "c", "d"]
    facts = {line.split()[0]: line for line in lines[4:]}
    assert facts["value"].split()[1:] == ["5.5"]
    assert facts["bound"].split()[1] == "5.5"
    assert "optimal" in facts["status"]
    assert "proved" in facts["status"]


def test_an_assignment_off_a_grid_shows_its_permutation(tmp_path: Path) -> None:
    path = tmp_path / "any.dat"
    path.write_text("2\n0 3 1 0\n0 5 2 0\n", encoding="utf-8")
    lines = waferplan("place", path).out.splitlines()
    assert lines[0].split()[0] == "permutation"
    # 3 * 5 + 1 * 2, or crosswise 3 * 2 + 1 * 5.
    assert lines[2].split() == ["value", "11"]


def test_long_names_are_cut_to_fit_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text(f"{'x' * 100},y\x1b[31m{'z' * 50},1\n", encoding="utf-8")
    outcome = waferplan("place", path, "--mesh", "1x12")
    assert "\x1b" not in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_seams_between_wafers_count_as_many_hops(graph_file: Path) -> None:
    outcome = waferplan("place", graph_file, "--mesh", "2x1", "--wafers", "1x2", "--seam-hops", "4", "--json")
    # Two edges of the ring cross, the lightest two that are opposite each other: b-c and d-a, 1 + 1.
    assert outcome.json["value"] == 5.5 + 3 * (1 + 1)


def test_a_seam_may_count_as_two_hops_and_a_half(graph_file: Path) -> None:
    options = ("--mesh", "2x1", "--wafers", "1x2", "--seam-hops", "2.5")
    answer = waferplan("place", graph_file, *options, "--json").json
    assert (answer["status"], answer["value"], answer["bound"]) == ("optimal", 5.5 + 1.5 * 2, 5.5 + 1.5 * 2)
    # An edge of 1 over the seam, or the edge of 2 within a wafer.
    assert answer["largest_link"]["load"] == 2.5


def test_dead_dies_hold_nothing(graph_file: Path) -> None:
    # A ring of eight live dies: a ring of four nodes needs one long edge, the lightest.
    outcome = waferplan("place", graph_file, "--mesh", "3x3", "--disabled", "1,1", "--json")
    assert (outcome.json["status"], outcome.json["value"]) == ("optimal", 5.5 + 2 * 1)
    assert [1, 1] not in outcome.json["placement"].values()


def test_the_largest_link_load_is_told(graph_file: Path) -> None:
    answer = waferplan("place", graph_file, "--mesh", "1x4", "--json").json
    # On a line, d-a or b-c goes back over all three links: 5.5 + 2.
    assert answer["value"] == 7.5
    largest = answer["largest_link"]
    assert largest["load"] == 2
    assert abs(largest["from"][1] - largest["to"][1]) == 1
    assert "largest link load" in waferplan("place", graph_file, "--mesh", "1x4").out


def test_a_gap_ends_the_search(graph_file: Path) -> None:
    answer = waferplan("place", graph_file, "--mesh", "3x3", "--gap", "90%", "--json").json
    assert answer["gap"] <= 0.9
    assert answer["stop_reason"] in ("gap", "proved")


def test_runs_repeat(graph_file: Path) -> None:
    options = ("--mesh", "3x3", "--seed", "5", "--deterministic", "--json")
    answers = [waferplan("place", graph_file, *options).json for _ in range(2)]
    assert answers[0]["placement"] == answers[1]["placement"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ([], ("--mesh", "nothing is given", "ROWSxCOLUMNS")),
        (["--mesh", "4"], ("--mesh", "'4'", "4x4")),
        (["--mesh", "1x3"], ("--mesh", "1x3", "at least 4 enabled dies", "there are 3")),
        (["--mesh", "1000x1000"], ("--mesh", "1000x1000", "at most 1024")),
        (["--mesh", "2x2", "--wafers", "0x1"], ("--wafers", "0x1")),
        (["--mesh", "2x2", "--seam-hops", "0"], ("--seam-hops", "'0'", "from 1 to 1000")),
        (["--mesh", "2x2", "--seam-hops", "0.9"], ("--seam-hops", "0.9", "from 1 to 1000")),
        (["--mesh", "2x2", "--seam-hops", "1e2"], ("--seam-hops", "1e2", "three decimals")),
        (["--mesh", "2x2", "--time-limit", "0"], ("--time-limit", "greater than 0")),
        (["--mesh", "2x2", "--workers", "0"], ("--workers", "0")),
        (["--mesh", "2x2", "--seed", "-1"], ("--seed", "-1")),
        (["--mesh", "2x2", "--gap", "nan"], ("--gap", "nan")),
        (["--mesh", "4xx4"], ("--mesh", "'4xx4'", "4x4")),
        (["--mesh", "0x4"], ("--mesh", "'0x4'", "at least 1")),
        (["--mesh", "3x3", "--disabled", "3,0"], ("--disabled", "'3,0'", "3x3")),
        (["--mesh", "3x3", "--disabled", "a"], ("--disabled", "'a'", "ROW,COLUMN")),
        (["--mesh", "2x2", "--disabled", "0,0"], ("--mesh", "2x2", "at least 4 enabled dies", "there are 3")),
        (["--mesh", "1x9", "--disabled", "0,4"], ("--disabled", "0,4", "joined", "no path")),
    ],
)
def test_bad_options(graph_file: Path, options: list[str], parts: tuple[str, ...]) -> None:
    refused(waferplan("place", graph_file, *options), *parts)


def test_bad_files(tmp_path: Path, assignment_file: Path) -> None:
    refused(waferplan("place", assignment_file, "--mesh", "1x3"), "--mesh", "its own distances")
    refused(waferplan("place", tmp_path / "no.csv", "--mesh", "2x2"), "no.csv", "existing file")
    refused(waferplan("place", tmp_path / "no.dat"), "no.dat", "existing file")
    broken = tmp_path / "broken.csv"
    broken.write_text("source,target,weight\na,b,heavy\n", encoding="utf-8")
    refused(waferplan("place", broken, "--mesh", "2x2"), "broken.csv", "line 2, weight", "heavy", "0, or a number from")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and terminals")
def test_an_interrupted_process_prints_what_there_is(tmp_path: Path) -> None:
    # Distances and flows without any structure: 40 dies are out of reach for a proof.
    numbers = np.random.default_rng(0).integers(1, 99, (80, 40)) * np.tile(1 - np.eye(40, dtype=np.int64), (2, 1))
    (tmp_path / "any.dat").write_text("40\n" + "\n".join(" ".join(map(str, row)) for row in numbers), encoding="utf-8")
    terminal = Terminal()
    process = start("place", "any.dat", "--json", "--time-limit", "10000", cwd=tmp_path, stderr=terminal.writing)
    terminal.wait_for_a_value()
    process.send_signal(signal.SIGINT)
    shown = terminal.rest()
    outcome = finish(process)
    assert outcome.code == 130
    assert "Traceback" not in shown
    assert (outcome.json["status"], outcome.json["stop_reason"]) == ("feasible", "interrupted")
    assert sorted(outcome.json["placement"]) == list(range(1, 41))
    assert outcome.json["bound"] < outcome.json["value"]
    assert outcome.json["gap"] == pytest.approx(1 - outcome.json["bound"] / outcome.json["value"])


def test_an_interrupt_prints_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    # A star of five leaves: four fit beside the middle.
    path = tmp_path / "star.csv"
    path.write_text("".join(f"m,{leaf},1\n" for leaf in "abcde"), encoding="utf-8")
    monkeypatch.setattr("formulations.placement.portfolio.Portfolio.run", interrupted)
    monkeypatch.setattr("formulations.placement.place.gilmore_lawler_bound", lambda problem: 0)
    outcome = waferplan("place", path, "--mesh", "3x3", "--json")
    assert outcome.code == 130
    assert outcome.json["stop_reason"] == "interrupted"
    assert len(outcome.json["placement"]) == 6
