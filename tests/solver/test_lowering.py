"""Lowering and evaluation against a witness written from the specification's text (``reference.plan_to_program``)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings

from formulations.bounds import nearest_rank
from instances.instance import Instance
from instances.plan import Plan, SpillRow
from solver.evaluate import Evaluator
from solver.simulation.engine import Run, run
from solver.simulation.program import Program
from tests.reference.plan_to_program import lower
from tests.reference.waves import Outcome, replay_waves
from tests.tiny import Recipe, recipes

BATCHES, PLANS_PER_BATCH = 5, 40


def _replayed(instance: Instance, plan: Plan) -> tuple[Program, Run, dict[str, Any], Outcome]:
    """Both programs and both replays; the witness replays the product's durations, which are compared before."""
    program = Evaluator(instance).lowering.program(plan)
    document = lower(instance.canonical(), plan.model_dump(mode="json"))
    durations: list[list[list[int]]] = [
        [[0] * len(wave["activation_bytes"]) for _ in plan.layers] for wave in document["waves"]
    ]
    for task, (w, s, i) in enumerate(_labels(program)):
        durations[w][s][i] = int(program.duration_ps[task])
        # The witness rounds an exact fraction, the product a float: half a picosecond may go either way.
        assert abs(durations[w][s][i] - round(document["waves"][w]["compute_s"][s][i] * 10**12)) <= 1, (w, s, i)
    return program, run(program), document, replay_waves(document, durations)


def _labels(program: Program) -> list[tuple[int, int, int]]:
    return list(zip(program.wave.tolist(), program.stage.tolist(), program.chunk.tolist(), strict=True))


def _assert_same(instance: Instance, plan: Plan) -> None:
    program, outcome, document, expected = _replayed(instance, plan)
    unit = program.units_per_byte
    assert program.static_units.tolist() == [math.ceil(amount * unit) for amount in document["static_bytes"]]
    if (program.static_units > program.capacity_units).any():
        assert Evaluator(instance).value(plan) is None
        return
    ends = {label: int(end) for label, end in zip(_labels(program), outcome.end_ps, strict=True) if end >= 0}
    assert outcome.deadlock == expected.deadlock
    assert ends == expected.end_ps
    assert outcome.stall_ps.tolist() == expected.stall_ps
    for s, (peak, static) in enumerate(zip(expected.peak_bytes, document["static_bytes"], strict=True)):
        assert int(outcome.peak_units[s] - program.static_units[s]) == (peak - static) * unit
    assert outcome.host_peak_units.tolist() == [peak * unit for peak in expected.host_peak_bytes]
    value = Evaluator(instance).value(plan)
    assert value == (None if expected.deadlock else pytest.approx(_objective(instance, document, expected), rel=1e-13))


