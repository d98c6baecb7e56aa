"""What a run tells the process that watches it."""

from __future__ import annotations

from dataclasses import dataclass

from instances.plan import Plan
from solver.benchmark.environment import Environment
from solver.capacity.result import CapacityResult
from solver.place.run import Placed
from solver.result import Result


@dataclass(frozen=True)
class Started:
    """First message: what the run runs on."""

    environment: Environment


@dataclass(frozen=True)
class Alive:
    """Sent now and then, so that the other side can give the run up."""


@dataclass(frozen=True)
class Better:
    """Value, bound or plan became better; the last one is what remains of a run that is killed."""

    value: float | None
    bound: float | None
    plan: Plan | None


@dataclass(frozen=True)
class Ended:
    """What came of the run: a result, a placement or a length where that is asked for, or an error in words."""

    result: Result | None
    error: str | None
    peak_memory_bytes: int
    placed: Placed | None = None
    longest: CapacityResult | None = None
