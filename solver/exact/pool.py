"""Pooled spill for given cuts: a linear program on the timeline of the unlimited run, repaired by replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from formulations.interface import EngineLimits
from formulations.spill.milp import SpillProblem, always_too_full, amounts, build
from formulations.spill.rows import memory_rows
from instances.instance import Instance
from instances.plan import Creditor, Plan, SpillRow
from solver.backends.highs import solve_highs
from solver.search import Search
from solver.simulation.engine import run
from solver.simulation.lowering import Lowering
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import NO_LIMIT_UNITS, Program

Amounts = npt.NDArray[np.float64]

MARGINS = (0.002, 0.01, 0.03, 0.06)
"""Shares of the free memory kept back for drift between the timeline and the replay, tried in turn."""
MOST_ENGINE_S = 8.0
"""Seconds for one linear program: those that have a solution are quick, proving that one has none is not."""
HOP_WEIGHT = 0.03
"""Extra cost of a further hop: a creditor stands still for the bytes it serves however far they go, but a long route
holds links that others want."""
SLACK_SHARE = 0.2
"""Share of a mean chunk that a die may wait for a write of its own to leave."""


@dataclass(frozen=True)
class Unlimited:
    """Replay of a plan without spill and without memory limits."""

    value: float
    start_s: Amounts
    end_s: Amounts
    program: Program


def unlimited_run(search: Search, plan: Plan) -> Unlimited | None:
    """Times of all tasks, shape (W, S, M) of S stages (2N in a V), if memory had no limit.

    None for several request shapes or without time.
    """
    if len(search.instance.workload.shapes) > 1 or not search.incumbent.affords(plan):
        return None
    bare = plan.model_copy(update={"spill": ()})
    program = search.evaluator.lowering.program(bare)
    free = replace(program, capacity_units=np.full_like(program.capacity_units, NO_LIMIT_UNITS))
    outcome = run(free)
    shape = (free.waves, -1, free.stages)

    def in_order(times: npt.NDArray[np.int64]) -> Amounts:
        return times.reshape(shape).transpose(0, 2, 1) / PICOSECONDS_PER_S

    value = search.evaluator.objective(bare, free, outcome)
    return Unlimited(value, in_order(outcome.start_ps), in_order(outcome.end_ps), program)


def pooled_plan(
    search: Search, plan: Plan, unlimited: Unlimited, *, host: bool = True, partners: Sequence[int | None] | None = None
) -> float | None:
    """Offer plans like ``plan`` with pooled spill; the best value, or None if none runs. The host's memory counts too,
    where there is one and ``host`` says so. With ``partners``, one or none for each die, they alone are creditors.

    The program is built on ideal times and the replay drifts from them, so a share of the memory is kept back. Larger
    shares are tried while the replay does not run, and then as long as they make it faster: they cost traffic, but save
    waits for memory.
    """
    best: float | None = None
    for margin in MARGINS:
        if search.deadline.over:
            break
        spilled = spilled_plan(search, plan, unlimited, margin, host, partners)
        if spilled is None:
            break
        value = search.offer(spilled)
        if best is not None and (value is None or value >= best):
            break
        best = value
    return best


def has_room(search: Search, plan: Plan, unlimited: Unlimited, *, host: bool = True) -> bool:
    """Whether all KV of this timeline fits in all memories together, and each die holds what cannot leave it."""
    problem = spill_problem(search.instance, search.evaluator.lowering, plan, unlimited, MARGINS[0], with_host=host)
    return not always_too_full(problem) and pooled_excess_bytes(problem, unlimited.start_s, unlimited.end_s) <= 0


def spilled_plan(
    search: Search,
    plan: Plan,
    unlimited: Unlimited,
    margin: float,
    host: bool = True,
    partners: Sequence[int | None] | None = None,
) -> Plan | None:
    """The plan with the spill of the linear program, a share of the memory kept back.

    None if the program has no solution in time.
    """
    problem = spill_problem(search.instance, search.evaluator.lowering, plan, unlimited, margin, with_host=host)
    if partners is not None:
        problem = only_between(problem, partners)
    if always_too_full(problem) or pooled_excess_bytes(problem, unlimited.start_s, unlimited.end_s) > 0:
        return None
    model = build(problem)
    limits = EngineLimits(
        time_s=search.deadline.share(0.25, MOST_ENGINE_S),
        workers=search.limits.workers,
        deterministic=search.limits.deterministic,
    )
    outcome = solve_highs(model.problem, limits)
    if outcome.stop_reason == "interrupted":
        raise KeyboardInterrupt
    if outcome.stop_reason == "time_limit":
        search.deadline.cut_short()
    if not outcome.has_values:
        return None
    return plan.model_copy(update={"spill": spill_rows(search.instance, plan, amounts(model, outcome))})


def pooled_excess_bytes(problem: SpillProblem, start_s: Amounts, end_s: Amounts) -> float:
    """By how much all KV on this timeline exceeds all memory at the worst moment; above 0 no spill can help.

    Times have shape (W, S, M).
    """
    waves, stages, _ = start_s.shape
    held = np.diff(problem.held_bytes, axis=1, prepend=0.0)
    takes = np.broadcast_to(held, start_s.shape)
    released = np.broadcast_to(-problem.held_bytes[:, -1], (waves, stages))
    slack_s = SLACK_SHARE * float((end_s - start_s).mean())
    times = np.concatenate([start_s.ravel() + slack_s, end_s[:, :, -1].ravel()])
    changes = np.concatenate([takes.ravel(), released.ravel()])
    # A release at the moment of a start comes first, as in the replay.
    order = np.lexsort((changes, times))
    most: float = np.cumsum(changes[order]).max()
    everywhere: float = problem.free_bytes.sum() + len(problem.free_bytes) * problem.host_bytes
    return float(most - everywhere)


def spill_problem(
    instance: Instance, lowering: Lowering, plan: Plan, unlimited: Unlimited, margin: float, *, with_host: bool = True
) -> SpillProblem:
    """Data of the program for one wave after another of the only request shape."""
    cost, shape = instance.stage_cost, instance.workload.shapes[0]
    program, stages = unlimited.program, len(plan.layers)
    home, dies = program.die_of_stage(), program.dies
    sizes = np.array(plan.chunk_sizes(shape[0] - shape[1]))
    after = shape[1] + np.cumsum(sizes)
    size = min(plan.batch, len(instance.workload.all_requests()))
    held, spillable = np.empty((stages, len(sizes))), np.empty((stages, len(sizes)))
    for s, (stop, layers) in enumerate(zip(accumulate(plan.layers), plan.layers, strict=True)):
        held[s] = cost.kv_held_bytes(stop - layers, stop, size, after, sizes)
        spillable[s] = sizes * size * cost.spillable_bytes_per_token(stop - layers, stop)
    per_byte = 1.0 / program.network.bottleneck_bytes_per_s
    distance = np.full((stages, dies + 1), np.inf)
    between = (1.0 + HOP_WEIGHT * (program.network.hops - 1)) * per_byte
    distance[:, :dies] = np.where(np.eye(dies, dtype=bool), np.inf, between)[home]
    host = instance.hardware.host if with_host else None
    if host is not None:
        distance[:, dies] = 1.0 / host.host_bytes_per_s
    slowest = 1.0 / np.min(program.network.bottleneck_bytes_per_s[~np.eye(dies, dtype=bool)], initial=np.inf)
    mean_chunk = float((unlimited.end_s - unlimited.start_s).mean())
    free = (program.capacity_units - program.static_units) / lowering.units_per_byte
    return SpillProblem(
        held_bytes=held,
        spillable_bytes=spillable,
        free_bytes=free * (1.0 - margin),
        host_bytes=0.0 if host is None else host.host_bytes,
        cost_s_per_byte=distance,
        rows=memory_rows(
            unlimited.start_s, unlimited.end_s, spillable * slowest, SLACK_SHARE * mean_chunk, home.tolist()
        ),
        die_of_stage=tuple(home.tolist()),
    )


def only_between(problem: SpillProblem, partners: Sequence[int | None]) -> SpillProblem:
    """The same program where each die's stages spill to its partner alone, or not at all, beside the host."""
    cost = problem.cost_s_per_byte.copy()
    for stage, die in enumerate(problem.dies):
        others = [other for other in range(cost.shape[1] - 1) if other != partners[die]]
        cost[stage, others] = np.inf
    return replace(problem, cost_s_per_byte=cost)


def spill_rows(instance: Instance, plan: Plan, amounts_bytes: Amounts) -> tuple[SpillRow, ...]:
    """Whole tokens, rounded down, of the amounts (S, M, D+1) in bytes. Die k is named by its first stage, k."""
    cost, shape = instance.stage_cost, instance.workload.shapes[0]
    size = min(plan.batch, len(instance.workload.all_requests()))
    sizes = plan.chunk_sizes(shape[0] - shape[1])
    rows = []
    for s, (stop, layers) in enumerate(zip(accumulate(plan.layers), plan.layers, strict=True)):
        each = size * cost.spillable_bytes_per_token(stop - layers, stop)
        if not each:
            continue
        tokens = np.floor(amounts_bytes[s] / each + 1e-6).astype(int)
        for chunk, creditor in zip(*np.nonzero(tokens), strict=True):
            amount = min(int(tokens[chunk, creditor]), sizes[chunk])
            name: Creditor = "host" if creditor == amounts_bytes.shape[2] - 1 else int(creditor)
            rows.append(SpillRow(stage=s, chunk=int(chunk), creditor=name, tokens=amount))
    return tuple(rows)
