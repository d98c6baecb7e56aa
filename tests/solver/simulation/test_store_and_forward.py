"""Closed forms of a store-and-forward mesh of first-in, first-out links, from the text of rule 9 (spec section 3).

With ``store_and_forward`` a transfer takes one link after the other; each is held for d = bytes / bandwidth, and then
the hop's latency l passes. With ``integer_ns`` both are rounded up to whole nanoseconds. Memory is unlimited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.simulation.engine import run
from solver.simulation.program_file import read_program, replay_document

Cell = tuple[int, int]
Routing = Literal["xy", "yx"]

BYTES_PER_NS, LATENCY_NS = 3, 0.25
HOP_NS = 1
"""The latency of a hop, rounded up."""
MESHES: tuple[Cell, ...] = ((1, 6), (6, 1), (2, 5), (5, 2))
ROUTINGS: tuple[Routing, ...] = ("xy", "yx")


@dataclass(frozen=True)
class Flow:
    """A transfer that is requested at ``ready_ns``."""

    source: Cell
    target: Cell
    size_bytes: int
    ready_ns: int = 0

    @property
    def duration_ns(self) -> int:
        """For how long it holds each link: 10 bytes at 3 bytes/ns take 3.33, so 4 ns."""
        return ceil(self.size_bytes / BYTES_PER_NS)


def _document(mesh: Cell, cells: list[Cell], routing: Routing, **changes: Any) -> dict[str, Any]:
    """Stages on the cells of a mesh; everything takes no time and no memory unless changed."""
    return {
        "rows": mesh[0],
        "columns": mesh[1],
        "die_of": [list(cell) for cell in cells],
        "compute_s": [[0]] * len(cells),
        "activation_bytes": [0],
        "kv_bytes": [[0]] * len(cells),
        "arrivals_s": [0],
        "link_bytes_per_s": BYTES_PER_NS * 10**9,
        "hop_latency_s": LATENCY_NS * 1e-9,
        "routing": routing,
        "store_and_forward": True,
        "integer_ns": True,
    } | changes


def _arrivals_ns(mesh: Cell, routing: Routing, flows: list[Flow]) -> list[int]:
    """When each of some independent transfers arrives; of those ready at once, the first in the list is asked first.

    Each is a wave of its own: a task without compute that may start when the transfer is ready, and its successor.
    """
    cells = list(dict.fromkeys(cell for flow in flows for cell in (flow.source, flow.target)))
    program = read_program(_document(mesh, cells[:2], routing, arrivals_s=[0] * len(flows)))
    everywhere = read_program(_document(mesh, cells, routing))
    # Tasks 2f and 2f + 1 send and receive flow f; a die sends all that it sends before it waits for anything.
    die = np.array([cells.index(cell) for flow in flows for cell in (flow.source, flow.target)], dtype=np.int32)
    ready_ps = np.repeat([flow.ready_ns * 1000 for flow in flows], 2)
    receives = np.arange(len(die)) % 2
    program = replace(
        program,
        die=die,
        die_ptr=np.concatenate(([0], np.cumsum(np.bincount(die)))).astype(np.int64),
        die_tasks=np.lexsort((ready_ps, receives, die)).astype(np.int32),
        earliest_ps=np.where(receives, 0, ready_ps).astype(np.int64),
        send_units=np.repeat([flow.size_bytes * program.units_per_byte for flow in flows], 2).astype(np.int64),
        group_die=die,
        capacity_units=everywhere.capacity_units,
        static_units=everywhere.static_units,
        host_capacity_units=everywhere.host_capacity_units,
        network=everywhere.network,
    )
    outcome = run(program, traced=True)
    assert outcome.events is not None and not outcome.deadlock
    arrival_ps = dict(outcome.events.transfers[:, (3, 7)].tolist())
    assert all(arrival_ps[2 * number] % 1000 == 0 for number in range(len(flows)))
    return [arrival_ps[2 * number] // 1000 for number in range(len(flows))]


def _links(flow: Flow, routing: Routing) -> list[tuple[Cell, Cell]]:
    """The links of the rule's route: along the row first, that is the column index ("xy"), or along the column."""
    (row, column), (last_row, last_column) = flow.source, flow.target
    along_row = [(row, at) for at in _between(column, last_column)]
    along_column = [(at, column) for at in _between(row, last_row)]
    if routing == "xy":
        path = along_row + [(at, last_column) for at in _between(row, last_row)[1:]]
    else:
        path = along_column + [(last_row, at) for at in _between(column, last_column)[1:]]
    return list(pairwise(path))


