"""The longest request: CP-SAT, MILP and every plan of every length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.capacity.solve import FORMS, CapacityResult, longest_request
from formulations.capacity.variables import Latency
from formulations.interface import Engine, EngineLimits
from instances.errors import InputError
from instances.instance import Instance
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from solver.evaluate import Evaluator
from tests.formulations.joint_cases import best_values, equal_requests
from tests.tiny import line

LIMITS = EngineLimits(time_s=20.0, deterministic=True)
ENGINES: dict[str, Engine] = {"cpsat": solve_cpsat, "milp": solve_highs}


def _longest(instance: Instance, most: int, latency_s: Latency | None = None) -> tuple[CapacityResult, CapacityResult]:
    whole, linear = (
        longest_request(instance, form, ENGINES[form], LIMITS, most, latency_s=latency_s) for form in FORMS
    )
    assert (whole.tokens, whole.bound_tokens, whole.status) == (linear.tokens, linear.bound_tokens, linear.status)
    assert whole.status in ("optimal", "infeasible")
    assert whole.bound_tokens == (whole.tokens or 0)
    assert whole.gap in (None, 0.0)
    return whole, linear


def _values(instance: Instance, most: int, *, spill: bool) -> dict[int, float]:
    """Best value of each length that has a plan."""
    workload, quantum = instance.workload, instance.pipeline.chunk_quantum
    found = {}
    for tokens in range(workload.cached_tokens + quantum, workload.cached_tokens + most * quantum + 1, quantum):
        best = best_values(instance.with_tokens(tokens), spill=spill)
        if best:
            found[tokens] = min(best.values())
    return found


def _budget(seed: int, values: dict[int, float]) -> float:
    """A budget that some lengths keep and others do not, mostly."""
    rng = np.random.default_rng(seed)
    return float(rng.choice(list(values.values()))) * float(rng.choice([0.9, 1.0, 1.1])) if values else 1.0


@settings(max_examples=100)
@given(seed=st.integers(0, 10**6))
def test_under_a_budget_every_plan_and_both_models_agree(seed: int) -> None:
    """With memory to spare and transfers that do not meet, the model is exact."""
    instance = equal_requests(seed, tight=False)
    values = _values(instance, 3, spill=False)
    budget = _budget(seed, values)
    fits = [tokens for tokens, value in values.items() if value <= budget * (1 + 1e-12)]
    for result in _longest(instance, 3, lambda tokens: budget):
        assert result.tokens == max(fits, default=None)
        if result.tokens is not None:
            assert result.plan is not None
            value = Evaluator(instance.with_tokens(result.tokens)).value(result.plan)
            assert value is not None
            assert value <= budget * (1 + 1e-9)


@settings(max_examples=100)
@given(seed=st.integers(0, 10**6))
def test_where_memory_binds_no_plan_is_longer(seed: int) -> None:
    instance = equal_requests(seed, tight=True)
    most = 3 if instance.pipeline.stages < 3 else 2
    values = _values(instance, most, spill=True)
    budget = _budget(seed, values) if seed % 2 else None
    fits = [tokens for tokens, value in values.items() if budget is None or value <= budget]
    for result in _longest(instance, most, None if budget is None else lambda tokens: budget or 0.0):
        assert (result.tokens or 0) >= max(fits, default=0)


def _line(tokens: int, **parts: Any) -> Instance:
    """Two stages of one layer, one request, chunks of a token, a second each; links take no time."""
    return line([1, 1], fitted={"token_s": 2.0}, workload={"requests": 1, "tokens": tokens}, **parts)


def test_longest_by_hand() -> None:
    # n tokens take n + 1 s in single chunks: 4 within 5.5 s. The objective of capacity is the mean latency.
    instance = _line(2, pipeline={"max_chunks": 8}, objective="max_tokens")
    for result in _longest(instance, 8, lambda tokens: 5.5):
        assert result.tokens == 4
        assert result.plan is not None
        assert result.plan.instance == instance.with_tokens(4).fingerprint
    # Nothing is as fast as that.
    for result in _longest(instance, 8, lambda tokens: 0.5):
        assert (result.tokens, result.plan, result.bound_tokens, result.status) == (None, None, 0, "infeasible")
    # Without a budget the most that was asked for.
    for result in _longest(instance, 6):
        assert result.tokens == 6


def test_capacity_is_forequal_requests() -> None:
    trace = line([1, 1], workload={"trace": [{"arrival_s": 0.0, "tokens": 4}]})
    with pytest.raises(InputError, match="equal requests"):
        longest_request(trace, "milp", solve_highs, LIMITS, 3)
