"""Cuts and 2N-part split of a V as a CP-SAT model (twin of `milp`), in ticks of `variables.VirtualProblem`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.interface import EngineOutcome
from formulations.virtual.variables import (
    Arc,
    At,
    Part,
    Task,
    VirtualProblem,
    chunk_name,
    part_name,
    seconds_name,
    start_name,
)


@dataclass
class VirtualModel:
    """The model and its variables."""

    problem: VirtualProblem
    model: cp_model.CpModel
    chunk: dict[tuple[int, int], dict[Arc, cp_model.IntVar]]
    part: list[dict[Part, cp_model.IntVar]]
    seconds: dict[At, cp_model.IntVar]
    start: dict[Task, cp_model.IntVar]

    def end(self, task: Task) -> cp_model.LinearExpr:
        """When a task ends."""
        wave, j, i = task
        return self.start[task] + self.seconds[self.problem.wave_kind[wave], j, i]

    def hop(self, task: Task) -> cp_model.LinearExpr:
        """How long its chunk is on the way to another die."""
        wave, _, i = task
        kind = self.problem.wave_kind[wave]
        chunks = self.chunk[self.problem.kinds[kind], i]
        return cp_model.LinearExpr.weighted_sum(list(chunks.values()), [self.problem.hop[kind][arc] for arc in chunks])


def build(problem: VirtualProblem) -> VirtualModel:
    """The model of one cell."""
    model, horizon = cp_model.CpModel(), problem.horizon
    chunk = {at: {arc: model.new_bool_var(chunk_name(*at, arc)) for arc in arcs} for at, arcs in problem.arcs.items()}
    part = [
        {each: model.new_bool_var(part_name(j, each)) for each in options} for j, options in enumerate(problem.parts)
    ]
    ats = [(problem.wave_kind[wave], j, i) for wave, j, i in problem.tasks()]
    seconds = {at: model.new_int_var(0, horizon, seconds_name(at)) for at in dict.fromkeys(ats)}
    start = {task: model.new_int_var(0, horizon, start_name(task)) for task in problem.tasks()}
    folded = VirtualModel(problem, model, chunk, part, seconds, start)
    chunks_cover(folded)
    layers_cover(folded)
    seconds_of_chunks(folded)
    activation_ready(folded)
    die_serial(folded)
    in_flight_window(folded)
    minimise_objective(folded)
    return folded


def chunks_cover(folded: VirtualModel) -> None:
    """Each chunk covers some quanta, and starts where the one before it ends."""
    for (shape, i), chunks in folded.chunk.items():
        folded.model.add_exactly_one(chunks.values())
        following = folded.chunk.get((shape, i + 1), {})
        for position in range(1, folded.problem.quanta[shape]) if following else ():
            ending = sum(literal for (_, e), literal in chunks.items() if e == position)
            starting = sum(literal for (p, _), literal in following.items() if p == position)
            folded.model.add(ending == starting)


def layers_cover(folded: VirtualModel) -> None:
    """Each part has some layers, and starts where the one before it ends."""
    for j, options in enumerate(folded.part):
        folded.model.add_exactly_one(options.values())
        following = folded.part[j + 1] if j + 1 < len(folded.part) else {}
        for layer in range(1, folded.problem.layers) if following else ():
            ending = sum(literal for (_, b), literal in options.items() if b == layer)
            starting = sum(literal for (a, _), literal in following.items() if a == layer)
            folded.model.add(ending == starting)


def seconds_of_chunks(folded: VirtualModel) -> None:
    """A chunk takes on a part what its quanta take on the part's layers."""
    problem = folded.problem
    for (kind, j, i), seconds in folded.seconds.items():
        chunks = folded.chunk[problem.kinds[kind], i]
        for part, chosen in folded.part[j].items():
            ticks = problem.ticks[problem.key(kind, j, part)]
            taken = cp_model.LinearExpr.weighted_sum(list(chunks.values()), [ticks[arc] for arc in chunks])
            folded.model.add(seconds == taken).only_enforce_if(chosen)


def activation_ready(folded: VirtualModel) -> None:
    """Waves arrive, and chunks are handed on."""
    for wave, ready in enumerate(folded.problem.ready):
        folded.model.add(folded.start[wave, 0, 0] >= ready)
    for task, following, handed in folded.problem.ways():
        hop = folded.hop(task) if handed else 0
        folded.model.add(folded.start[following] >= folded.end(task) + hop)


def die_serial(folded: VirtualModel) -> None:
    """Each die runs its program in order, one task at a time."""
    for program in folded.problem.programs():
        for task, following in pairwise(program):
            folded.model.add(folded.start[following] >= folded.end(task))


def in_flight_window(folded: VirtualModel) -> None:
    """A chunk enters when the one a window before it has left."""
    for left, entering in folded.problem.windows():
        folded.model.add(folded.start[entering] >= folded.end(left))


def minimise_objective(folded: VirtualModel) -> None:
    """The makespan, the sum of all completions, or the latency of a rank: all others but so many are no later."""
    problem, model = folded.problem, folded.model
    last = len(problem.parts) - 1
    ends = [folded.end((wave, last, problem.count(kind) - 1)) for wave, kind in enumerate(problem.wave_kind)]
    if problem.objective == "mean_latency":
        model.minimize(cp_model.LinearExpr.sum([ends[wave] for wave, _ in problem.arrivals]))
        return
    horizon = problem.horizon
    latest = model.new_int_var(-horizon, 2 * horizon, "latest")
    skipped = []
    for number, (wave, arrival) in enumerate(problem.arrivals):
        since = 0 if problem.objective == "makespan" else arrival
        if problem.late:
            skipped.append(model.new_bool_var(f"late[{number}]"))
            model.add(latest >= ends[wave] - since).only_enforce_if(skipped[-1].negated())
        else:
            model.add(latest >= ends[wave] - since)
    model.add(sum(skipped) <= problem.late)
    model.minimize(latest)


def extract(folded: VirtualModel, outcome: EngineOutcome) -> tuple[list[list[int]], tuple[int, ...]]:
    """Ends of the chunks of each request shape in quanta, and layers of the parts."""
    problem = folded.problem
    cuts = [
        [
            next(e for (_, e), literal in folded.chunk[shape, i].items() if outcome.value_of(literal) > 0.5)
            for i in range(count)
        ]
        for shape, count in enumerate(problem.cell.counts)
    ]
    chosen = (next(part for part, on in options.items() if outcome.value_of(on) > 0.5) for options in folded.part)
    return cuts, tuple(b - a for a, b in chosen)
