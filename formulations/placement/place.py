"""Solves a placement problem: constructed starts, local search, then an engine on the model that suits it best."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.interface import Engine, EngineLimits, EngineOutcome, Status, StopReason
from formulations.placement import cpsat, domino
from formulations.placement.constructive import constructed, largest_matching
from formulations.placement.gilmore_lawler import gilmore_lawler_bound
from formulations.placement.local_search import improve
from formulations.placement.problem import Flow, PlacementProblem, stated
from instances.errors import InputError

MOST_KICKS = 200
LOCAL_SEARCH_WORK = 15_000_000
"""Moves times flows that local search may look at, roughly: fewer kicks on large problems, none on the largest."""
SEARCH_S = 4e-8
"""Seconds for one of them, roughly."""
MOST_ASSIGNMENT_DIES = 512
"""Dies up to which the bound from an assignment is worked out, in time that grows with their cube."""


@dataclass(frozen=True)
class PlacementResult:
    """A placement and what is known about it.

    Attributes
    ----------
    placement
        Die of each stage (index into the `hops` that were given); None if there is none or none was found.
    value
        Sum of weight*hops of the placement, from its distances.
    bound
        No placement has a smaller value.
    status, stop_reason
        As for engines; "infeasible" is proved.
    outcome
        The engine run, where there was one.
    """

    placement: list[int] | None
    value: float | None
    bound: float | None
    status: Status
    stop_reason: StopReason
    outcome: EngineOutcome | None = None


def place(
    hops: npt.ArrayLike,
    flows: Sequence[Flow],
    stages: int,
    *,
    dies_rc: Sequence[tuple[int, int]] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    pair_adjacent: bool = False,
    allowed: Sequence[int] | None = None,
    limits: EngineLimits,
    engine: Engine | None,
    rng: np.random.Generator,
) -> PlacementResult:
    """Place stages on dies so that the sum of weight*hops is least.

    Parameters
    ----------
    hops
        Shape (D, D), whole numbers: distance from die to die. Entries of dies that are not allowed are not read.
    flows
        (source stage, target stage, weight), the weight in any unit, bytes for example.
    stages
        N.
    dies_rc
        (row, column) of each die on a mesh; without it the distances are all there is to go by.
    pairs, pair_adjacent
        Partner stages; with `pair_adjacent` they must lie one hop apart.
    allowed
        Live dies; default all.
    limits, engine
        A CP-SAT engine and its limits; without an engine the best heuristic placement is returned.

    Raises
    ------
    InputError
        For malformed arrays, and more stages than allowed dies.
    """
    live = list(range(len(np.asarray(hops)))) if allowed is None else sorted(set(allowed))
    matrix = np.asarray(hops)
    if live and not 0 <= live[0] <= live[-1] < len(matrix):
        raise InputError("allowed", live, f"dies between 0 and {len(matrix) - 1}")
    problem = stated(
        matrix[np.ix_(live, live)],
        flows,
        stages,
        None if dies_rc is None else [dies_rc[die] for die in live],
        pairs or () if pair_adjacent else (),
    )
    result = solve(problem, limits, engine, rng)
    if result.placement is None:
        return result
    return PlacementResult(
        [live[die] for die in result.placement],
        result.value,
        result.bound,
        result.status,
        result.stop_reason,
        result.outcome,
    )


def solve(
    problem: PlacementProblem, limits: EngineLimits, engine: Engine | None, rng: np.random.Generator
) -> PlacementResult:
    """As `place`, for a problem that is stated already."""
    candidates = constructed(problem)
    if not candidates and _too_few_neighbours(problem):
        return PlacementResult(None, None, None, "infeasible", "proved")
    start, floor = min(candidates, key=problem.value, default=None), _all_adjacent(problem)
    if start is None or problem.value(start) > floor:
        start = best_start(problem, candidates, rng, None if limits.deterministic else limits.time_s)
        if problem.dies <= MOST_ASSIGNMENT_DIES:
            floor = max(floor, gilmore_lawler_bound(problem))
    if start is not None and problem.value(start) <= floor * (1 + 1e-12):
        return PlacementResult(start, problem.value(start), problem.value(start), "optimal", "proved")
    if engine is None:
        return _without_engine(problem, start, floor)
    weights = domino.domino_weights(problem) if problem.pairs else None
    if weights is not None:
        reached = None if start is None else ticks_of(problem, start)
        circuit = domino.build(problem, weights, start, reached)
        outcome = engine(circuit.model, limits)
        found = domino.extract(circuit, outcome) if outcome.has_values else None
    else:
        model = cpsat.build(problem, start)
        outcome = engine(model.model, limits)
        found = cpsat.extract(model, outcome) if outcome.has_values else None
    return _concluded(problem, outcome, found, start, floor)


def best_start(
    problem: PlacementProblem, candidates: Sequence[list[int]], rng: np.random.Generator, time_s: float | None = None
) -> list[int] | None:
    """Best candidate after local search, the best of them first; None without candidates.

    With a limit no search begins that is likely to end after it. The largest problems are searched only under one.
    """
    started = time.monotonic()
    work = problem.dies**2 * max(1, len(problem.flows))
    large = work > LOCAL_SEARCH_WORK
    kicks = 0 if large else max(2, min(MOST_KICKS, LOCAL_SEARCH_WORK // work))
    found = sorted(candidates, key=problem.value)
    for number, candidate in enumerate(found):
        if time_s is None and large:
            break
        if time_s is not None and time.monotonic() - started + (kicks + 1) * work * SEARCH_S >= time_s:
            break
        found[number] = improve(problem, candidate, rng, kicks)
    return min(found, key=problem.value, default=None)


def ticks_of(problem: PlacementProblem, placement: Sequence[int]) -> int:
    """Value of a placement in the models' integer objective."""
    return sum(
        ticks * int(problem.hops[placement[s], placement[t]])
        for (s, t, _), ticks in zip(problem.flows, problem.ticks, strict=True)
    )


