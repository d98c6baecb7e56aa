"""Dynamic rematching of debtors and creditors with migration charged, the remedy that MOCAP's paper rejects (Fig. 5 b).

The paper gives no algorithm and no cost. Our reading: partners are chosen by load in lockstep, again every ``span``
chunks (``rematch_pairs``); a stage lends only what it has no room for; what is lent moves when the partner changes, one
read and one write, and the die waits for it (``rematch_program``). Spans from M/2, where nothing moves, down to 1 are
tried. The answer is a program, or a plan where nothing moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

import numpy as np

from formulations.explain.uniform import memory_reason
from formulations.structure import structural_reason
from instances.errors import PlanError
from instances.instance import Instance
from instances.plan import Plan
from instances.workload import Shape, Wave, form_waves
from solver.policies.rematch_pairs import Lending, Loads, rematched
from solver.policies.rematch_program import Move, rematch_document
from solver.policies.rematch_rows import plan_with_rows
from solver.policies.uniform import uniform_plans
from solver.search import Search
from solver.serving.prompts import prompts_served
from solver.serving.served import Served
from solver.serving.setting import slow_seams
from solver.simulation.columns import WRITE
from solver.simulation.engine import Run, run
from solver.simulation.program import Int64s, Program
from solver.simulation.program_file import read_program

MARGIN = 1e-3
"""Share of a die's room that is kept back: bytes leave at the end of a chunk, and are gone when they have arrived."""
MOST_TASKS = 1 << 15
"""Tasks of a plan whose programs, some four times as long, are written down: seconds each."""
TASK_S = 2e-4
"""Seconds for a task of the plan, roughly."""


def rematch(search: Search) -> None:
    """Equal chunks, the number asked for or the best of a ladder, with rematching where they do not fit.

    Knob ``span``: chunks for which a stage keeps its partner; 0 tries powers of two.
    """
    search.structural = structural_reason(search.instance) or memory_reason(search.instance)
    search.unserved = refusal(search.instance)
    if search.structural is not None or search.unserved is not None:
        return
    best: Served | None = None
    for plan in uniform_plans(search, largest_batch_first=True):
        if search.deadline.over:
            break
        value = search.offer(plan)
        for served in () if value is not None else rematchings(search, plan, lambda: search.deadline.over):
            if best is None or served.value < best.value:
                best = served
    own = search.incumbent.value
    if best is not None and (own is None or best.value < own):
        search.served = best
        search.incumbent.plan = search.incumbent.value = None  # the answer is one or the other


def refusal(instance: Instance) -> str | None:
    """Why no program says what the instance asks for; None if one does."""
    if instance.pipeline.max_in_flight is not None:
        return "pipeline.max_in_flight: a program of rematching has more tasks than chunks, so no window counts them"
    return slow_seams(instance.hardware)


def rematchings(search: Search, plan: Plan, enough: Callable[[], bool]) -> Iterator[Served]:
    """Programs like a plan without spill, its dies lending by load; those that run, few moves first.

    Where nothing moves the plan with spill rows is offered to the search; if that runs there is no program.
    """
    if refusal(search.instance) is not None:
        return
    waves = form_waves(search.evaluator.requests, plan.batch)
    try:
        bare = search.evaluator.lowering.program(plan.model_copy(update={"spill": ()}))
    except PlanError:  # a chunk outside a measured table
        return
    if bare.tasks > MOST_TASKS or (bare.static_units > bare.capacity_units).any():
        return
    known: set[tuple[int, ...]] = set()
    for span, ahead in _variants(search, plan):
        if enough() or not search.incumbent.affords_s(bare.tasks * TASK_S):
            return
        lendings = lendings_of(search, plan, bare, waves, span, ahead)
        if lendings is None:
            continue
        key = tuple(hash(each.lent.tobytes() + each.creditor.tobytes()) for each in lendings)
        if key in known:
            continue
        known.add(key)
        still = plan_with_rows(search.instance, plan, waves, lendings, bare.units_per_byte)
        if still is not None and search.offer(still) is not None:
            continue
        served = served_program(search.instance, plan, bare, waves, lendings)
        if served is not None:
            yield served


