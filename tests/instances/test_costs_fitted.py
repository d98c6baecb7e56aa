"""The fitted cost model."""

from __future__ import annotations

import pytest

from instances.costs import FittedSpec, make_costs
from instances.errors import InputError
from tests.instances.model_builders import DENSE, mixed, one_kind, slow_die

SPEC = FittedSpec(chunk_s=100, prefix_s=7, token_s=5, pair_s=3)


def test_the_formula_by_hand() -> None:
    cost = make_costs(mixed(), SPEC)
    # 100 + 7*10 + 5*2 + 3*(2*10*2 + 2*2) = 312 for five layers.
    assert cost.stage_seconds(slow_die(), 0, 5, 1, 2, 10) == pytest.approx(312)
    assert cost.stage_seconds(slow_die(), 1, 3, 1, 2, 10) == pytest.approx(312 * 2 / 5)
    # Two sequences: the overhead once, the rest twice.
    assert cost.stage_seconds(slow_die(), 0, 5, 2, 2, 10) == pytest.approx(100 + 2 * 212)


def test_overheads_head_and_die_are_in_it_already() -> None:
    cost = make_costs(mixed(), SPEC)
    die = slow_die(peak_flops=1, chunk_overhead_s=50)
    assert cost.stage_seconds(die, 0, 5, 1, 2, 10, head=True) == pytest.approx(312)
    assert cost.head_seconds(die, 1) == 0
    assert cost.stage_seconds(die, 0, 5, 1, [[2], [2]], 10, head=[False, True, True]).shape == (2, 3)
    with pytest.raises(InputError, match="roofline"):
        cost.layer_seconds(die, "local", 1, 1, 0)


def test_linear_layers_are_welcome() -> None:
    model = one_kind({"kind": "linear", "name": "mamba2", "parameters": 9}, DENSE)
    assert make_costs(model, SPEC).stage_seconds(slow_die(), 0, 1, 1, 2, 10) == pytest.approx(156)


def test_coefficients_take_units_and_may_not_be_negative() -> None:
    spec = FittedSpec.parse({"kind": "fitted", "chunk_s": "2 ms", "prefix_s": 0, "token_s": "1 us", "pair_s": 1e-9})
    assert (spec.chunk_s, spec.token_s) == (0.002, 1e-6)
    with pytest.raises(InputError, match="pair_s"):
        FittedSpec.parse({"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 0, "pair_s": -1})
