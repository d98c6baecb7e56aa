"""Program documents: what is read, what is refused, and how the refusal reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from instances.errors import InputError
from solver.simulation.program_file import read_program, replay_document
from tests.solver.simulation.documents import line, spill, times_s

GOOD = line([[1, 2], [3, 4]], kv_bytes=[[2, 2], [2, 2]], spill=[spill(0, 0, 1, 1)], capacity_bytes=[9, 9])


def _refused(document: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read_program(document, file="p.json")
    assert str(caught.value).startswith("p.json: ")
    return caught.value


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"compute_s": [[1, 2]]}, "compute_s"),
        ({"not_before_s": [[1, 2]]}, "not_before_s"),
        ({"not_before_s": [[1, 2], [1]]}, "not_before_s (wave 0, stage 1)"),
        ({"not_before_s": [[1, 2], [1, -1]]}, "not_before_s[1][1]"),
        ({"not_before_s": [[[1, 2], [1, 2]]] * 2}, "not_before_s"),
        ({"not_before_s": 3}, "not_before_s"),
        ({"compute_s": [[1, 2], [3]]}, "compute_s (wave 0, stage 1)"),
        ({"compute_s": [[1, -2], [3, 4]]}, "compute_s[0][1]"),
        ({"compute_s": [[1, math.nan], [3, 4]]}, "compute_s[0][1]"),
        ({"compute_s": [[1, "2"], [3, 4]]}, "compute_s[0][1]"),
        ({"compute_s": [[1, True], [3, 4]]}, "compute_s[0][1]"),
        ({"compute_s": 3}, "compute_s"),
        ({"kv_bytes": [[2, 2], [2, 2, 2]]}, "kv_bytes (wave 0, stage 1)"),
        ({"kv_bytes": [[2, math.inf], [2, 2]]}, "kv_bytes[0][1]"),
        ({"kv_bytes": [[2, -3], [2, 2]]}, "kv_bytes (wave 0, stage 0, chunk 1)"),
        ({"activation_bytes": [1]}, "activation_bytes"),
        ({"activation_bytes": [1, -1]}, "activation_bytes[1]"),
        ({"arrivals_s": []}, "arrivals_s"),
        ({"arrivals_s": [-1]}, "arrivals_s[0]"),
        ({"die_of": []}, "die_of"),
        ({"die_of": [[0, 0], [0, 0]]}, "die_of"),
        ({"die_of": [[0, 0], [0]]}, "die_of[1]"),
        ({"die_of": [[0, 0], [0, -1]]}, "die_of[1]"),
        ({"link_bytes_per_s": 0}, "link_bytes_per_s"),
        ({"hop_latency_s": -0.1}, "hop_latency_s"),
        ({"capacity_bytes": [9]}, "capacity_bytes"),
        ({"capacity_bytes": [9, None]}, "capacity_bytes[1]"),
        ({"serve_fraction": -1}, "serve_fraction"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"overlap": 1}, "overlap"),
        ({"routing": "zigzag"}, "routing"),
        ({"host": {"host_bytes": 3}}, "host"),
        ({"host": {"host_bytes": 3, "host_bytes_per_s": 0}}, "host.host_bytes_per_s"),
        ({"rows": 0}, "rows"),
        ({"columns": 1}, "columns"),
        ({"disabled_dies": [[0, 1]]}, "disabled_dies[0]"),
        ({"disabled_dies": [[5, 5]]}, "disabled_dies[0]"),
        ({"disabled_links": [[[0, 0], [0, 2]]]}, "disabled_links[0]"),
        ({"disabled_links": [[[0, 0], [0, 1]]]}, "die_of"),
        ({"spill": [spill(2, 0, 1, 1)]}, "spill[0].stage"),
        ({"spill": [spill(0, 0, 2, 1)]}, "spill[0].creditor"),
        ({"spill": [spill(0, 0, 0, 1)]}, "spill[0].creditor"),
        ({"spill": [spill(0, 0, "host", 1)]}, "spill[0].creditor"),
        ({"spill": [spill(0, 1, 1, 1)]}, "spill[0].chunk"),
        ({"spill": [spill(0, 0, 1, -1)]}, "spill[0].bytes"),
        ({"spill": [spill(0, 0, 1, 1), spill(0, 0, 1, 1)]}, "spill[1]"),
        ({"spill": [spill(0, 0, 1, 3)]}, "spill (wave 0, stage 0, chunk 0)"),
        ({"spill": [{"stage": 0}]}, "spill[0]"),
        ({"spil": []}, "spil"),
        ({"compute_s": [[[1, 2], [3, 4]], [[1, 2], [3, 4]]]}, "compute_s"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], field: str) -> None:
    assert _refused(GOOD | change).field == field


@pytest.mark.parametrize("key", ["die_of", "compute_s", "kv_bytes", "arrivals_s", "hop_latency_s"])
def test_a_missing_key_is_named(key: str) -> None:
    assert _refused({name: value for name, value in GOOD.items() if name != key}).field == key


def test_something_else_than_an_object_is_refused() -> None:
    assert "object" in _refused([1, 2]).allowed


def test_amounts_that_cannot_be_kept_exactly_are_refused() -> None:
    # 1e12 bytes in units of 1e-12 bytes need 80 bits.
    assert "62 bits" in _refused(GOOD | {"kv_bytes": [[1e12, 1e-12], [2, 2]]}).allowed


def test_waves_may_differ() -> None:
    # One chunk of 1 s, then two of 2 s: the first wave ends at 1 + 1, the second would end at 1 + 2 + 2 + 2 = 7.
    document = line([[1], [1]], waves=2) | {
        "compute_s": [[[1], [1]], [[2, 2], [2, 2]]],
        "kv_bytes": [[[1], [1]], [[1, 1], [1, 1]]],
        "activation_bytes": [[0], [0, 0]],
        "spill": [spill(0, 0, 1, 1) | {"wave": 1}],
    }
    _, end = times_s(document)
    assert end[0, 1, 0] == 2
    # The write of 1 byte, 3 to 4, is asked for after the activation; its fetch, 4 to 5, stalls stage 1 for 1 s.
    assert end[1, 1, 1] == 8


def test_keys_of_the_outcome() -> None:
    found = replay_document(GOOD)
    assert list(found) == [
        "deadlock",
        "makespan_s",
        "latency_s",
        "peak_memory_bytes",
        "stall_s",
        "start_s",
        "end_s",
    ]
    assert list(found["start_s"]) == ["0,0,0", "0,0,1", "0,1,0", "0,1,1"]


def test_tasks_held_back() -> None:
    """Two waves of one chunk of a second on two stages; stage 1 of wave 0 until 3, all of wave 1 until 5."""
    document = line([[1], [1]], arrivals_s=[0, 2], not_before_s=[[[0], [3]], [[5], [0]]])
    start, end = times_s(document)
    assert (start[0, 0, 0], start[0, 1, 0], start[1, 0, 0], end[1, 1, 0]) == (0, 3, 5, 7)
    # A latency counts from the arrival, whatever holds tasks back.
    assert replay_document(document)["latency_s"] == [4, 5]
    # One table holds every wave back.
    start, _ = times_s(line([[1], [1]], waves=2, not_before_s=[[1], [4]]))
    assert [start[wave, stage, 0] for wave in (0, 1) for stage in (0, 1)] == [1, 4, 2, 5]


def test_an_empty_spill_writes_nothing() -> None:
    assert len(read_program(GOOD | {"spill": [spill(0, 0, 1, 0)]}).write_units) == 0


def test_times_beyond_the_clock_are_refused() -> None:
    # 1 byte at 1e-9 bytes/s takes 1e9 s, which is 1e21 ps.
    assert "picoseconds" in str(_refused(GOOD | {"link_bytes_per_s": 1e-9}))
    assert _refused(GOOD | {"compute_s": [[1, 1e6], [1e6, 1e6]]}).field == "compute_s"


@pytest.mark.parametrize("number", [1e300, 10**30, 10**400])
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("hop_latency_s", lambda number: {"hop_latency_s": number}),
        ("link_bytes_per_s", lambda number: {"link_bytes_per_s": 2 * number}),
        ("serve_fraction", lambda number: {"serve_fraction": number}),
        ("max_in_flight", lambda number: {"max_in_flight": number}),
        ("arrivals_s[0]", lambda number: {"arrivals_s": [number]}),
        ("compute_s[0][1]", lambda number: {"compute_s": [[1, number], [3, 4]]}),
        ("kv_bytes[0][1]", lambda number: {"kv_bytes": [[1, number], [3, 4]]}),
        ("kv_bytes[0][0]", lambda number: {"kv_bytes": [[-number, 1], [3, 4]]}),
        ("activation_bytes[1]", lambda number: {"activation_bytes": [1, number]}),
        ("capacity_bytes[0]", lambda number: {"capacity_bytes": [number, 1]}),
        ("static_bytes[1]", lambda number: {"static_bytes": [1, number]}),
        ("host.host_bytes", lambda number: {"host": {"host_bytes": number, "host_bytes_per_s": 1}}),
        ("host.host_bytes_per_s", lambda number: {"host": {"host_bytes": 1, "host_bytes_per_s": 2 * number}}),
        ("spill[0].bytes", lambda number: {"spill": [spill(0, 0, 1, number)]}),
        ("rows", lambda number: {"rows": number}),
        ("columns", lambda number: {"columns": number}),
        ("die_of[1]", lambda number: {"die_of": [[0, 0], [0, number]]}),
        ("disabled_dies[0]", lambda number: {"disabled_dies": [[0, number]]}),
    ],
)
def test_absurd_numbers_are_named(field: str, change: Callable[[float], dict[str, Any]], number: float) -> None:
    assert _refused(GOOD | change(number)).field == field


@pytest.mark.parametrize("field", ["link_bytes_per_s", "host.host_bytes_per_s"])
def test_links_that_hardly_move_are_named(field: str) -> None:
    change = (
        {"link_bytes_per_s": 1e-300}
        if field == "link_bytes_per_s"
        else {"host": {"host_bytes": 1, "host_bytes_per_s": 1e-300}}
    )
    assert _refused(GOOD | change).field == field


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("link_bytes_per_s", {"link_bytes_per_s": 1e-8, "activation_bytes": [1e6, 1]}),
        ("hop_latency_s", {"hop_latency_s": 1e6}),
        ("serve_fraction", {"serve_fraction": 1000, "link_bytes_per_s": 1e-4, "spill": [spill(0, 0, 1, 1)]}),
    ],
)
def test_the_field_behind_a_clock_that_overflows_is_named(field: str, change: dict[str, Any]) -> None:
    assert _refused(GOOD | change).field == field
