"""The bound of a capacity table: what the search over lengths proves, and what it speaks about."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.capacity import bound
from solver.capacity.api import capacity
from solver.capacity.length import Setting
from solver.limits import Limits
from tests.solver.test_capacity import KV_BYTES, roomy_by
from tests.solver.test_capacity_rows import reached, rows

EQUAL: dict[str, Any] = {"equal_chunks": True, "latency_budget": 0.1}


@settings(max_examples=300)
@given(data=st.data())
def test_every_length_above_the_bound_was_refuted(data: st.DataObject) -> None:
    """Lengths are refuted at random, far ones surely; a block only if all in it are, and not always then."""
    most = data.draw(st.integers(1, 60))
    running = {size for size in data.draw(st.sets(st.integers(1, most))) if size <= most}
    at = data.draw(st.integers(0, most))
    draws: dict[tuple[int, int, int], bool] = {}

    def refuted(setting: Setting, low: int, latency_s: float | None, halvings: int) -> bool:
        assert latency_s is not None
        high = int(latency_s)
        if any(low <= size <= high for size in running):
            return False
        if high > low or not halvings:
            return draws.setdefault((low, high, halvings), data.draw(st.booleans()))
        return True

    limits = Limits(time_s=60)
    setting = Setting(roomy_by(1024), 4, 1, limits, limits.start(), equal=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bound, "_refuted", refuted)
        found = bound.bound_steps(setting, at, most, float)
    assert found == max((size for size in running if size > at), default=at)


def test_tables_that_are_faster_for_larger_chunks() -> None:
    # One stage, 4 chunks: 80, 96 and 112 tokens take ten times as long as they should, so 256 and 512 tokens run well.
    slow = {80, 96, 112}
    table = [
        [chunk, prefix, 1e-4 * chunk * (10 if chunk in slow else 1)]
        for chunk in range(16, 1616, 16)
        for prefix in (0, 1600, 6400)
    ]
    instance = roomy_by(4 * 530, pipeline__stages=1, costs={"kind": "table", "rows": table})
    found = rows(instance, "none", **EQUAL)["none"]
    assert reached(found) == 512
    assert found.bound_tokens is not None
    assert found.bound_tokens >= 512


def test_a_host_changes_nothing_for_rows_without_it() -> None:
    host = {"host_bytes": 4096 * KV_BYTES, "host_bytes_per_s": "64 GB/s"}
    without = rows(roomy_by(1024), "none", "pool", **EQUAL)
    beside = rows(roomy_by(1024, hardware__host=host), "none", "pool", **EQUAL)
    assert without["pool"].bound_tokens is not None
    assert beside["pool"].bound_tokens == without["pool"].bound_tokens


def test_no_bound_where_no_row_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("solver.capacity.api.bound_steps", never)
    layers = [{"pattern": ["layer"], "repeat": 8}]
    found = capacity(roomy_by(1024, model__layers=layers), ["vpp-packed"], chunks=4, limits=Limits(time_s=60), **EQUAL)
    assert found.methods[0].bound_tokens is None
