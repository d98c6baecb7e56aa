"""Cuts and 2N-part split of a V as a MILP (twin of `cpsat`), in ticks of `variables.VirtualProblem`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pulp

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
    model: pulp.LpProblem
    chunk: dict[tuple[int, int], dict[Arc, pulp.LpVariable]]
    part: list[dict[Part, pulp.LpVariable]]
    seconds: dict[At, pulp.LpVariable]
    start: dict[Task, pulp.LpVariable]

    def end(self, task: Task) -> pulp.LpAffineExpression:
        """When a task ends."""
        wave, j, i = task
        return self.start[task] + self.seconds[self.problem.wave_kind[wave], j, i]

    def hop(self, task: Task) -> pulp.LpAffineExpression:
        """How long its chunk is on the way to another die."""
        wave, _, i = task
        kind = self.problem.wave_kind[wave]
        chunks = self.chunk[self.problem.kinds[kind], i]
        return pulp.lpSum(self.problem.hop[kind][arc] * binary for arc, binary in chunks.items())


def build(problem: VirtualProblem) -> VirtualModel:
    """The model of one cell."""
    model, horizon = pulp.LpProblem("virtual", pulp.LpMinimize), problem.horizon
    chunk = {
        at: {arc: model.add_variable(chunk_name(*at, arc), 0, 1, cat=pulp.LpInteger) for arc in arcs}
        for at, arcs in problem.arcs.items()
    }
    part = [
        {each: model.add_variable(part_name(j, each), 0, 1, cat=pulp.LpInteger) for each in options}
        for j, options in enumerate(problem.parts)
    ]
    ats = [(problem.wave_kind[wave], j, i) for wave, j, i in problem.tasks()]
    seconds = {at: model.add_variable(seconds_name(at), 0, horizon) for at in dict.fromkeys(ats)}
    start = {task: model.add_variable(start_name(task), 0, horizon) for task in problem.tasks()}
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
        folded.model += pulp.lpSum(chunks.values()) == 1
        following = folded.chunk.get((shape, i + 1), {})
        for position in range(1, folded.problem.quanta[shape]) if following else ():
            ending = pulp.lpSum(binary for (_, e), binary in chunks.items() if e == position)
            starting = pulp.lpSum(binary for (p, _), binary in following.items() if p == position)
            folded.model += ending - starting == 0


def layers_cover(folded: VirtualModel) -> None:
    """Each part has some layers, and starts where the one before it ends."""
    for j, options in enumerate(folded.part):
        folded.model += pulp.lpSum(options.values()) == 1
        following = folded.part[j + 1] if j + 1 < len(folded.part) else {}
        for layer in range(1, folded.problem.layers) if following else ():
            ending = pulp.lpSum(binary for (_, b), binary in options.items() if b == layer)
            starting = pulp.lpSum(binary for (a, _), binary in following.items() if a == layer)
            folded.model += ending - starting == 0


def seconds_of_chunks(folded: VirtualModel) -> None:
    """A chunk takes on a part at least what its quanta take on the part's layers."""
    problem = folded.problem
    for (kind, j, i), seconds in folded.seconds.items():
        chunks = folded.chunk[problem.kinds[kind], i]
        for part, chosen in folded.part[j].items():
            ticks = problem.ticks[problem.key(kind, j, part)]
            longest = max((ticks[arc] for arc in chunks), default=0)
            taken = pulp.lpSum(ticks[arc] * binary for arc, binary in chunks.items())
            folded.model += seconds - taken - longest * chosen >= -longest


def activation_ready(folded: VirtualModel) -> None:
    """Waves arrive, and chunks are handed on."""
    for wave, ready in enumerate(folded.problem.ready):
        folded.model += folded.start[wave, 0, 0] >= ready
    for task, following, handed in folded.problem.ways():
        hop = folded.hop(task) if handed else 0
        folded.model += folded.start[following] - folded.end(task) - hop >= 0


def die_serial(folded: VirtualModel) -> None:
    """Each die runs its program in order, one task at a time."""
    for program in folded.problem.programs():
        for task, following in pairwise(program):
            folded.model += folded.start[following] - folded.end(task) >= 0


def in_flight_window(folded: VirtualModel) -> None:
    """A chunk enters when the one a window before it has left."""
    for left, entering in folded.problem.windows():
        folded.model += folded.start[entering] - folded.end(left) >= 0


def minimise_objective(folded: VirtualModel) -> None:
    """The makespan, the sum of all completions, or the latency of a rank: all others but so many are no later."""
    problem, model = folded.problem, folded.model
    last = len(problem.parts) - 1
    ends = [folded.end((wave, last, problem.count(kind) - 1)) for wave, kind in enumerate(problem.wave_kind)]
    if problem.objective == "mean_latency":
        model.setObjective(pulp.lpSum(ends[wave] for wave, _ in problem.arrivals))
        return
    horizon = problem.horizon
    latest = model.add_variable("latest", -horizon, 2 * horizon)
    skipped = []
    for number, (wave, arrival) in enumerate(problem.arrivals):
        since = 0 if problem.objective == "makespan" else arrival
        excess = latest - ends[wave]
        if problem.late:
            skipped.append(model.add_variable(f"late[{number}]", 0, 1, cat=pulp.LpInteger))
            excess = excess + 3 * horizon * skipped[-1]
        model += excess >= -since
    if skipped:
        model += pulp.lpSum(skipped) <= problem.late
    model.setObjective(pulp.lpSum([latest]))


def extract(folded: VirtualModel, outcome: EngineOutcome) -> tuple[list[list[int]], tuple[int, ...]]:
    """Ends of the chunks of each request shape in quanta, and layers of the parts."""
    cuts = [
        [
            next(e for (_, e), binary in folded.chunk[shape, i].items() if outcome.value_of(binary) > 0.5)
            for i in range(count)
        ]
        for shape, count in enumerate(folded.problem.cell.counts)
    ]
    chosen = (next(part for part, on in options.items() if outcome.value_of(on) > 0.5) for options in folded.part)
    return cuts, tuple(b - a for a, b in chosen)
