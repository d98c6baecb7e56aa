"""What the two joint models count alike: rows of the window, amounts lent, and plans read and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, product
from typing import Literal

from formulations.joint.problem import HOST, Arc, JointProblem, Lent, Task
from instances.plan import Creditor, Plan, SpillRow

Slot = tuple[int, int]
"""Chunk list and slot."""


def window_rows(problem: JointProblem) -> Iterator[tuple[Task, Task, list[Slot], list[Slot]]]:
    """Chunks that enter after others have left: (entering, leaving, last slots, used slots).

    The row holds where these slots are the last ones of their lists, and where these are used: how many chunks lie
    between two depends on the numbers of chunks of the waves between them.
    """
    window, stages = problem.instance.pipeline.max_in_flight, problem.stages
    if window is None:
        return
    for w in range(len(problem.waves)):
        for i in range(problem.slots_of(w)):
            entering, here = Task(w, 0, i), (problem.list_of(w), i)
            if i >= window:
                yield entering, Task(w, stages - 1, i - window), [], [here]
                continue
            for earlier in reversed(range(w)):
                between = [problem.list_of(v) for v in range(earlier, w)]
                lists = sorted(set(between))
                for counts in product(*(range(1, problem.slots[number] + 1) for number in lists)):
                    count_of = dict(zip(lists, counts, strict=True))
                    j = i + sum(count_of[number] for number in between) - window
                    if 0 <= j < count_of[problem.list_of(earlier)]:
                        last = [(number, count - 1) for number, count in count_of.items()]
                        yield entering, Task(earlier, stages - 1, j), last, [here]


def lent_at(problem: JointProblem, what: Literal["spill", "out"]) -> Iterator[tuple[Lent, int]]:
    """Places of variables for amounts lent, and their upper bounds in tokens.

    Spill is told by request shape for each slot but the last; what lies elsewhere by wave, for each slot but the first
    and once more for the end of the wave.
    """
    kinds = [wave.kind for wave in problem.waves] if what == "out" else range(len(problem.kinds))
    seen: set[int] = set()
    for number, kind in enumerate(kinds):
        row = number if what == "out" else problem.shape_of_kind[kind]
        if row in seen:
            continue
        seen.add(row)
        slots = problem.slots[problem.list_of_kind[kind]]
        for of, stage, choice, creditor in problem.lent:
            if of == kind and slots > 1:
                at = range(1, slots + 1) if what == "out" else range(slots - 1)
                most = _tokens(problem, problem.list_of_kind[kind])
                yield from ((Lent(row, stage, choice, slot, creditor), most) for slot in at)


def most_lent(problem: JointProblem, wave: int) -> int:
    """Tokens of a wave that may lie elsewhere at most."""
    return _tokens(problem, problem.list_of(wave))


def most_held(problem: JointProblem, stage: int) -> int:
    """Memory that a stage may hold of one wave."""
    return max((one.held for key, one in problem.numbers.items() if key[1] == stage), default=0)


def later_slots(problem: JointProblem, task: Task) -> list[Task]:
    """The next slot of the same wave and stage, if there is one."""
    following = Task(task.wave, task.stage, task.slot + 1)
    return [following] if following.slot < problem.slots_of(task.wave) else []


def _tokens(problem: JointProblem, number: int) -> int:
    return problem.positions[number][-2]


def chosen_cuts(problem: JointProblem, plan: Plan) -> list[dict[int, Arc]]:
    """Arc in each used slot of each chunk list."""
    found = []
    for number, count in enumerate(problem.instance.workload.uncached_counts):
        quantum, sizes = problem.instance.pipeline.chunk_quantum, plan.chunk_sizes(count)
        ends = [-(-end // quantum) for end in accumulate(sizes)]
        starts = [0, *ends[:-1]]
        found.append(
            {
                i: Arc(start, end, i == len(ends) - 1)
                for i, (start, end) in enumerate(zip(starts, ends, strict=True))
                if i < problem.slots[number]
            }
        )
    return found


def best_configuration(problem: JointProblem, plan: Plan) -> int | None:
    """The configuration with a plan's layers and, where it can be, its placement."""
    fits = [g for g, one in enumerate(problem.configurations) if one.layers == plan.layers]
    same = [g for g in fits if problem.configurations[g].placement == plan.placement]
    return next(iter(same or fits), None)


def plan_of(
    problem: JointProblem,
    configuration: int,
    chunks: Iterable[tuple[int, int, Arc]],
    spill: Mapping[Lent, int],
    out: Mapping[Lent, int],
) -> Plan:
    """The plan of a configuration, of chunks (list, slot, arc) and of tokens spilled.

    Of these only as many as lie elsewhere when a task starts, the latest first: they are fetched less often.
    """
    chosen, instance = problem.configurations[configuration], problem.instance
    sizes: dict[int, list[int]] = {}
    for number, _, arc in sorted(chunks):
        sizes.setdefault(number, []).append(problem.tokens(number, arc))
    rows = []
    for at, tokens in sorted(_needed(problem, spill, out).items()):
        if tokens > 0:
            creditor: Creditor = "host" if at.creditor == HOST else at.creditor
            shape = problem.shapes[at.row] if len(problem.shapes) > 1 else None
            rows.append(SpillRow(stage=at.stage, chunk=at.slot, creditor=creditor, tokens=tokens, shape=shape))
    return Plan(
        instance=instance.fingerprint,
        batch=problem.batch,
        layers=chosen.layers,
        placement=chosen.placement,
        chunks={str(sum(each)): tuple(each) for each in sizes.values()},
        spill=tuple(rows),
    )


def _needed(problem: JointProblem, spill: Mapping[Lent, int], out: Mapping[Lent, int]) -> dict[Lent, int]:
    """Tokens of each chunk that have to be spilled for what lies elsewhere."""
    elsewhere: dict[Lent, int] = {}
    for at, tokens in out.items():
        if at.slot < problem.slots_of(at.row):
            place = at._replace(row=problem.shape_of_kind[problem.waves[at.row].kind])
            elsewhere[place] = max(tokens, elsewhere.get(place, 0))
    needed = dict.fromkeys(spill, 0)
    for at, tokens in sorted(elsewhere.items()):
        earlier = [at._replace(slot=slot) for slot in reversed(range(at.slot))]
        missing = tokens - sum(needed[place] for place in earlier)
        for place in earlier:
            taken = max(0, min(missing, spill[place] - needed[place]))
            needed[place], missing = needed[place] + taken, missing - taken
    return needed
