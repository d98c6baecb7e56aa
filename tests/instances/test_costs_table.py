"""Measured tables: reading, interpolation, and no silent extrapolation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.costs import StageCost, TableSpec, make_costs, read_profile, resolve_costs
from instances.errors import InputError
from tests.instances.model_builders import mixed, slow_die
from tests.shared_data import shared_path

ROWS = ((10, 0, 1.0), (10, 100, 2.0), (10, 200, 4.0), (20, 0, 3.0), (20, 100, 5.0))


def table(rows: tuple[tuple[float, float, float], ...] = ROWS) -> StageCost:
    return make_costs(mixed(), TableSpec(rows=rows))


def seconds(cost: StageCost, chunk: Any, prefix: Any, batch: int = 1) -> Any:
    return cost.stage_seconds(slow_die(), 0, 5, batch, chunk, prefix)


def test_measured_points_come_back() -> None:
    for chunk, prefix, time in ROWS:
        assert seconds(table(), chunk, prefix) == time


def test_interpolation_by_hand() -> None:
    # Along the prefix: half-way between 2 and 4. Along the chunk: half-way between 1 and 3. Both: rows at prefix 50
    # are 1.5 and 4; three tenths of the way from 10 to 20 gives 1.5 + 0.3*2.5.
    assert seconds(table(), 10, 150) == pytest.approx(3)
    assert seconds(table(), 15, 0) == pytest.approx(2)
    assert seconds(table(), 13, 50) == pytest.approx(2.25)
    # Stages share by layers, sequences add up.
    assert table().stage_seconds(slow_die(), 0, 2, 3, 15, 0) == pytest.approx(2 * 3 * 2 / 5)


def test_arrays_broadcast() -> None:
    grid = seconds(table(), np.array([[10], [13], [20]]), np.array([0, 50, 100, 50]))
    assert grid.shape == (3, 4)
    assert grid[1].tolist() == pytest.approx([1.6, 2.25, 2.9, 2.25])


@given(st.floats(10, 20), st.floats(0, 100))
def test_a_plane_is_met_exactly(chunk: float, prefix: float) -> None:
    rows = tuple((c, p, 1 + 2 * c + 3 * p) for c in (10.0, 14.0, 20.0) for p in (0.0, 30.0, 100.0))
    assert seconds(table(rows), chunk, prefix) == pytest.approx(1 + 2 * chunk + 3 * prefix)


@pytest.mark.parametrize(
    ("chunk", "prefix", "message"),
    [
        (9, 0, "chunk of 10..20"),
        (21, 0, "chunk of 10..20"),
        (10, 201, "0..200 at 10"),
        (15, 150, "0..200 at 10, 0..100 at 20"),
        ([10, 20], [200, 101], "0..100 at 20"),
    ],
)
def test_outside_is_refused(chunk: Any, prefix: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"{message}.*never extrapolated"):
        seconds(table(), chunk, prefix)


def test_one_chunk_size_answers_for_itself_only() -> None:
    single = table(((10, 0, 1.0), (10, 100, 2.0)))
    assert seconds(single, 10, 50) == pytest.approx(1.5)
    with pytest.raises(InputError, match="never extrapolated"):
        seconds(single, 11, 50)


@pytest.mark.parametrize(
    ("header", "scale"),
    [
        ("chunk,prefix,seconds", 1),
        ("chunk_tokens, prefix_tokens, time_ms", 1e3),
        ("Chunk,Prefix,Time (us)", 1e6),
        ("prefix,chunk,ns", 1e9),
        # Micro as the Greek letter of many keyboards, and as the sign.
        ("chunk,prefix,time_\u03bcs", 1e6),
        ("chunk,prefix,t [\u00b5s]", 1e6),
    ],
)
def test_units_and_order_are_in_the_header(tmp_path: Path, header: str, scale: float) -> None:
    file = tmp_path / "profile.csv"
    first, second = ("100", "10") if header.startswith("prefix") else ("10", "100")
    file.write_text(f"{header}\n{first},{second},{2 * scale}\n\n", encoding="utf-8-sig")
    profile = read_profile(file)
    assert profile.rows()[0] == pytest.approx((10, 100, 2))
    assert len(profile.rows()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header"),
        ("chunk,prefix\n1,2\n", "header"),
        ("chunk,prefix,seconds,batch\n1,2,3,4\n", "batch"),
        ("chunk,prefix,time\n1,2,3\n", "time"),
        ("chunk,prefix,seconds,ms\n1,2,3,4\n", "ms"),
        # Neither is a time in seconds.
        ("chunk,prefix,time/s\n1,2,3\n", "time/s"),
        ("chunk,prefix,time_\ufffds\n1,2,3\n", "header"),
        ("chunk;prefix;seconds\n1;2;3\n", "separated by commas"),
        ("chunk,prefix,seconds\n", "at least one"),
        ("chunk,prefix,seconds\n1,2\n", "line 2"),
        ("chunk,prefix,seconds\n1,2,x\n", "line 2"),
        ("chunk,prefix,seconds\n1,2,nan\n", "finite"),
        ("chunk,prefix,seconds\n0,2,3\n", "chunk > 0"),
        ("chunk,prefix,seconds\n1,2,3\n1,2,4\n", "once"),
        ("chunk,prefix,seconds\n1,2,1e300\n", "1000000 s"),
        ("chunk,prefix,seconds\n1,2,1e-300\n", "1e-12"),
        ("chunk,prefix,seconds\n1,1e300,3\n", "whole tokens"),
        ("chunk,prefix,seconds\n1e-300,2,3\n", "whole tokens"),
        (f"chunk,prefix,seconds\n{'9' * 200_000},2,3\n", "comma-separated"),
    ],
)
def test_broken_files_are_refused_with_their_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "broken.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_profile(file)
    assert "broken.csv" in str(caught.value)


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="existing file"):
        read_profile(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        read_profile(tmp_path / "binary.csv")
    with pytest.raises(InputError, match="null"):
        read_profile(tmp_path / "null\0.csv")


def test_a_path_is_resolved_to_rows(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("chunk,prefix,ms\n10,0,1000\n20,0,3000\n", encoding="utf-8")
    data = resolve_costs({"kind": "table", "path": "p.csv"}, tmp_path)
    assert TableSpec.parse(data) == TableSpec(rows=((10, 0, 1.0), (20, 0, 3.0)))
    assert seconds(make_costs(mixed(), TableSpec.parse(data)), 15, 0) == pytest.approx(2)
    assert seconds(make_costs(mixed(), TableSpec(path="p.csv"), tmp_path), 15, 0) == pytest.approx(2)
    assert resolve_costs({"kind": "roofline"}, tmp_path) == {"kind": "roofline"}


@pytest.mark.parametrize("data", [{}, {"path": "a.csv", "rows": [[1, 0, 1]]}, {"rows": []}, {"rows": [[1, 0, 0]]}])
def test_a_table_has_one_source(data: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TableSpec.parse({"kind": "table", **data})


def test_measured_chunks_interpolate_within_their_neighbours() -> None:
    """Measured attention of Qwen3-32B (one layer): a left-out chunk size lies between its neighbours' estimate."""
    lines = shared_path("data/measured/rtxpro6000-qwen3-32b-attention.csv").read_text(encoding="utf-8").splitlines()
    rows = [tuple(float(cell) for cell in line.split(",")) for line in lines[1:]]
    left_out = [row for row in rows if row[0] == 1024 and row[1] in (2048, 8192)]
    kept = tuple((c, p, us) for c, p, us in rows if c != 1024)
    for chunk, prefix, us in left_out:
        assert seconds(table(kept), chunk, prefix) == pytest.approx(us, rel=0.08)
    assert len(left_out) == 2
