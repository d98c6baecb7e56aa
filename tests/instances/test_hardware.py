"""Hardware: the grid over all wafers, dead parts, dies that differ, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from instances.errors import InputError
from instances.hardware import MAX_DIES, Hardware
from tests.builders import changed

DIE: dict[str, Any] = {"peak_flops": "1 TFLOP/s", "hbm_bytes": "1 GB", "hbm_bytes_per_s": "2 TB/s"}
GRID: dict[str, Any] = {"rows": 2, "columns": 3, "link_bytes_per_s": "100 GB/s", "die": DIE}


def _read(**changes: Any) -> Hardware:
    return Hardware.parse(changed(GRID, changes))


def test_defaults() -> None:
    hardware = _read()
    assert (hardware.wafers, hardware.hop_latency_s, hardware.host) == ((1, 1), 0, None)
    assert (hardware.disabled_dies, hardware.disabled_links, hardware.dies) == ((), (), ())
    die = hardware.die
    assert (die.gemm_efficiency, die.attention_efficiency, die.hbm_efficiency) == (1, 1, 1)
    assert (die.layer_overhead_s, die.chunk_overhead_s) == (0, 0)


def test_rows_and_columns_are_per_wafer() -> None:
    hardware = _read(wafers=[2, 3])
    # 2 rows on each of 2 wafers below each other, 3 columns on each of 3 side by side.
    assert (hardware.total_rows, hardware.total_columns, len(hardware.live_dies)) == (4, 9, 36)
    mesh = hardware.mesh()
    assert (mesh.rows, mesh.columns, mesh.wafer_rows, mesh.wafer_columns) == (4, 9, 2, 3)
    assert mesh.crosses_wafers(((1, 0), (2, 0))) and mesh.crosses_wafers(((0, 2), (0, 3)))
    assert not mesh.crosses_wafers(((0, 0), (1, 0)))


def test_seams_are_as_fast_as_other_links_unless_given() -> None:
    assert _read(wafers=[1, 2]).seam_bytes_per_s == 100e9
    assert _read(wafers=[1, 2], wafer_link_bytes_per_s="10 GB/s").seam_bytes_per_s == 10e9


def test_dead_parts_reach_the_mesh() -> None:
    hardware = _read(disabled_dies=[[0, 1]], disabled_links=[[[1, 0], [1, 1]]])
    assert hardware.live_dies == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]
    mesh = hardware.mesh()
    assert list(mesh.live_dies) == hardware.live_dies
    # (1,0) has lost its link east, and (0,0) its neighbour east: nothing else joins them to the rest.
    assert set(mesh.links) == {
        ((0, 0), (1, 0)),
        ((1, 0), (0, 0)),
        ((0, 2), (1, 2)),
        ((1, 2), (0, 2)),
        ((1, 1), (1, 2)),
        ((1, 2), (1, 1)),
    }


def test_a_torus_joins_the_ends_of_rows_and_columns() -> None:
    around = [[[0, 0], [0, 2]]]
    with pytest.raises(InputError, match="two neighbouring dies"):
        _read(disabled_links=around)
    hardware = _read(topology="torus", disabled_links=around)
    assert hardware.mesh().topology == "torus"
    assert (0, 2) not in hardware.mesh().neighbours((0, 0))
    assert (1, 2) in hardware.mesh().neighbours((1, 0))


def test_overrides_change_one_die_in_the_named_fields() -> None:
    hardware = _read(dies=[{"at": [1, 2], "hbm_bytes": "500 MB", "gemm_efficiency": 0.5}, {"at": [0, 0]}])
    special = hardware.die_at((1, 2))
    assert (special.hbm_bytes, special.gemm_efficiency) == (500e6, 0.5)
    assert (special.peak_flops, special.hbm_bytes_per_s, special.hbm_efficiency) == (1e12, 2e12, 1)
    assert hardware.die_at((0, 0)) == hardware.die_at((1, 1)) == hardware.die


def test_an_overhead_of_zero_is_an_override() -> None:
    hardware = _read(die__layer_overhead_s="1 us", dies=[{"at": [0, 0], "layer_overhead_s": 0}])
    assert (hardware.die_at((0, 0)).layer_overhead_s, hardware.die_at((0, 1)).layer_overhead_s) == (0, 1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "rows: 0 is not allowed; expected a number of at least 1"),
        ({"columns": -1}, "columns: -1 is not allowed"),
        ({"rows": 2.0}, "rows: 2.0 is not allowed; expected a whole number"),
        ({"wafers": [1, 0]}, "wafers.1: 0 is not allowed"),
        ({"wafers": [2]}, "wafers: [2] is not allowed; expected a list of 2 entries"),
        ({"rows": 10**400}, f"expected a number of at most {MAX_DIES}"),
        # 1000 x 3 dies on each of 100 wafers.
        ({"rows": 1000, "wafers": [100, 1]}, "rows: 1000 is not allowed; expected at most 100000 dies in the whole"),
        ({"link_bytes_per_s": 0}, "link_bytes_per_s: 0 is not allowed; expected a number greater than 0"),
        ({"hop_latency_s": "-1 ns"}, "hop_latency_s: '-1 ns' is not allowed; expected a number of at least 0"),
        ({"disabled_dies": [[2, 0]]}, "disabled_dies.0: [2, 0] is not allowed; expected [row, column] inside the 2x3"),
        ({"disabled_dies": [[0, 3]]}, "disabled_dies.0: [0, 3] is not allowed"),
        ({"disabled_dies": [[-1, 0]]}, "disabled_dies.0.0: -1 is not allowed"),
        ({"disabled_dies": [0, 1]}, "disabled_dies.0: 0 is not allowed; expected a list"),
        (
            {"disabled_links": [[[0, 0], [1, 1]]]},
            "disabled_links.0: [[0, 0], [1, 1]] is not allowed; expected two neig",
        ),
        ({"disabled_links": [[[0, 0], [0, 2]]]}, "expected two neighbouring dies"),
        ({"disabled_links": [[[0, 0], [0, 0]]]}, "expected two neighbouring dies"),
        ({"disabled_links": [[[1, 0], [2, 0]]]}, "disabled_links.0.1: [2, 0] is not allowed"),
        ({"disabled_links": [[0, 0], [0, 1]]}, "disabled_links.0.0: 0 is not allowed; expected a list"),
        ({"topology": "ring"}, "topology: 'ring' is not allowed; expected 'mesh', 'torus' or 'switch'"),
        ({"topology": "switch", "disabled_links": [[[0, 0], [0, 1]]]}, "expected an empty list with a switch"),
        ({"topology": "switch", "wafer_link_bytes_per_s": 1}, "expected null: a switch has no seams"),
        ({"dies": [{"at": [2, 0]}]}, "dies.0.at: [2, 0] is not allowed"),
        ({"dies": [{"at": [0, 0]}, {"at": [0, 0]}]}, "dies: [[0, 0], [0, 0]] is not allowed; expected each die"),
        ({"dies": [{"hbm_bytes": 1}]}, "dies.0.at: nothing is given"),
        ({"dies": [{"at": [0, 0], "hbm": 1}]}, "dies.0.hbm: 1 is not allowed; expected one of the keys at, peak_flops"),
        ({"die__gemm_efficiency": 0}, "die.gemm_efficiency: 0 is not allowed; expected a number of at least 1e-09"),
        ({"die__attention_efficiency": 1.01}, "die.attention_efficiency: 1.01 is not allowed; expected a number of at"),
        ({"die__hbm_efficiency": True}, "die.hbm_efficiency: true is not allowed; expected a number"),
        ({"die__hbm_bytes": ...}, "die.hbm_bytes: nothing is given"),
        ({"host": {"host_bytes": "1 TB"}}, "host.host_bytes_per_s: nothing is given"),
        ({"host": {"host_bytes": 0, "host_bytes_per_s": 1}}, "host.host_bytes: 0 is not allowed"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        _read(**changes)


def test_limits_are_allowed() -> None:
    hardware = _read(rows=100, columns=100, wafers=[10, 1], die__gemm_efficiency=1, disabled_dies=[[999, 99]])
    assert len(hardware.live_dies) == MAX_DIES - 1
