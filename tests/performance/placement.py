"""Tables of placements, as in the README: ``python tests/performance/placement.py pipelines qaplib noc``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np

from formulations.interface import EngineLimits
from formulations.placement.place import solve
from formulations.placement.problem import Hops, stated
from formulations.placement.warmup import warm_up
from instances.mesh import Mesh
from solver.backends.cpsat import solve_cpsat
from solver.place.graph import read_graph
from solver.place.qaplib import read_qaplib
from solver.place.run import place_graph, solve_assignment
from tests.formulations.placement_cases import Cell, cross_half, mesh, mocap_flows, seamed
from tests.shared_data import shared_path

Row = tuple[str, float | None, float | None, float | None, float]
"""Name, best value known from elsewhere, value, bound, seconds."""

QAPLIB = ("nug12", "nug14", "nug15", "nug16b", "had12", "tai12a", "scr12", "scr15", "chr12a", "chr12b", "chr12c")
ESC16 = tuple(f"esc16{letter}" for letter in "abcdefghij")
LARGER = ("nug20", "scr20", "nug30", "tho30", "sko42")
NOC = (
    ("pip", 3, 3, 640.0),
    ("mpeg", 4, 4, 3567.0),
    ("mpeg", 4, 3, 3633.0),
    ("263dec", 4, 4, 19.823),
    ("mp3enc", 4, 4, 17.024),
    ("vopd", 4, 4, 4025.0),
    ("vopd_plus94", 4, 4, 4119.0),
    ("auto_industry", 5, 5, 131.0),
    ("G32", 6, 6, 92423.776),
    ("G128", 12, 11, 107920.0),
)
DEAD = [(0, 0), (1, 1), (3, 1)]


def main() -> None:
    """Print a Markdown table for each group."""
    groups = {"pipelines": pipelines, "qaplib": lambda s: quadratic((*QAPLIB, *ESC16), s), "noc": noc}
    groups["larger"] = lambda s: quadratic(LARGER, s)
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--time-limit", type=float, default=60.0)
    arguments.add_argument("groups", nargs="*", help=f"any of {', '.join(groups)}; all of them by default")
    given = arguments.parse_args()
    warm_up()
    for name in given.groups or groups:
        sys.stdout.write("| problem | best known | value | bound | gap | seconds |\n| --- |" + " ---: |" * 5 + "\n")
        for row in groups[name](given.time_limit):
            sys.stdout.write(_line(row) + "\n")
            sys.stdout.flush()


def pipelines(limit_s: float) -> Iterator[Row]:
    """Pipelines folded in two, on all dies, partners next to each other or not."""
    grids: list[tuple[str, tuple[list[Cell], Hops], float | None]] = [
        ("4x4", mesh(4, 4), 25),
        ("4x6", mesh(4, 6), 37),
        ("6x6", mesh(6, 6), 62),
        ("8x8", mesh(8, 8), None),
        ("4x4 with three dead dies", mesh(4, 4, DEAD), None),
        ("two 4x4 wafers, seam of 4 hops", seamed(4, 4, 4), None),
    ]
    for name, (cells, hops), known in grids:
        for forced in (True, False):
            stages = len(cells)
            problem = stated(hops, mocap_flows(stages), stages, cells, cross_half(stages) if forced else ())
            started = time.monotonic()
            found = solve(problem, EngineLimits(time_s=limit_s, workers=2), solve_cpsat, np.random.default_rng(0))
            kind = "adjacent partners" if forced else "free partners"
            shown = f"{name}, {stages} stages, {kind}" + (" (infeasible)" if found.status == "infeasible" else "")
            yield shown, known, found.value, found.bound, time.monotonic() - started


def quadratic(names: tuple[str, ...], limit_s: float) -> Iterator[Row]:
    """Quadratic assignment problems."""
    for name in names:
        problem = read_qaplib(shared_path(f"data/qaplib/{name}.dat"))
        known = float(shared_path(f"data/qaplib/{name}.sln").read_text(encoding="utf-8").split()[1])
        found = solve_assignment(problem, EngineLimits(time_s=limit_s, workers=2))
        yield name, known, found.value, found.bound, found.runtime_s


def noc(limit_s: float) -> Iterator[Row]:
    """Core graphs of networks on chip."""
    for name, rows, columns, known in NOC:
        graph = read_graph(shared_path(f"data/noc/{name}.csv"))
        found = place_graph(graph, Mesh(rows, columns), 1, EngineLimits(time_s=limit_s, workers=2))
        yield f"{name} on {rows}x{columns}", known, found.value, found.bound, found.runtime_s


def _line(row: Row) -> str:
    name, known, value, bound, seconds = row
    gap = "-" if value is None or bound is None else f"{100 * (value - bound) / value if value else 0.0:.2f} %"
    return f"| {name} | {_number(known)} | {_number(value)} | {_number(bound)} | {gap} | {seconds:.2f} |"


def _number(number: float | None) -> str:
    return "-" if number is None else f"{number:.8g}"


if __name__ == "__main__":
    main()
