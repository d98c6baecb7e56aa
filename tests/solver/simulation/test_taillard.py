"""A permutation flow shop is a replay without transfers: jobs are chunks, machines are stages (spec section 5).

Makespans come from elsewhere: best known values of Taillard's instances (E. Taillard, Benchmarks for basic scheduling
problems, European Journal of Operational Research 64, 1993) with permutations that reach them, and small instances with
optimal sequences (M. Nassim, Flow-Shop-Permutation-Instances).
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from solver.simulation.program_file import replay_document
from tests.shared_data import shared_path
from tests.solver.simulation.documents import line

Times = list[list[int]]
PERMUTATIONS, SMALL_SHOPS = 40, 62
"""How many the data has, one shop without a sequence left out: a file read in part must not pass."""

# Source -> times by job and machine, optimal sequence, its makespan.
RESTATED: dict[str, tuple[Times, list[int], int]] = {
    "instances_5_4, first": (
        [[64, 96, 85, 95], [66, 38, 51, 46], [30, 85, 13, 70], [59, 54, 65, 73], [67, 65, 82, 44]],
        [2, 3, 0, 1, 4],
        535,
    ),
    "instances_6_5, second": (
        [
            [93, 23, 56, 97, 29],
            [15, 45, 37, 56, 33],
            [25, 22, 34, 33, 46],
            [98, 43, 78, 20, 33],
            [98, 75, 67, 78, 42],
            [67, 89, 46, 69, 43],
        ],
        [1, 2, 5, 4, 0, 3],
        584,
    ),
    "instances_9_4, first": (
        [
            [92, 42, 76, 42],
            [57, 33, 28, 56],
            [33, 57, 70, 95],
            [60, 49, 36, 77],
            [59, 68, 27, 63],
            [57, 26, 93, 85],
            [29, 36, 91, 52],
            [75, 34, 54, 47],
            [86, 91, 18, 75],
        ],
        [3, 1, 2, 4, 5, 6, 0, 8, 7],
        737,
    ),
}


def _makespan(times: Times, sequence: list[int]) -> float:
    """Replay the jobs in the given order, as chunks of one wave; ``times`` by job and machine."""
    assert sorted(sequence) == list(range(len(times))), "not a permutation of the jobs"
    compute_s: list[list[float]] = [[times[job][machine] for job in sequence] for machine in range(len(times[0]))]
    return float(replay_document(line(compute_s))["makespan_s"])


def _makespan_by_waves(times: Times, sequence: list[int]) -> float:
    """As `_makespan`, but every job is a wave of one chunk."""
    machines = len(times[0])
    document = line([[0]] * machines, waves=len(sequence))
    document |= {"compute_s": [[[time] for time in times[job]] for job in sequence]}
    document |= {"kv_bytes": [[[0]] * machines] * len(sequence), "activation_bytes": [[0]] * len(sequence)}
    return float(replay_document(document)["makespan_s"])


def _read_taillard(path: Path) -> Times:
    """Times by job and machine; the file has a row of jobs for each machine, below a heading, the sizes, a heading."""
    lines = path.read_text(encoding="utf-8").splitlines()
    jobs, machines = (int(word) for word in lines[1].split()[:2])
    rows = [[int(word) for word in text.split()] for text in lines[3 : 3 + machines]]
    assert [len(row) for row in rows] == [jobs] * machines
    return [list(job) for job in zip(*rows, strict=True)]


@pytest.mark.parametrize("source", RESTATED)
def test_restated_flow_shops(source: str) -> None:
    times, sequence, makespan = RESTATED[source]
    assert _makespan(times, sequence) == makespan
    assert _makespan_by_waves(times, sequence) == makespan
    # The order counts: turned round, these sequences are longer.
    assert _makespan(times, sequence[::-1]) > makespan


def test_permutations_reach_the_best_known_makespans_of_taillards_shops() -> None:
    folder = shared_path("data/taillard_pfsp")
    with (folder / "bks_pyjobshop.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["problem"], row["category"]) == ("PFSP", "Taillard")]
    best_known = {int(row["instance"].removesuffix(".txt")): int(row["bks"]) for row in rows}
    entries = json.loads((folder / "permutations_reaching_bks.json").read_text(encoding="utf-8"))
    found = {
        entry["ta"]: _makespan(_read_taillard(folder / f"{name}.fsp"), entry["permutation"])
        for name, entry in entries.items()
    }
    assert found == {number: best_known[number] for number in found}
    assert len(found) == PERMUTATIONS


def test_sequences_reach_the_makespans_of_small_shops() -> None:
    replayed = 0
    for path in sorted(shared_path("data/pfsp_small").glob("*.json")):
        for number, shop in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            if shop["optimal_seq"]:
                found = _makespan(shop["instance"], shop["optimal_seq"])
                assert found == shop["makespan"], f"{path.name}, entry {number}"
                replayed += 1
    assert replayed == SMALL_SHOPS
