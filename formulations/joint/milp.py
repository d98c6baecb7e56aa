"""The joint problem as a MILP (twin of `cpsat`, where it says what is left out), in ticks of `problem.JointProblem`.

Rows that hold under conditions are lifted by the most that they can be broken where a condition does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulp

from formulations.interface import EngineOutcome
from formulations.joint.milp_memory import (
    memory_admission,
    remote_fetch,
    serve_stall,
    spill_within_chunk,
    spill_write,
    stage_workspace,
)
from formulations.joint.milp_model import JointModel, Sum, Variable, add_if, binary, total
from formulations.joint.problem import Arc, JointProblem, Task
from formulations.joint.rows import best_configuration, chosen_cuts, plan_of, window_rows
from formulations.joint.variables import name
from instances.plan import Plan


def build(problem: JointProblem, start: Plan | None = None) -> JointModel:
    """The model that minimises the objective; ``start`` is a plan to begin from."""
    joint = parts(problem)
    minimise_latency(joint)
    if start is not None:
        hint(joint, start)
    return joint


def parts(problem: JointProblem) -> JointModel:
    """Variables and rules, without an objective."""
    joint = JointModel(problem, pulp.LpProblem("joint", pulp.LpMinimize))
    one_configuration(joint)
    chunks_cover(joint)
    stage_work(joint)
    task_end(joint)
    die_serial(joint)
    activation_ready(joint)
    link_fifo(joint)
    in_flight_window(joint)
    if problem.memory_binds:
        stage_workspace(joint)
        spill_within_chunk(joint)
        spill_write(joint)
        remote_fetch(joint)
        serve_stall(joint)
        memory_admission(joint)
    completions(joint)
    return joint


def one_configuration(joint: JointModel) -> None:
    """One layer split and placement (``layers_cover``, ``placement_injective`` and the like hold in each)."""
    joint.place = [binary(joint, name("place", g)) for g in range(len(joint.problem.configurations))]
    joint.model += total(joint.place) == 1


def chunks_cover(joint: JointModel) -> None:
    """Chunks follow each other from position 0 to an end; slots behind the last stay empty."""
    problem, model = joint.problem, joint.model
    for number, arcs in enumerate(problem.arcs):
        for arc, slots in arcs.items():
            for i in slots:
                joint.chunk[number, i, arc] = binary(joint, name("chunk", number, i, arc.start, arc.end, arc.last))
        for i in range(problem.slots[number]):
            here = joint.arcs_at(number, i)
            for kind, table in (("used", joint.used), ("last", joint.last)):
                table[number, i] = binary(joint, name(kind, number, i))
                counted = [joint.chunk[number, i, arc] for arc in here if arc.last or kind == "used"]
                model += total(counted) == table[number, i]
            if i == 0:
                model += joint.used[number, 0] == 1
                continue
            for position in range(1, problem.quanta[number] + 1):
                begins = [joint.chunk[number, i, arc] for arc in here if arc.start == position]
                before = [arc for arc in joint.arcs_at(number, i - 1) if arc.end == position and not arc.last]
                if begins or before:
                    model += total(begins) == total([joint.chunk[number, i - 1, arc] for arc in before])


def stage_work(joint: JointModel) -> None:
    """A chunk takes the time and memory of the stage's choice, and the time of the way to the next stage."""
    problem = joint.problem
    for number in range(len(problem.arcs)):
        for s in range(problem.stages):
            selected = [joint.on(s, o) for o in range(problem.choices[s])]
            _select(joint, "load", joint.load, number, s, selected)
        for s in range(problem.stages - 1):
            selected = [
                total([place for g, place in enumerate(joint.place) if problem.way_of[g][s] == v])
                for v in range(problem.ways[s])
            ]
            _select(joint, "crossing", joint.crossing, number, s, selected)


def _select(
    joint: JointModel,
    kind: str,
    table: dict[tuple[int, int, int, int, Arc], Variable],
    number: int,
    stage: int,
    selected: Sequence[Sum],
) -> None:
    """Each chunk once for the choice that is selected."""
    model = joint.model
    for i in range(joint.problem.slots[number]):
        arcs = joint.arcs_at(number, i)
        if len(selected) == 1:
            table.update({(number, stage, 0, i, arc): joint.chunk[number, i, arc] for arc in arcs})
            continue
        for o, chosen in enumerate(selected):
            for arc in arcs:
                table[number, stage, o, i, arc] = binary(joint, name(kind, number, stage, o, i, *arc))
            model += total([table[number, stage, o, i, arc] for arc in arcs]) <= chosen
        for arc in arcs:
            each = [table[number, stage, o, i, arc] for o in range(len(selected))]
            model += total(each) == joint.chunk[number, i, arc]