def _between(first: int, last: int) -> list[int]:
    step = 1 if last >= first else -1
    return list(range(first, last + step, step))


def _alone_ns(flow: Flow, routing: Routing) -> int:
    return flow.ready_ns + len(_links(flow, routing)) * (flow.duration_ns + HOP_NS)


def _cells(mesh: Cell) -> list[Cell]:
    return [(row, column) for row in range(mesh[0]) for column in range(mesh[1])]


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("mesh", MESHES)
def test_one_transfer_between_any_two_dies(mesh: Cell, routing: Routing) -> None:
    # h hops: h * (d + l), with d = 10 bytes / (3 bytes/ns), up: 4 ns, and l = 0.25 ns, up: 1 ns.
    for source in _cells(mesh):
        for target in _cells(mesh):
            if source != target:
                hops = abs(source[0] - target[0]) + abs(source[1] - target[1])
                document = _document(mesh, [source, target], routing, activation_bytes=[10])
                assert replay_document(document)["makespan_s"] == hops * (4 + 1) / 1e9


def test_every_duration_is_rounded_up_by_itself() -> None:
    # Compute 1.5 -> 2 ns on each of two stages; 3 links of 10 / 3 -> 4 ns, not 3 * 10 / 3 = 10 in all; 3 hops of
    # 0.25 -> 1 ns, not 0.75 -> 1 in all: 2 + 3 * (4 + 1) + 2 = 19 ns. In picoseconds: 1500 + 3 * (3333 + 250) + 1500.
    document = _document((2, 5), [(0, 0), (1, 2)], "xy", activation_bytes=[10], compute_s=[[1.5e-9], [1.5e-9]])
    assert replay_document(document)["makespan_s"] == 19e-9
    assert replay_document(document | {"integer_ns": False})["makespan_s"] == 13.749e-9


def test_whole_nanoseconds_stay() -> None:
    # 12 bytes at 3 bytes/ns are 4 ns and stay 4; one byte more makes 5.
    for size_bytes, hold_ns in ((12, 4), (13, 5)):
        assert _arrivals_ns((1, 6), "xy", [Flow((0, 0), (0, 3), size_bytes)]) == [3 * (hold_ns + 1)]


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("mesh", MESHES)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_transfers_in_a_row_are_a_flow_shop_of_links(mesh: Cell, routing: Routing, sizes: list[int]) -> None:
    # Transfers 0..k from corner to corner, all asked at time 0. Each link is a machine with the same times, so transfer
    # k arrives at d_0 + ... + d_k + (h - 1) * max(d_0, ..., d_k) + h * l. Equal sizes: (k + h) * d + h * l.
    flows = [Flow((0, 0), (mesh[0] - 1, mesh[1] - 1), size) for size in sizes]
    hops = sum(mesh) - 2
    durations = [flow.duration_ns for flow in flows]
    assert _arrivals_ns(mesh, routing, flows) == [
        sum(durations[: k + 1]) + (hops - 1) * max(durations[: k + 1]) + hops * HOP_NS for k in range(len(flows))
    ]


def test_chunks_follow_each_other_through_a_pipeline() -> None:
    # Three chunks without compute from (0,0) to (1,3), 4 hops: d = 4, 7, 2 ns. Arrivals by the flow shop of links:
    # 4 + 3*4 + 4 = 20; 11 + 3*7 + 4 = 36; 13 + 3*7 + 4 = 38 ns.
    document = _document((2, 5), [(0, 0), (1, 3)], "xy", activation_bytes=[12, 21, 6])
    document |= {"compute_s": [[0] * 3] * 2, "kv_bytes": [[0] * 3] * 2}
    starts = replay_document(document)["start_s"]
    assert [starts[f"0,1,{chunk}"] for chunk in range(3)] == [20e-9, 36e-9, 38e-9]


@dataclass(frozen=True)
class Shared:
    """Two routes that have one link in common: the ends of A and of B, and the link's place on each way."""

    mesh: Cell
    routing: Routing
    a: tuple[Cell, Cell]
    b: tuple[Cell, Cell]
    place_on_a: int
    place_on_b: int

    def turned(self) -> Shared:
        """The same on the mesh turned over its diagonal, where the other routing takes the turned routes."""
        a, b = ((source[::-1], target[::-1]) for source, target in (self.a, self.b))
        return replace(self, mesh=self.mesh[::-1], routing="xy" if self.routing == "yx" else "yx", a=a, b=b)


