"""What the backends share: the error for unknown statuses, and when an optimum counts as proved."""

from __future__ import annotations

from formulations.interface import Status, StopReason


class UnknownNativeStatusError(RuntimeError):
    """An engine returned a status that no table knows; nothing may be concluded from such a run."""

    def __init__(self, engine: str, native_status: str) -> None:
        self.engine = engine
        self.native_status = native_status
        super().__init__(f"{engine} returned the unknown status {native_status!r}")


def proved_or_gap(value: float | None, bound: float | None) -> tuple[Status, StopReason]:
    """Engines call a run optimal that stopped at a gap limit; only equal value and bound are a proof.

    Equal means within 1e-6 of the larger magnitude (and of 1), the tolerance of a MILP engine.
    """
    if value is None or bound is None or abs(value - bound) <= 1e-6 * max(1.0, abs(value)):
        return "optimal", "proved"
    return "feasible", "gap"