def task_end(joint: JointModel) -> None:
    """A task ends when its compute has; later only if it fetches or serves."""
    for task in joint.problem.tasks:
        joint.start[task] = joint.model.add_variable(name("start", *task), 0, joint.problem.horizon)
        joint.end[task] = joint.model.add_variable(name("end", *task), 0, joint.problem.horizon)
        works = joint.end[task] - joint.start[task] - joint.duration(task)
        joint.model += works >= 0 if joint.problem.memory_binds else works == 0


def die_serial(joint: JointModel) -> None:
    """A die runs waves in order, and chunks in order."""
    for task in joint.problem.tasks:
        before = joint.problem.task_before(task)
        if before is not None:
            joint.model += joint.start[task] >= joint.end[before]


def activation_ready(joint: JointModel) -> None:
    """A task waits for the activations of the stage before, stage 0 for the arrival of the wave."""
    problem = joint.problem
    for task in problem.tasks:
        w, s, i = task
        if s == 0:
            joint.model += joint.start[task] >= problem.waves[w].ready
            continue
        joint.arrive[task] = joint.model.add_variable(name("arrive", *task), 0, problem.horizon)
        joint.model += joint.arrive[task] >= joint.end[Task(w, s - 1, i)] + _on_the_way(joint, task, problem.sent)
        joint.model += joint.start[task] >= joint.arrive[task]


def link_fifo(joint: JointModel) -> None:
    """Activations for one stage take the same links, one after the other; other transfers are left out."""
    problem = joint.problem
    if problem.instance.pipeline.switching != "cut_through":
        return  # stored in between, a small transfer may come closely behind a large one
    for task, arrive in joint.arrive.items():
        before = problem.task_before(task)
        if before is not None:
            joint.model += arrive >= joint.arrive[before] + _on_the_way(joint, task, problem.occupied)


def _on_the_way(joint: JointModel, task: Task, ticks: Mapping[tuple[int, int, int, Arc], int]) -> Sum:
    problem, number, s = joint.problem, joint.problem.list_of(task.wave), task.stage - 1
    kind = problem.waves[task.wave].kind
    return total(
        [
            ticks[kind, s, v, arc] * joint.crossing[number, s, v, task.slot, arc]
            for v in range(problem.ways[s])
            for arc in joint.arcs_at(number, task.slot)
        ]
    )


def in_flight_window(joint: JointModel) -> None:
    """With K chunks in flight at most, a chunk enters when the K-th before it has left."""
    for entering, leaving, counts, used in window_rows(joint.problem):
        conditions = [joint.last[at] for at in counts] + [joint.used[at] for at in used]
        add_if(joint, joint.start[entering] - joint.end[leaving], conditions, joint.problem.horizon)


def completions(joint: JointModel) -> None:
    """The objective: a sum of completions, the last one, or a rank of the latencies."""
    problem, model = joint.problem, joint.model
    value = joint.model.add_variable("value", 0, problem.most_value)
    joint.value = value
    ends = [joint.end[Task(w, problem.stages - 1, problem.slots_of(w) - 1)] for w in range(len(problem.waves))]
    if problem.goal == "mean_latency":
        model += value == total([wave.size * end for wave, end in zip(problem.waves, ends, strict=True)])
    elif problem.goal == "makespan":
        model += value == ends[-1]
    else:
        beyond: list[Sum] = []
        for w, wave in enumerate(problem.waves):
            for number, arrival in enumerate(wave.arrivals):
                late = binary(joint, name("late", w, number))
                beyond.append(late)
                add_if(joint, value - ends[w] + arrival, [1 - late], problem.horizon)
        model += total(beyond) <= problem.excluded


def minimise_latency(joint: JointModel) -> None:
    """The least value."""
    assert joint.value is not None
    joint.model.setObjective(total([joint.value]))


def hint(joint: JointModel, plan: Plan) -> None:
    """Hint a plan's cuts and configuration; the times follow from them."""
    cuts = chosen_cuts(joint.problem, plan)
    for (number, i, arc), chunk in joint.chunk.items():
        chunk.setInitialValue(int(cuts[number].get(i) == arc))
    found = best_configuration(joint.problem, plan)
    if found is not None:
        for g, place in enumerate(joint.place):
            place.setInitialValue(int(g == found))


def extract(joint: JointModel, outcome: EngineOutcome) -> Plan:
    """The plan of a solved model."""
    return plan_of(
        joint.problem,
        next(g for g, place in enumerate(joint.place) if outcome.value_of(place) > 0.5),
        [at for at, chunk in joint.chunk.items() if outcome.value_of(chunk) > 0.5],
        {at: round(outcome.value_of(tokens)) for at, tokens in joint.spill.items()},
        {at: round(outcome.value_of(tokens)) for at, tokens in joint.out.items()},
    )