def _variants(search: Search, plan: Plan) -> Iterator[tuple[int, int]]:
    """Spans, long ones first, and by how many chunks memory is cleared early."""
    longest = max(map(len, plan.chunks.values()))
    asked = search.knobs.get("span", 0)
    spans = [asked] if asked else [max(1, longest >> halvings) for halvings in range(1, longest.bit_length())]
    yield from ((span, ahead) for span in dict.fromkeys(spans or [1]) for ahead in (1, 0))


def lendings_of(
    search: Search, plan: Plan, bare: Program, waves: list[Wave], span: int, ahead: int
) -> list[Lending] | None:
    """One for each wave; None where some stage finds no partner."""
    hops = bare.network.hops[np.ix_(bare.die_of_stage(), bare.die_of_stage())].astype(np.int64)
    room = np.floor((bare.capacity_units - bare.static_units) * (1 - MARGIN)).astype(np.int64)[bare.die_of_stage()]
    known: dict[tuple[Shape, int], Lending | None] = {}
    for number, wave in enumerate(waves):
        kind = wave.shape, wave.size
        if kind not in known:
            held = bare.take_units[bare.wave == number].reshape(-1, bare.stages).cumsum(axis=0).T
            loads = Loads(held, _lendable(search, plan, bare, wave), room, hops)
            found = rematched(loads, span, ahead)
            known[kind] = None if found is None else _in_whole_bytes(found, bare.units_per_byte)
            if found is None or not _has_at_home(held, found):
                return None
    return [found for wave in waves if (found := known[wave.shape, wave.size]) is not None]


def _lendable(search: Search, plan: Plan, bare: Program, wave: Wave) -> Int64s:
    """Units of the chunks that are over, as far as they may be elsewhere. Shape [N, M]."""
    cost, sizes = search.instance.stage_cost, np.array(plan.chunk_sizes(wave.shape[0] - wave.shape[1]))
    done = np.concatenate(([0], np.cumsum(sizes[:-1]))) * wave.size
    each = [
        cost.spillable_bytes_per_token(stop - layers, stop)
        for stop, layers in zip(accumulate(plan.layers), plan.layers, strict=True)
    ]
    units: Int64s = np.floor(np.outer(each, done) * bare.units_per_byte).astype(np.int64)
    return units


def _in_whole_bytes(lending: Lending, units_per_byte: int) -> Lending:
    """The same, rounded up."""
    return Lending(-(-lending.lent // units_per_byte) * units_per_byte, lending.creditor, lending.groups)


def _has_at_home(held: Int64s, lending: Lending) -> bool:
    """Whether a stage keeps at least what it lends wherever its creditor changes; a program is written so."""
    return all(
        (held[:, first - 1] - lending.lent[:, first - 1] >= lending.lent[:, first]).all()
        for first, _ in lending.groups[1:]
    )


def served_program(
    instance: Instance, plan: Plan, bare: Program, waves: list[Wave], lendings: list[Lending]
) -> Served | None:
    """The program replayed and measured; None if it gets stuck, or some die would hold more than it has."""
    made = rematch_document(instance, plan.placement, bare, lendings)
    program = read_program(made.document)
    outcome = run(program, traced=True)
    if outcome.deadlock or not _fits(program, outcome, made.moves):
        return None
    return prompts_served(instance, made.document, waves, (program, outcome))


def _fits(program: Program, outcome: Run, moves: tuple[Move, ...]) -> bool:
    """Whether what is on the move has room too, in the moments when the program counts it nowhere."""
    events = outcome.events
    assert events is not None
    number = {
        (int(wave), int(stage), int(chunk)): task
        for task, (wave, stage, chunk) in enumerate(zip(program.wave, program.stage, program.chunk, strict=True))
    }
    writes = events.transfers[events.transfers[:, 0] == WRITE]
    arrival_ps = dict(zip(writes[:, 3].tolist(), writes[:, 7].tolist(), strict=True))
    for move in moves:
        begin = arrival_ps.get(number[move.write], 0)
        end = int(outcome.start_ps[number[move.counted]])
        die = int(program.die[number[move.counted]])
        memory = events.memory[events.memory[:, 1] == die]
        inside = memory[(memory[:, 0] >= begin) & (memory[:, 0] < end)]
        if len(inside) and int(inside[:, 2].max()) + move.units > program.capacity_units[die]:
            return False
    return True
