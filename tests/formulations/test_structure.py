"""Reasons that rule out every plan: islands of dies, cuts that contradict the split."""

import pytest

from formulations.structure import islands, structural_reason
from solver.api import solve
from solver.limits import Limits
from tests.builders import small_instance


def test_islands_of_a_line_with_a_dead_die() -> None:
    """1x4 without die 1: die 0 alone, dies 2 and 3 together."""
    instance = small_instance(
        hardware__rows=1, hardware__columns=4, hardware__disabled_dies=[[0, 1]], pipeline__stages=2
    )
    assert islands(instance) == [[(0, 2), (0, 3)], [(0, 0)]]
    assert structural_reason(instance) is None
    result = solve(instance, limits=Limits(time_s=5))
    assert result.plan is not None
    assert set(result.plan.placement) == {(0, 2), (0, 3)}


def test_too_few_joined_dies() -> None:
    instance = small_instance(
        hardware__rows=1, hardware__columns=4, hardware__disabled_dies=[[0, 1]], pipeline__stages=3
    )
    assert structural_reason(instance) == "placement_connected: 3 stages, and links join at most 2 enabled dies"
    result = solve(instance, limits=Limits(time_s=5))
    assert (result.status, result.stop_reason) == ("infeasible", "proved")


@pytest.mark.parametrize(
    ("pipeline", "reason"),
    [
        # Four layers on two stages: balanced cuts at layer 2.
        ({"stages": 2, "forbidden_cuts": [2]}, "forbidden_cuts: the layer split [2, 2] starts a stage at layer 2"),
        ({"stages": 2, "forbidden_cuts": [1, 3]}, None),
        ({"stages": 2, "forbidden_cuts": [1, 2, 3], "layers": "free"}, "forbidden_cuts: 1 cuts are needed, and 0"),
        ({"stages": 2, "forbidden_cuts": [2], "layers": "free"}, None),
    ],
)
def test_forbidden_cuts(pipeline: dict[str, object], reason: str | None) -> None:
    changes = {f"pipeline__{name}": value for name, value in pipeline.items()}
    found = structural_reason(small_instance(**changes))
    assert found is None if reason is None else found is not None and found.startswith(reason)
    status = solve(small_instance(**changes), limits=Limits(time_s=5)).status
    assert (status == "infeasible") == (reason is not None)
