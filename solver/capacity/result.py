"""What a capacity table says: a row for each way to spill, and the frontier of length against latency."""

from __future__ import annotations

import json
from typing import Any

from instances.base import Document
from instances.plan import Plan


class FrontierPoint(Document):
    """A size that was tried, and the latency of the fastest plan found for it; None if none ran."""

    size: int
    value_s: float | None
    optimum_s: float


class CapacityRow(Document):
    """What one way to spill reaches.

    Attributes
    ----------
    max_tokens
        Longest request within the latency budget whose plan runs in the replay; None if not even one quantum does.
    value_s, mean_latency_s
        Objective and mean latency of its plan.
    optimum_s
        The best objective without memory limits at that length: what the budget is measured against.
    bound_tokens
        No plain schedule in waves of ``batch`` and as many equal chunks within the budget, of any way to spill without
        the host and with any delays, has longer requests; None if that is not proved, or others were asked for.
    any_latency_tokens
        Longest request that runs at all.
    gain
        Length over that of ``none``.
    max_batch, any_latency_batch
        The same where the batch was asked for.
    next_size
        The next larger size, which was tried and did not run within the budget; None where none was tried.
    plan
        The plan, of the instance with requests of this length.
    program
        In place of a plan, what no plan can say: a program that ``waferplan simulate --program`` replays.
    note
        What keeps the row from being complete.
    """

    method: str
    max_tokens: int | None
    value_s: float | None = None
    mean_latency_s: float | None = None
    optimum_s: float | None = None
    bound_tokens: int | None = None
    any_latency_tokens: int | None = None
    gain: float | None = None
    max_batch: int | None = None
    any_latency_batch: int | None = None
    next_size: int | None = None
    plan: Plan | None = None
    program: dict[str, Any] | None = None
    frontier: tuple[FrontierPoint, ...] = ()
    note: str = ""


class CapacityResult(Document):
    """The whole table.

    Attributes
    ----------
    batch
        Requests of a wave; None where the batch was asked for.
    latency_budget
        Share by which plans may be slower than ``optimum_s``; None: any latency.
    stop_reason
        "iterations" where every row is complete, "time_limit" or "interrupted".
    """

    instance: str
    chunks: int | None
    batch: int | None
    latency_budget: float | None
    methods: tuple[CapacityRow, ...]
    runtime_s: float
    stop_reason: str

    def to_json(self) -> str:
        """JSON text; unknown numbers are null."""
        return json.dumps(self.model_dump(mode="json"), indent=1)
