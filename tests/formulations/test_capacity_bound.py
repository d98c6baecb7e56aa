"""The proved bound on lengths: real sizes, small ones that run, and both of its models."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.capacity import peak_cpsat, peak_milp
from formulations.capacity.bound import FORMS, LengthBound, equal_sizes, longest_not_refuted
from formulations.capacity.peak import PeakProblem, peak_problem
from formulations.interface import Engine, EngineLimits
from instances.errors import InputError
from instances.instance import Instance
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from solver.evaluate import Evaluator
from tests.brute_force import every_plan
from tests.formulations.joint_cases import equal_requests
from tests.tiny import line

LIMITS = EngineLimits(time_s=20.0, deterministic=True)
ENGINES: dict[str, Engine] = {"cpsat": solve_cpsat, "milp": solve_highs}

QUANTUM = 500_000
"""Tokens; 20 quanta a chunk are what a die has memory for 16 times."""


def _sixteen(objective: str, quanta: int = 20) -> Instance:
    """Sixteen stages, four requests in sixteen chunks: a second for 20 quanta, memory for 16 chunks of so many."""
    return line(
        [1] * 16,
        fitted={"token_s": 16 / (20 * QUANTUM)},
        model={"activation_bytes": 1 / 128},
        hardware={"rows": 4, "columns": 4, "die": {"hbm_bytes": 30 + (16 * 2 + 5 / 128) * 20 * QUANTUM}},
        workload={"requests": 4, "tokens": 16 * quanta * QUANTUM},
        pipeline={"chunk_quantum": QUANTUM, "max_chunks": 16},
        objective=objective,
    )


@pytest.mark.parametrize(
    ("objective", "unlimited"),
    # Without a limit the last of four waves ends after 4*16 + 15 = 79 chunks, the four after 31, 47, 63 and 79: 55 in
    # the mean; 15 transfers of a hundredth of a chunk come on top.
    [("makespan", 79.15), ("mean_latency", 55.15)],
)
def test_sixteen_stages_within_five_percent(objective: str, unlimited: float) -> None:
    """No plan in sixteen equal chunks is longer than 1.9 times what fits without spill; pools reach 1.75 times."""

    def latency_s(tokens: int) -> float:
        return 1.05 * unlimited * tokens / (16 * 20 * QUANTUM)

    lengths = [16 * quanta * QUANTUM for quanta in (35, 37, 38, 39, 40, 45, 64, 320)]
    found = longest_not_refuted(
        _sixteen(objective), lengths, 16, latency_s, "cpsat", solve_cpsat, EngineLimits(time_s=60.0, deterministic=True)
    )
    assert found.tokens == 1.9 * 16 * 20 * QUANTUM
    assert set(found.refuted) == {tokens for tokens in lengths if tokens > found.tokens}
    assert "16 equal chunks" in found.scope


def _equal_chunks(instance: Instance) -> list[tuple[int, float | None]]:
    """Batches, and the best value of plans in as many equal chunks as may be, whole chunks spilled."""
    chunks = min(instance.pipeline.max_chunks, 2)
    sizes = equal_sizes(instance, chunks)
    evaluator, best = Evaluator(instance), dict[int, float]()
    plans = [plan for plan in every_plan(instance, spill=True) if next(iter(plan.chunks.values())) == sizes]
    for plan, value in zip(plans, evaluator.values(plans), strict=True):
        if value is not None:
            best[plan.batch] = min(value, best.get(plan.batch, value))
    return [(batch, best.get(batch)) for batch in range(1, instance.pipeline.max_batch + 1)]


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_no_plan_that_runs_is_refuted(seed: int) -> None:
    """Budgets of exactly what the best plan takes are never refuted, by either model and with any step."""
    instance = equal_requests(seed, tight=True)
    if instance.objective == "p95_latency":
        instance = instance.model_copy(update={"objective": "makespan"})
    chunks, tokens = min(instance.pipeline.max_chunks, 2), instance.workload.shapes[0][0]
    for batch, value in _equal_chunks(instance):
        if value is None or batch > instance.workload.count:
            continue
        for form, engine in ENGINES.items():
            for step_s, group in ((None, None), (value / 7, 1), (value / 7, 2)):
                found = longest_not_refuted(
                    instance,
                    [tokens],
                    chunks,
                    dict.fromkeys([tokens], value).__getitem__,
                    form,
                    engine,
                    LIMITS,
                    batches=[batch],
                    step_s=step_s,
                    group=group,
                )
                assert found.tokens == tokens, found.refuted


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_both_models_of_the_peak_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stages, chunks = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    instance = line(
        [int(count) for count in rng.integers(1, 3, stages)],
        fitted={"token_s": 1.0, "pair_s": float(rng.choice([0.0, 0.1]))},
        hardware={"die": {"hbm_bytes": float(rng.integers(60, 110))}},
        workload={"requests": int(rng.integers(1, 4)), "tokens": int(rng.integers(chunks, 9))},
        pipeline={"max_chunks": 4},
        objective=str(rng.choice(["mean_latency", "makespan"])),
    )
    sizes = equal_sizes(instance, chunks)
    latency_s = float(rng.uniform(2, 30))
    step_s = float(rng.choice([0.3, 1.0]))
    problem = peak_problem(instance, 1, sizes, latency_s, step_s, int(rng.integers(1, chunks + 1)))
    if problem.budget_ps >= 0:
        whole = solve_cpsat(peak_cpsat.build(problem).model, LIMITS)
        linear = solve_highs(peak_milp.build(problem).model, LIMITS)
        assert (whole.status == "infeasible") == (linear.status == "infeasible")


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6))
def test_a_schedule_that_fits_is_never_refuted(seed: int) -> None:
    """Tasks with random waits: with the memory and the time that they take, no step and no groups refute them."""
    rng = np.random.default_rng(seed)
    shape = waves, stages, chunks = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 8))
    duration = rng.integers(1, 20, shape)
    kv = rng.integers(0, 5, shape)
    waits = rng.integers(0, 30, shape) * (rng.random(shape) < rng.choice([0.05, 0.3]))

    def starts(waits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        start = np.zeros(shape, dtype=np.int64)
        for w, i, s in np.ndindex(waves, chunks, stages):
            before = [(w, s, i - 1) if i else (w - 1, s, chunks - 1), (w, s - 1, i)]
            ready = [start[at] + duration[at] for at in before if min(at) >= 0]
            start[w, s, i] = max(ready, default=0) + waits[w, s, i]
        return start

    start, earliest = starts(waits), starts(np.zeros_like(waits))
    left = (start + duration)[:, :, -1]

    def held(moment: int) -> int:
        # A moment's releases come before its starts.
        return int((kv * (start <= moment) * (left > moment)[:, :, None]).sum())

    makespan = bool(rng.random() < 0.5)
    weight = (0,) * (waves - 1) + (1,) if makespan else tuple(rng.integers(1, 4, waves).tolist())
    late = (start - earliest)[:, -1, -1]
    problem = PeakProblem(
        earliest=earliest,
        duration=duration,
        kv=kv,
        room=max(held(int(moment)) for moment in start.ravel()),
        weight=weight,
        budget_ps=int((np.array(weight) * late).sum()),
        step_ps=int(rng.integers(1, 25)),
        group=int(rng.integers(1, chunks + 1)),
    )
    assert problem.kv_time_fits
    for form, engine in ENGINES.items():
        assert engine(FORMS[form].build(problem).model, LIMITS).status != "infeasible"


def test_two_stages_in_lockstep_need_seven_chunks() -> None:
    # Four chunks, offset 1: a pair's peak is 2*4 - 1 = 7 chunks where waves follow each other without a gap: three of
    # them take 3*4 + 1 = 13 s. With a second more the other may wait, and holds one chunk less at the peak.
    def refuted(chunks: int, latency_s: float) -> LengthBound:
        cost = line([1, 1]).stage_cost
        weights = cost.weight_bytes(0, 1, True, False) + cost.weight_bytes(1, 2, False, True)
        instance = line(
            [1, 1],
            fitted={"token_s": 2.0},
            hardware={"die": {"hbm_bytes": (weights + 2 * 5 + 2 * chunks) / 2}},
            workload={"requests": 3, "tokens": 4},
        )
        return longest_not_refuted(instance, [4], 4, lambda tokens: latency_s, "cpsat", solve_cpsat, LIMITS)

    assert refuted(7, 13.0).tokens == 4
    assert refuted(6, 13.0).tokens is None
    assert "overflows" in refuted(6, 13.0).refuted[4]
    assert refuted(6, 17.0).tokens == 4
    assert "as fast" in refuted(7, 12.9).refuted[4]


def test_what_the_bound_is_not_for() -> None:
    options: Any = ([4], 2, lambda tokens: 1.0, "cpsat", solve_cpsat, LIMITS)
    with pytest.raises(InputError, match="a given layer split"):
        longest_not_refuted(line([1, 1], pipeline={"layers": "free"}), *options)
    with pytest.raises(InputError, match="p95_latency"):
        longest_not_refuted(line([1, 1], objective="p95_latency"), *options)
    with pytest.raises(InputError, match="quanta of a request"):
        longest_not_refuted(line([1, 1]), [4], 5, *options[2:])
