"""What a formulation and an engine say to each other.

Formulations build models and read values; `solver.backends` runs engines. Where a formulation needs an engine (because
it solves and returns a plan), it takes one as an argument that follows the protocols below, so that imports keep going
one way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Status = Literal["optimal", "feasible", "infeasible", "unknown"]
"""What is known: the first two have values; "unknown" may still have a bound."""

StopReason = Literal["proved", "gap", "time_limit", "interrupted", "error"]
"""Why the engine stopped. "gap": a relative gap that was asked for is reached, short of a proof."""


class NoValuesError(RuntimeError):
    """Values were read from an outcome that has none."""


@dataclass(frozen=True)
class EngineLimits:
    """Limits of one engine run.

    Attributes
    ----------
    time_s
        Seconds; in deterministic mode CP-SAT counts deterministic seconds. None: no limit.
    workers
        Threads, always set explicitly (an engine's own guess reads the machine, not the quota).
    seed
        Random seed >= 0.
    deterministic
        One worker and no wall clock, so that runs repeat exactly.
    relative_gap
        Stop when value and bound differ by no more than this fraction; 0 asks for a proof.
    """

    time_s: float | None = None
    workers: int = 1
    seed: int = 0
    deterministic: bool = False
    relative_gap: float = 0.0


@dataclass(frozen=True)
class EngineOutcome:
    """What one engine run found, in the model's own units.

    Attributes
    ----------
    status, stop_reason
        The two axes: what is known, and why the run ended.
    value
        Objective of the values, recomputed from them; None without values or without an objective.
    bound
        A proved bound on the objective; None where the engine gave none that can be trusted.
    native_status
        The engine's own word.
    engine, version
        "CP-SAT" or "HiGHS", and its version.
    runtime_s
        Wall time of the run.
    message
        Reason of an error, else empty.
    core
        Names of assumptions of the model that suffice for "infeasible"; empty where it has none, or is not infeasible.
    read
        Value of a variable or linear expression; None without values. Use `value_of`.
    """

    status: Status
    stop_reason: StopReason
    value: float | None
    bound: float | None
    native_status: str
    engine: str
    version: str
    runtime_s: float
    message: str = ""
    core: tuple[str, ...] = ()
    read: Callable[[Any], float] | None = None

    @property
    def has_values(self) -> bool:
        """True for optimal and feasible outcomes."""
        return self.read is not None

    def value_of(self, expression: Any) -> float:
        """Value of a variable or expression of the model; whole numbers for CP-SAT and integer variables."""
        if self.read is None:
            raise NoValuesError(f"{self.engine} ended with {self.native_status}: there are no values to read")
        return self.read(expression)


class Engine(Protocol):
    """Runs one model: a `CpModel` for a CP-SAT engine, an `LpProblem` for a MILP engine."""

    def __call__(self, model: Any, limits: EngineLimits, /) -> EngineOutcome:
        """Solve `model` within `limits`."""
        ...


def relative_gap(value: float | None, bound: float | None) -> float | None:
    """(value - bound) / max(|value|, tiny) for a minimised objective, 0 when equal (spec section 4)."""
    if value is None or bound is None:
        return None
    return 0.0 if value == bound else (value - bound) / max(abs(value), 1e-12)
