"""Results to export, made from an instance and a plan without a search."""

from __future__ import annotations

from typing import Any

from instances.instance import Instance
from instances.plan import Plan
from solver.result import Engine, ObjectiveValue, Result
from tests.builders import small_instance, small_plan
from tests.shared_data import REPOSITORY

EIGHT = [256] * 8
SPILL_HEAVY = [
    {"stage": stage, "chunk": chunk, "creditor": creditor, "tokens": tokens}
    for stage in range(4)
    for chunk in range(7)
    for creditor, tokens in (((stage + 2) % 4, 128), ((stage + 1) % 4, 64), ("host", 64))
]
"""Every token but those of the last chunk leaves its stage, for three places."""


def result_of(instance: Instance, plan: Plan | None, **changes: Any) -> Result:
    """A result file's content."""
    facts: dict[str, Any] = {
        "instance": instance.canonical(),
        "fingerprint": instance.fingerprint,
        "method": "cpp",
        "status": "feasible",
        "stop_reason": "iterations",
        "objective": ObjectiveValue(name=instance.objective),
        "plan": plan,
        "runtime_s": 0.0,
        "seed": 0,
        "engine": Engine(name="none", version="0", native_status=""),
    }
    return Result(**(facts | changes))


def small_result() -> Result:
    """Two chunks on four stages, nothing spilled."""
    instance = small_instance()
    return result_of(instance, small_plan(instance))


def spilling_result(**changes: Any) -> Result:
    """Eight chunks on four stages, all of their KV moved about."""
    host = {"host_bytes": "1 GB", "host_bytes_per_s": "10 GB/s"}
    instance = small_instance(hardware__host=host, **changes)
    return result_of(instance, small_plan(instance, chunks={"2048": EIGHT}, spill=SPILL_HEAVY))


def wafer_result() -> Result:
    """Sixteen stages of a shipped instance, 64 chunks, 16 waves."""
    instance = Instance.load(REPOSITORY / "instances" / "data" / "suites" / "mocap-latency" / "llama3-70b-128k.json")
    snake = [[row, column if row % 2 == 0 else 3 - column] for row in range(4) for column in range(4)]
    plan = {
        "schema_version": 1,
        "instance": instance.fingerprint,
        "batch": 1,
        "layers": [5] * 16,
        "placement": snake,
        "chunks": {"131072": [2048] * 64},
        "spill": [],
        "schedule": "chunked",
    }
    return result_of(instance, Plan.parse(plan))
