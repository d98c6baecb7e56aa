"""Results made without a search: a small plan or program, replayed."""

from __future__ import annotations

from typing import Any

from formulations.interface import relative_gap
from instances.instance import Instance
from instances.plan import Plan
from solver.api import solve
from solver.replaying import simulate
from solver.result import Compared, Engine, ObjectiveValue, Result, TracePoint
from tests.builders import small_instance, small_plan


def replayed_result(instance: Instance, plan: Plan, **changes: Any) -> Result:
    """The result of a method that gives this plan and a bound 10 % below its value."""
    metrics = simulate(instance, plan).metrics
    assert metrics is not None
    value = metrics.mean_latency_s
    bound = 0.9 * value
    facts: dict[str, Any] = {
        "instance": instance.canonical(),
        "fingerprint": instance.fingerprint,
        "method": "exact",
        "status": "feasible",
        "stop_reason": "time_limit",
        "objective": ObjectiveValue(
            name="mean_latency", value=value, bound=bound, gap=relative_gap(value, bound), trivial_bound=0.5 * value
        ),
        "plan": plan,
        "metrics": metrics,
        "runtime_s": 1.25,
        "seed": 7,
        "engine": Engine(name="tests", version="1", native_status="made by hand"),
        "trace": (
            TracePoint(t_s=0.5, value=None, bound=0.5 * value),
            TracePoint(t_s=1.0, value=value, bound=bound),
        ),
        "compared": (
            Compared(method="mocap", value=1.2 * value, chunks=2, batch=1),
            Compared(method="gpipe", value=None, note="deadlock: 1 GB short"),
        ),
    }
    return Result(**(facts | changes))


def small_result(**changes: Any) -> Result:
    """`small_plan` on `small_instance`."""
    instance = small_instance()
    return replayed_result(instance, small_plan(instance), **changes)


def spilling_result() -> Result:
    """Stages 0 and 1 keep 128 tokens of the first chunk at stages 2 and 3."""
    instance = small_instance(hardware__disabled_links=[[[0, 0], [1, 0]]])
    rows = [
        {"stage": 0, "chunk": 0, "creditor": 2, "tokens": 128},
        {"stage": 1, "chunk": 0, "creditor": 3, "tokens": 128},
    ]
    return replayed_result(instance, small_plan(instance, spill=rows))


def one_stage_result() -> Result:
    """All four layers on one die, one chunk."""
    instance = small_instance(pipeline__stages=1)
    plan = small_plan(instance, layers=[4], placement=[[0, 0]], chunks={"2048": [2048]})
    return replayed_result(instance, plan)


def planless_result() -> Result:
    """Nothing found, nothing known."""
    unknown = {
        "status": "unknown",
        "plan": None,
        "metrics": None,
        "objective": ObjectiveValue(name="mean_latency"),
        "trace": (),
        "compared": (),
        "reason": "no plan within the limit",
    }
    return small_result().model_copy(update=unknown)


def named(result: Result, name: str) -> Result:
    """The same result of an instance, a model and a method with another name."""
    instance = dict(result.instance)
    instance["name"] = name
    instance["model"] = {**instance["model"], "name": name}
    compared = (Compared(method=name, value=None, note=name),)
    return result.model_copy(update={"instance": instance, "method": name, "compared": compared, "reason": name})


def served_result() -> Result:
    """Four requests of 2048 tokens and three tokens that come out, in iterations of at most 512."""
    return solve(small_instance(), "sarathi", knobs={"budget": 512, "output": 3})


def programmed_result() -> Result:
    """Two stages, two requests of two chunks, as a program that no plan says; times 1, 2 and 3, 4 s."""
    program = {
        "die_of": [[0, 0], [0, 1]],
        "compute_s": [[1, 2], [3, 4]],
        "activation_bytes": [0, 0],
        "kv_bytes": [[1000, 1000], [1000, 1000]],
        "arrivals_s": [0, 0],
        "link_bytes_per_s": 1e11,
        "hop_latency_s": 0,
        "capacity_bytes": [64_000_000, 64_000_000],
        "rows": 2,
        "columns": 2,
    }
    answer = {"program": program, "method": "vpp", "status": "feasible", "reason": None}
    return planless_result().model_copy(update=answer)