SHARED = {
    "first of both": Shared((2, 5), "xy", ((0, 0), (1, 1)), ((0, 0), (0, 4)), 0, 0),
    "middle of A, first of B": Shared((2, 5), "xy", ((0, 0), (1, 2)), ((0, 1), (0, 4)), 1, 0),
    "last of both": Shared((2, 5), "xy", ((0, 0), (1, 2)), ((0, 4), (1, 2)), 2, 2),
    "last of A, middle of B": Shared((5, 2), "xy", ((1, 0), (3, 1)), ((2, 0), (4, 1)), 2, 1),
    "last of A, first of B, on a column": Shared((5, 2), "xy", ((0, 0), (3, 1)), ((2, 1), (4, 1)), 3, 0),
    "last of A, first of B, on a row": Shared((1, 6), "xy", ((0, 5), (0, 2)), ((0, 3), (0, 0)), 2, 0),
}


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("case", SHARED)
def test_two_transfers_share_one_link(case: str, turned: bool) -> None:
    # The transfer that is asked first goes through as if it were alone, and has left the shared link, the p-th of its
    # way, at r + p * (d + l) + d. The other would reach that link at r' + p' * (d' + l). It starts there at the later
    # of the two (also if it is there before the first one: links are granted in the order in which transfers are
    # requested, no backfilling) and has the h' - p' links from there on for itself.
    shared = SHARED[case].turned() if turned else SHARED[case]
    waited = 0
    for size_a, size_b, later_ns in ((20, 7, 0), (7, 20, 0), (10, 10, 3), (20, 7, 40)):
        for a_first in (True, False):
            a = Flow(*shared.a, size_a, 0 if a_first else later_ns)
            b = Flow(*shared.b, size_b, later_ns if a_first else 0)
            on_a, on_b = (a, shared.place_on_a), (b, shared.place_on_b)
            (one, place), (other, other_place) = (on_a, on_b) if a_first else (on_b, on_a)
            links, other_links = _links(one, shared.routing), _links(other, shared.routing)
            assert set(links) & set(other_links) == {links[place]} == {other_links[other_place]}
            left_ns = one.ready_ns + place * (one.duration_ns + HOP_NS) + one.duration_ns
            there_ns = other.ready_ns + other_place * (other.duration_ns + HOP_NS)
            waited += left_ns > there_ns
            onward_ns = (len(other_links) - other_place) * (other.duration_ns + HOP_NS)
            expected = [_alone_ns(one, shared.routing), max(there_ns, left_ns) + onward_ns]
            assert _arrivals_ns(shared.mesh, shared.routing, [one, other]) == expected
    assert 0 < waited < 8, "cases of both sorts are wanted"


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("mesh", MESHES)
def test_opposite_directions_do_not_meet(mesh: Cell, routing: Routing) -> None:
    # Along the longer side the two use the same pairs of neighbours, one link each way; from corner to corner and back
    # they turn at different corners. Both arrive as if alone.
    far = (mesh[0] - 1, mesh[1] - 1)
    along = (far[0], 0) if mesh[0] > mesh[1] else (0, far[1])
    for target in (along, far):
        flows = [Flow((0, 0), target, 20), Flow(target, (0, 0), 7)]
        assert _arrivals_ns(mesh, routing, flows) == [_alone_ns(flow, routing) for flow in flows]


@pytest.mark.parametrize("routing", ROUTINGS)
def test_ways_that_cross_at_a_die_do_not_meet(routing: Routing) -> None:
    # Along row 1 and down column 1 of a 3 x 4 mesh, both through (1,1), where they arrive at the same time.
    flows = [Flow((1, 0), (1, 3), 10), Flow((0, 1), (2, 1), 10)]
    assert _arrivals_ns((3, 4), routing, flows) == [_alone_ns(flow, routing) for flow in flows] == [15, 10]


@pytest.mark.parametrize(("routing", "arrival_ns"), [("xy", 19), ("yx", 15)])
def test_the_routing_decides_which_links_are_shared(routing: Routing, arrival_ns: int) -> None:
    # Both ways take d + l = 5 ns a link. "xy": (0,0)-(0,1)-(1,1) and (0,0)-(0,1)-(0,2)-(0,3) share the first link: the
    # second waits 4 ns for it, 4 + 3 * 5 = 19. "yx": the first goes down at once.
    flows = [Flow((0, 0), (1, 1), 10), Flow((0, 0), (0, 3), 10)]
    assert _arrivals_ns((2, 5), routing, flows) == [10, arrival_ns]
