"""Solves a pairing problem with an engine: one run for the worst peak, one for the traffic under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from formulations.interface import Engine, EngineLimits, EngineOutcome, Status, StopReason, relative_gap
from formulations.pairing import cpsat, milp
from formulations.pairing.problem import Group, PairingProblem
from formulations.pairing.variables import in_ticks

FORMS: dict[str, ModuleType] = {"cpsat": cpsat, "milp": milp}
ROUNDED = 1e-4
"""A proof in ticks, which are rounded down, is one where value and bound are that close."""


@dataclass(frozen=True)
class PairingResult:
    """Groups, and how far they are proved.

    Attributes
    ----------
    groups
        Stages of each group; None if none were found.
    peak, peak_bound
        Of the worst group, and what no grouping is below.
    traffic, traffic_bound
        Of all groups, and what no grouping with this peak is below; no bound where it was not looked at.
    status, stop_reason
        As for engines, of both objectives together.
    native_status
        The engine's words for the two runs.
    outcomes
        The engine runs.
    """

    groups: list[Group] | None
    peak: float | None
    peak_bound: float | None
    traffic: float | None
    traffic_bound: float | None
    status: Status
    stop_reason: StopReason
    native_status: str
    outcomes: tuple[EngineOutcome, ...] = ()

    @property
    def gap(self) -> float | None:
        """(value - bound) / value of the peak; 0 when equal, None while one of them is unknown."""
        return relative_gap(self.peak, self.peak_bound)


def pair_stages(
    problem: PairingProblem,
    form: str,
    engine: Engine,
    limits: EngineLimits,
    start: Sequence[Group] | None = None,
) -> PairingResult:
    """The best groups that the engine finds.

    Parameters
    ----------
    form
        "cpsat" or "milp"; the engine must be one for that kind of model.
    limits
        Of each of the two runs.
    start
        Groups to begin from; they are returned where the engine finds none that are better.
    """
    twin, ticks = FORMS[form], in_ticks(problem)
    known = [] if start is None or problem.violations(start) else [list(start)]
    first_model = twin.build(problem, known[0] if known else None)
    first: EngineOutcome = engine(first_model.model, limits)
    if first.has_values:
        known.append(twin.extract(first_model, first))
    bound = None if first.bound is None else float(ticks.peaks[max(0, min(len(ticks.peaks) - 1, _up(first.bound)))])
    if not known:
        reason = first.stop_reason
        return PairingResult(None, None, bound, None, None, "unknown", reason, first.native_status, (first,))
    best = min(known, key=problem.value)
    peak, traffic = problem.value(best)
    found = PairingResult(
        groups=best,
        peak=peak,
        peak_bound=None if bound is None else min(bound, peak),
        traffic=traffic,
        traffic_bound=None,
        status="feasible",
        stop_reason=first.stop_reason,
        native_status=first.native_status,
        outcomes=(first,),
    )
    return _less_traffic(problem, found, twin, engine, limits) if first.status == "optimal" else found


def _up(bound: float) -> int:
    """A rank is whole, so a bound between two ranks is the higher one."""
    return -int(-(bound - 1e-6) // 1)


def _less_traffic(
    problem: PairingProblem, found: PairingResult, twin: ModuleType, engine: Engine, limits: EngineLimits
) -> PairingResult:
    """Less traffic under the worst peak that is proved."""
    ticks = in_ticks(problem)
    assert found.groups is not None and found.traffic is not None and found.outcomes[0].value is not None
    # Without a start: the groups at hand are kept anyway, and HiGHS 1.16 has called such a start optimal that was not.
    model = twin.build(problem, worst_rank=round(found.outcomes[0].value))
    second: EngineOutcome = engine(model.model, limits)
    groups, traffic = found.groups, found.traffic
    if second.has_values:
        groups = min(groups, twin.extract(model, second), key=lambda chosen: problem.value(chosen)[1])
        traffic = problem.value(groups)[1]
    bound = None if second.bound is None else min(second.bound * ticks.tick, traffic)
    proved = second.status == "optimal" and bound is not None and traffic - bound <= ROUNDED * max(traffic, 1e-9)
    return replace(
        found,
        groups=groups,
        peak=problem.value(groups)[0],
        traffic=traffic,
        traffic_bound=bound,
        status="optimal" if proved else "feasible",
        stop_reason="proved" if proved else second.stop_reason,
        native_status=f"{found.native_status}, {second.native_status}",
        outcomes=(*found.outcomes, second),
    )
