"""Solves a placement problem: constructed starts, bounds, the project's own searches, then an engine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from formulations.interface import Engine, EngineLimits, EngineOutcome, Status, StopReason
from formulations.placement import cpsat, domino
from formulations.placement.constructive import constructed, largest_matching
from formulations.placement.gilmore_lawler import fits, gilmore_lawler_bound
from formulations.placement.ladder_floor import all_shortest, structural_bound
from formulations.placement.local_search import SECONDS_PER_MOVE, improve
from formulations.placement.portfolio import Portfolio
from formulations.placement.problem import Flow, PlacementProblem, stated
from instances.errors import InputError

Listener = Callable[[float | None, float], None]
"""Hears a value, None while there is none, and a bound."""

FIRST_KICKS = 5
SEARCH_WORK = 15_000_000
"""Moves times flows up to which a problem counts as small for local search."""
MOST_BOUNDED_DIES = 512
"""Dies up to which bounds are worked out, in time that grows with their cube."""
ENGINE_SHARE = 0.25
"""Share of the time that an engine gets where the project's own searches come first."""
LEAST_ENGINE_S = 0.5
MOST_ENGINE_VARIABLES = 2_000
"""Variables and rows up to which a model is built and searched in seconds."""
MOST_ROW_SUM = 2**31
"""Sum of the coefficients of a row from which on engines may overflow."""
LONGEST_START_S = 5.0
"""No local search begins that is likely to take longer, since it cannot be interrupted."""
UNLIMITED_S = 60.0
"""Seconds of the project's own searches before an engine that has no limit."""


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
    bound_by
        Where the bound, or the proof that there is no placement, is from.
    """

    placement: list[int] | None
    value: float | None
    bound: float | None
    status: Status
    stop_reason: StopReason
    outcome: EngineOutcome | None = None
    bound_by: str = ""


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
        Limits of all searches together, and a CP-SAT engine for what the project's own searches leave open.

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
    return replace(result, placement=[live[die] for die in result.placement])


def solve(
    problem: PlacementProblem,
    limits: EngineLimits,
    engine: Engine | None,
    rng: np.random.Generator,
    listen: Listener | None = None,
) -> PlacementResult:
    """As `place`, for a problem that is stated already; `listen` hears value and bound from time to time."""
    started = time.monotonic()
    candidates = constructed(problem)
    if not candidates and _too_few_neighbours(problem):
        return PlacementResult(None, None, None, "infeasible", "proved", bound_by="matching")
    is_small = problem.dies <= MOST_BOUNDED_DIES
    bound = structural_bound(problem) if is_small else all_shortest(problem)
    if bound is None:
        return PlacementResult(None, None, None, "infeasible", "proved", bound_by="structure")
    known = Portfolio(problem, min(candidates, key=problem.ticks_of, default=None), bound)
    if listen is not None:
        known.listen = partial(_tell, listen)
    asks_engine = engine is not None and _suits_engine(problem)
    seconds = UNLIMITED_S if limits.time_s is None else limits.time_s
    try:
        if not known.closed:
            known.best = best_start(problem, candidates, rng, None if limits.deterministic else limits.time_s)
            known.bound = max(bound, gilmore_lawler_bound(problem) if is_small else 0)
        left = seconds if limits.deterministic else seconds - (time.monotonic() - started)
        own = left * (1 - ENGINE_SHARE) if asks_engine else left
        known.run(own, limits.deterministic, rng, limits.relative_gap)
    except KeyboardInterrupt:
        return replace(_result(known, limits), stop_reason="interrupted")
    if engine is None or not asks_engine or known.closed or known.is_near(limits.relative_gap):
        return _result(known, limits)
    if limits.time_s is not None:
        spent = limits.time_s * (1 - ENGINE_SHARE) if limits.deterministic else time.monotonic() - started
        left = limits.time_s - spent
        if not limits.deterministic and left < LEAST_ENGINE_S:
            return _result(known, limits)
        limits = replace(limits, time_s=left)
    return _asked(known, limits, engine)


def best_start(
    problem: PlacementProblem, candidates: Sequence[list[int]], rng: np.random.Generator, time_s: float | None = None
) -> list[int] | None:
    """Best candidate after a short local search, the best of them first; None without candidates.

    No search begins that is likely to end after the limit. The largest problems are searched only under one.
    """
    started = time.monotonic()
    longest = LONGEST_START_S if time_s is None else min(time_s, LONGEST_START_S)
    work = problem.dies**2 * max(1, len(problem.flows))
    large = work > SEARCH_WORK
    kicks = 0 if large else min(FIRST_KICKS, SEARCH_WORK // work)
    found = sorted(candidates, key=problem.value)
    for number, candidate in enumerate(found):
        if time_s is None and large:
            break
        likely_s = (kicks + 1) * work * SECONDS_PER_MOVE
        if time_s is not None and time.monotonic() - started + likely_s >= longest:
            break
        found[number] = improve(problem, candidate, rng, kicks)
    return min(found, key=problem.value, default=None)


def _too_few_neighbours(problem: PlacementProblem) -> bool:
    """True if disjoint pairs outnumber the couples of neighbouring dies that fit beside each other."""
    partnered = [stage for pair in problem.pairs for stage in pair]
    if not problem.pairs or len(set(partnered)) < len(partnered):
        return False
    return len(largest_matching(problem, one_way=True)) < len(problem.pairs)


def _suits_engine(problem: PlacementProblem) -> bool:
    """True if the model is small enough to be built and searched in seconds, and its numbers too."""
    rows = len(problem.flows) * max(1, len(problem.detours))
    in_range = fits(problem) and int(problem.hops.sum(axis=1).max()) < MOST_ROW_SUM
    return in_range and problem.stages * problem.dies + rows <= MOST_ENGINE_VARIABLES


def _asked(known: Portfolio, limits: EngineLimits, engine: Engine) -> PlacementResult:
    """Let an engine work on the model that suits it best, and join its answer with what is known."""
    problem, start = known.problem, known.best
    weights = domino.domino_weights(problem) if problem.pairs else None
    if weights is not None:
        circuit = domino.build(problem, weights, start, known.value, known.bound)
        outcome = engine(circuit.model, limits)
        found = domino.extract(circuit, outcome) if outcome.has_values else None
    else:
        model = cpsat.build(problem, start, known.bound)
        outcome = engine(model.model, limits)
        found = cpsat.extract(model, outcome) if outcome.has_values else None
    if outcome.status == "infeasible":
        return PlacementResult(None, None, None, "infeasible", "proved", outcome, outcome.engine)
    if found is not None and (known.value is None or problem.ticks_of(found) < known.value):
        known.best = found
    if outcome.bound is not None and outcome.bound > known.bound:
        known.bound, known.bound_by = math.ceil(outcome.bound - 1e-6), outcome.engine
    joined = _result(known, limits)
    return replace(joined, outcome=outcome, stop_reason="proved" if known.closed else outcome.stop_reason)


def _tell(listen: Listener, known: Portfolio) -> None:
    value = None if known.best is None else known.problem.value(known.best)
    listen(value, known.problem.weighed(known.bound))


def _result(known: Portfolio, limits: EngineLimits) -> PlacementResult:
    """What is known, in the flows' own unit."""
    problem = known.problem
    if known.infeasible:
        return PlacementResult(None, None, None, "infeasible", "proved", bound_by=known.bound_by)
    bound = problem.weighed(known.bound)
    if known.best is None:
        return PlacementResult(None, None, bound, "unknown", "time_limit", bound_by=known.bound_by)
    value = problem.value(known.best)
    # Where ticks are rounded, a proof in ticks leaves a gap of at most one tick per flow and hop.
    bound = min(bound, value)
    if known.closed:
        return PlacementResult(known.best, value, bound, "optimal", "proved", bound_by=known.bound_by)
    stop: StopReason = "gap" if known.is_near(limits.relative_gap) else "time_limit"
    return PlacementResult(known.best, value, bound, "feasible", stop, bound_by=known.bound_by)
