"""``pool``, ``host`` and ``pool+host`` as methods: who keeps what, and what it costs."""

from typing import Any

import pytest

from instances.errors import InputError
from solver.api import solve
from solver.limits import Limits
from tests.solver.test_exact import with_memory_for

HOST = {"host_bytes": "1 GB", "host_bytes_per_s": "64 GB/s"}


@pytest.mark.parametrize(
    ("method", "allowed"), [("pool", {0, 1, 2, 3}), ("host", {"host"}), ("pool+host", {0, 1, 2, 3, "host"})]
)
def test_each_spills_where_it_may_and_no_further(method: str, allowed: set[Any]) -> None:
    instance = with_memory_for(6, pipeline__max_batch=1, hardware__host=HOST)
    result = solve(instance, method, limits=Limits(time_s=20))
    assert result.plan is not None
    creditors = {row.creditor for row in result.plan.spill}
    assert creditors
    assert creditors <= allowed
    assert result.objective.value is not None
    assert 23.0 <= result.objective.value < 30.0  # 23 s is the optimum without a memory limit


def test_a_pool_cannot_hold_what_all_dies_cannot() -> None:
    # 8 chunks a stage and wave, room for 3 on each die: pools hold 12 of the 26 needed at once, the host the rest.
    instance = with_memory_for(3, pipeline__max_batch=1, hardware__host=HOST)
    assert solve(instance, "pool", limits=Limits(time_s=10)).plan is None
    assert solve(instance, "pool+host", limits=Limits(time_s=20)).plan is not None


def test_where_memory_is_ample_nothing_is_spilled() -> None:
    result = solve(with_memory_for(100, pipeline__max_batch=1), "pool", limits=Limits(time_s=10))
    assert result.plan is not None
    assert result.plan.spill == ()
    assert result.objective.value == pytest.approx(23.0)


@pytest.mark.parametrize("method", ["host", "pool+host"])
def test_a_host_that_is_not_there_is_bad_input(method: str) -> None:
    with pytest.raises(InputError, match=r"hardware\.host"):
        solve(with_memory_for(6), method, limits=Limits(time_s=5))
