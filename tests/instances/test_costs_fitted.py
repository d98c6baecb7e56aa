"""The fitted cost model, and fitting it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.costs import FittedSpec, Profile, fit_profile, make_costs
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


def profile_of(spec: FittedSpec, noise: float = 0.0) -> Profile:
    cost = make_costs(mixed(), spec)
    rows = []
    for index, chunk in enumerate((64, 128, 512, 2048)):
        for prefix in (0, 1024, 16384):
            seconds = float(cost.stage_seconds(slow_die(), 0, 5, 1, chunk, prefix))
            rows.append((chunk, prefix, seconds * (1 + noise * (-1) ** index)))
    return Profile.from_rows(rows, where="rows")


@given(st.tuples(*[st.floats(0.5, 2)] * 4), st.sampled_from([None, 0, 1, 2]))
def test_exact_rows_give_their_coefficients_back(factors: tuple[float, ...], absent: int | None) -> None:
    truth = np.array([1e-3, 1e-7, 1e-6, 1e-10]) * np.array(factors)
    if absent is not None:
        truth[absent] = 0
    spec = FittedSpec(chunk_s=truth[0], prefix_s=truth[1], token_s=truth[2], pair_s=truth[3])
    fit = fit_profile(profile_of(spec))
    found = [fit.spec.chunk_s, fit.spec.prefix_s, fit.spec.token_s, fit.spec.pair_s]
    assert found == pytest.approx(truth.tolist(), rel=1e-6, abs=1e-16)
    assert fit.worst_error < 1e-9


def test_residuals_are_reported() -> None:
    fit = fit_profile(profile_of(FittedSpec(chunk_s=1e-3, prefix_s=1e-7, token_s=1e-6, pair_s=1e-10), noise=0.1))
    assert 0.02 < fit.median_error <= fit.worst_error < 0.2
    assert len(fit.relative_errors) == 12


def test_rows_that_cannot_tell_are_refused() -> None:
    # Without a prefix the second coefficient could be anything.
    rows = [(chunk, 0, 1.0 + chunk) for chunk in (1, 2, 3, 4, 5)]
    with pytest.raises(InputError, match="several prefixes"):
        fit_profile(Profile.from_rows(rows, where="rows"))