def _all_adjacent(problem: PlacementProblem) -> float:
    """Value if every flow went between the two closest dies."""
    apart = problem.hops[~np.eye(problem.dies, dtype=np.bool_)]
    return float(apart.min(initial=problem.hops.max())) * sum(weight for *_, weight in problem.flows)


def _too_few_neighbours(problem: PlacementProblem) -> bool:
    """True if disjoint pairs outnumber the couples of neighbouring dies that fit beside each other."""
    partnered = [stage for pair in problem.pairs for stage in pair]
    if not problem.pairs or len(set(partnered)) < len(partnered):
        return False
    return len(largest_matching(problem, one_way=True)) < len(problem.pairs)


def _without_engine(problem: PlacementProblem, start: list[int] | None, floor: float) -> PlacementResult:
    if start is None:
        return PlacementResult(None, None, floor, "unknown", "time_limit")
    return PlacementResult(start, problem.value(start), floor, "feasible", "time_limit")


def _concluded(
    problem: PlacementProblem, outcome: EngineOutcome, found: list[int] | None, start: list[int] | None, floor: float
) -> PlacementResult:
    """Join the engine's answer with the start: the better placement, a bound in the flows' own unit."""
    if outcome.status == "infeasible":
        return PlacementResult(None, None, None, "infeasible", "proved", outcome)
    bound = floor if outcome.bound is None else max(floor, outcome.bound * problem.tick)
    known = [placement for placement in (found, start) if placement is not None]
    if not known:
        return PlacementResult(None, None, bound, "unknown", outcome.stop_reason, outcome)
    best = min(known, key=problem.value)
    value = problem.value(best)
    # Rounded weights leave a gap of at most one tick per flow and hop: a proof in ticks is one up to that.
    proved = outcome.status == "optimal" and value <= bound * (1 + 1e-4)
    return PlacementResult(
        best,
        value,
        min(bound, value),
        "optimal" if proved else "feasible",
        "proved" if proved else outcome.stop_reason,
        outcome,
    )