def _objective(instance: Instance, document: dict[str, Any], expected: Outcome) -> float:
    """From the completions: latencies count from each request's own arrival."""
    ends = [Fraction(end, 10**12) for end in expected.completions_ps]
    if instance.objective == "makespan":
        return float(max(ends))
    latencies = sorted(
        end - arrival for end, wave in zip(ends, document["waves"], strict=True) for arrival in wave["arrivals_s"]
    )
    if instance.objective == "p95_latency":
        # The value at rank ceil(0.95 n), counted from 1.
        return float(latencies[-(-95 * len(latencies) // 100) - 1])
    return float(sum(latencies) / len(latencies))


@settings(max_examples=100)
@given(recipes())
def test_replay_of_a_plan_equals_the_witness(recipe: Recipe) -> None:
    instance = recipe.instance(tight=recipe.chance(60), options=recipe.chance(30))
    _assert_same(instance, recipe.plan(instance))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_replay_of_a_plan_equals_the_witness_in_bulk(batch: int) -> None:
    ran = spilled = waited = 0
    for number in range(PLANS_PER_BATCH):
        recipe = Recipe.seeded(batch, number)
        instance = recipe.instance(tight=recipe.chance(60), options=recipe.chance(30))
        plan = recipe.plan(instance)
        _assert_same(instance, plan)
        value = Evaluator(instance).value(plan)
        ran += value is not None
        spilled += value is not None and bool(plan.spill)
        waited += value is None
    # The cases are no use if they are all of one sort.
    assert min(ran, waited) >= PLANS_PER_BATCH // 8
    assert spilled >= 2


def _line(requests: int, tokens: int, hbm_bytes: float, **pipeline: Any) -> Instance:
    """Three one-layer stages in a line: KV 16 bytes a token, weights 9 a layer plus 4 for each table."""
    kind = {
        "attention": {"kind": "full", "heads": 1, "kv_heads": 1, "head_dim": 1},
        "feed_forward": {"kind": "dense", "width": 1},
    }
    return Instance.read(
        {
            "name": "line",
            "hardware": {
                "rows": 1,
                "columns": 3,
                "link_bytes_per_s": 1000,
                "die": {"peak_flops": 1000, "hbm_bytes": hbm_bytes, "hbm_bytes_per_s": 10_000},
            },
            "model": {
                "name": "line",
                "hidden": 2,
                "vocab": 2,
                "kinds": {"k": kind},
                "layers": [{"pattern": ["k"], "repeat": 3}],
                "weight_bytes": 1,
                "kv_bytes": 8,
                "activation_bytes": 1,
            },
            "workload": {"requests": requests, "tokens": tokens},
            "pipeline": {"stages": 3, "chunk_quantum": 3, "max_chunks": 5, "max_batch": 1, **pipeline},
        }
    )


def test_releases_are_handled_in_stage_order() -> None:
    # When stage 0 ends its wave it frees memory at home, at stage 1 and at stage 2, where writes wait that use the
    # same links: the grants must come in stage order, home first.
    instance = _line(2, 9, 170.0)
    rows = [(0, 0, 2, 3), (0, 1, 1, 2), (1, 1, 2, 3), (2, 0, 1, 2)]
    plan = Plan(
        instance=instance.fingerprint,
        batch=1,
        layers=(1, 1, 1),
        placement=((0, 0), (0, 1), (0, 2)),
        chunks={"9": (3, 3, 3)},
        spill=tuple(SpillRow(stage=s, chunk=i, creditor=k, tokens=tokens) for s, i, k, tokens in rows),
    )
    _assert_same(instance, plan)


def _one_stage(weight_bytes: dict[str, float], hbm_bytes: float) -> tuple[Instance, Plan]:
    """One stage of three layers, two chunks of two tokens."""
    instance = _line(1, 4, hbm_bytes, stages=1, chunk_quantum=2)
    model = instance.model.with_bytes(weight_bytes=weight_bytes)
    instance = instance.model_copy(update={"model": model})
    instance = Instance.read(instance.canonical())
    plan = Plan(instance=instance.fingerprint, batch=1, layers=(3,), placement=((0, 0),), chunks={"4": (2, 2)})
    return instance, plan


@pytest.mark.parametrize(
    ("weight_bytes", "short"), [({}, 0), ({}, 1), ({"norms": 17 / 32}, 0), ({"norms": 17 / 32}, 1 / 32)]
)
def test_exactly_full_memory_is_allowed(weight_bytes: dict[str, float], short: float) -> None:
    # Weights of any width fill the die to the last fraction of a byte: it runs; with less it does not. The norms are
    # 3 layers * 2 * 2 and the last one's 2: 14 * 17/32 = 7.4375 bytes.
    roomy, plan = _one_stage(weight_bytes, 1000.0)
    static = lower(roomy.canonical(), plan.model_dump(mode="json"))["static_bytes"][0]
    full = static + 3 * 4 * 16  # KV of 4 tokens in three layers of 16 bytes a token
    instance, plan = _one_stage(weight_bytes, float(full - Fraction(short)))
    assert (Evaluator(instance).value(plan) is None) == (short > 0)


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (2, 2), (19, 19), (20, 19), (21, 20), (40, 38), (100, 95)])
def test_nearest_rank(count: int, rank: int) -> None:
    # ceil(0.95 * n): 20 values -> the 19th; 21 -> 19.95 -> the 20th.
    assert nearest_rank([float(value) for value in range(count, 0, -1)], 0.95) == rank
