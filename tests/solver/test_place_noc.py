"""Core graphs of networks on chip: the optima in the README of the data, proved."""

from __future__ import annotations

import pytest

from formulations.interface import EngineLimits
from instances.mesh import Mesh
from solver.place.graph import read_graph
from solver.place.run import Placed, place_graph
from tests.shared_data import shared_path


def placed(name: str, rows: int, columns: int, time_s: float) -> Placed:
    graph = read_graph(shared_path(f"data/noc/{name}.csv"))
    mesh = Mesh(rows, columns)
    answer = place_graph(graph, mesh, 1, EngineLimits(time_s=time_s))
    assert isinstance(answer.placement, dict)
    die_of = [answer.placement[node] for node in graph.nodes]
    assert answer.value == pytest.approx(sum(weight * mesh.hops(die_of[s], die_of[t]) for s, t, weight in graph.flows))
    return answer


@pytest.mark.parametrize(
    ("name", "rows", "columns", "value"),
    [
        ("pip", 3, 3, 640),
        ("mpeg", 4, 4, 3567),
        ("mpeg", 4, 3, 3633),
        ("263dec", 4, 4, 19.823),
        ("mp3enc", 4, 4, 17.024),
        ("vopd", 4, 4, 4025),
        ("vopd_plus94", 4, 4, 4119),
        ("auto_industry", 5, 5, 131),
    ],
)
def test_optima_are_proved(name: str, rows: int, columns: int, value: float) -> None:
    answer = placed(name, rows, columns, 600.0)
    # No digit is lost: weights have a common unit.
    assert (answer.status, answer.value, answer.bound) == ("optimal", value, value)


@pytest.mark.slow
def test_the_largest_optimum_is_proved() -> None:
    answer = placed("80211ARX", 5, 5, 900.0)
    assert (answer.status, answer.value, answer.bound) == ("optimal", 12733.35, 12733.35)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "columns", "most"), [("G32", 6, 6, 92423.776), ("G128", 12, 11, 107920 * 1.05)]
)
def test_published_values_are_reached(name: str, rows: int, columns: int, most: float) -> None:
    answer = placed(name, rows, columns, 20.0)
    assert answer.value is not None
    assert answer.bound is not None
    assert answer.bound <= answer.value <= most
