"""Records and tasks for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from solver.benchmark.record import Record
from solver.benchmark.task import RunLimits, Task, grid, read_choice
from tests.builders import small_instance


def tasks(*methods: str, seeds: Iterable[int] = (0,), limits: RunLimits | None = None, **changes: Any) -> list[Task]:
    """Runs of the small instance."""
    choices = [read_choice(method) for method in methods or ("gpipe",)]
    return grid("small", [small_instance(**changes)], choices, list(seeds), limits or RunLimits(time_s=20.0))


def record(**changes: Any) -> Record:
    """A record of a run of 2 s with the value 3 and the bound 2."""
    data: dict[str, Any] = {
        "suite": "s",
        "instance": "i",
        "fingerprint": "f",
        "method": "gpipe",
        "seed": 0,
        "time_limit_s": 10.0,
        "status": "feasible",
        "stop_reason": "iterations",
        "objective": "mean_latency",
        "value": 3.0,
        "bound": 2.0,
        "gap": 1 / 3,
        "bound_scope": {"layers": "fixed", "batch": [1, 8], "chunks": [1, 64], "quantum_tokens": 1},
        "runtime_s": 2.0,
        "versions": {"waferplan": "0"},
        "time": "2026-01-01T00:00:00+00:00",
        "plan": {"instance": "f", "batch": 1, "layers": [1], "placement": [[0, 0]], "chunks": {"4": [4]}},
        **changes,
    }
    return Record.parse(data)
