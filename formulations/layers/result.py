"""What is known about a layer split."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.interface import EngineOutcome, Status, StopReason, relative_gap


@dataclass(frozen=True)
class LayerResult:
    """A split, and how far it is proved.

    Attributes
    ----------
    layers
        Layers per stage; None if there is no split or none was found.
    slowest_s, bound_s
        Seconds of the slowest stage, and what no split is faster than.
    memory_bytes, memory_bound_bytes
        The second objective (see `LayerProblem`), and what no split has less of whose slowest stage is as fast as this
        one's; None where it was not looked at.
    status, stop_reason
        As for engines, of both objectives together; "infeasible" is proved.
    native_status
        The engine's words for the two runs, or "dynamic program".
    outcomes
        The engine runs.
    """

    layers: tuple[int, ...] | None
    slowest_s: float | None
    bound_s: float | None
    memory_bytes: float | None
    memory_bound_bytes: float | None
    status: Status
    stop_reason: StopReason
    native_status: str
    outcomes: tuple[EngineOutcome, ...] = ()

    @property
    def gap(self) -> float | None:
        """(value - bound) / value of the slowest stage; 0 when equal, None while one of them is unknown."""
        return relative_gap(self.slowest_s, self.bound_s)
