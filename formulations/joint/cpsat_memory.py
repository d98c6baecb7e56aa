"""Memory and what it costs in time: rules of the joint CP-SAT model that hold where memory binds."""

from __future__ import annotations

from formulations.joint.cpsat_model import JointModel, Literal, Sum, add_if, total
from formulations.joint.problem import HOST, Lent, Task, has_left, starts_before
from formulations.joint.rows import later_slots, lent_at, most_held, most_lent
from formulations.joint.variables import name


def stage_workspace(joint: JointModel) -> None:
    """A die has one workspace, for the largest chunk of all waves."""
    problem = joint.problem
    for s in range(problem.stages):
        amounts = {key: one.workspace for key, one in problem.numbers.items() if key[1] == s}
        largest = joint.model.new_int_var(0, max(amounts.values(), default=0), name("workspace", s))
        joint.workspace.append(largest)
        for kind, number in enumerate(problem.list_of_kind):
            for i in range(problem.slots[number]):
                each = [
                    amounts[kind, s, o, arc] * joint.load[number, s, o, i, arc]
                    for o in range(problem.choices[s])
                    for arc in joint.arcs_at(number, i)
                ]
                joint.model.add(largest >= total(each))


def spill_within_chunk(joint: JointModel) -> None:
    """What all creditors keep of a chunk is at most the chunk; the last one is not spilled."""
    problem = joint.problem
    for at, most in lent_at(problem, "spill"):
        joint.spill[at] = joint.model.new_int_var(0, most, name("spill", *at))
    for shape, s, o, i in dict.fromkeys((at.row, at.stage, at.choice, at.slot) for at in joint.spill):
        number = problem.list_of_kind[problem.shape_of_kind.index(shape)]
        places = [Lent(shape, s, o, i, k) for k in problem.creditors[s]]
        kept = [joint.spill[at] for at in places if at in joint.spill]
        chunk = [
            problem.tokens(number, arc) * joint.load[number, s, o, i, arc]
            for arc in joint.arcs_at(number, i)
            if not arc.last
        ]
        joint.model.add(total(kept) <= total(chunk))


def spill_write(joint: JointModel) -> None:
    """Chunks lie elsewhere once they have ended, and been sent one after the other."""
    problem, model = joint.problem, joint.model
    for at, most in lent_at(problem, "out"):
        joint.out[at] = model.new_int_var(0, most, name("out", *at))
    for w, s, i, k in dict.fromkeys((at.row, at.stage, at.slot, at.creditor) for at in joint.out):
        kind, slots = problem.waves[w].kind, problem.slots_of(w)
        shape = problem.shape_of_kind[kind]
        moment = joint.start[Task(w, s, i)] if i < slots else joint.end[Task(w, s, slots - 1)]
        choices = [o for o in range(problem.choices[s]) if Lent(w, s, o, i, k) in joint.out]
        for j in range(min(i, slots - 1) + 1):
            beyond = {
                o: joint.out[Lent(w, s, o, i, k)]
                - total([joint.spill[Lent(shape, s, o, earlier, k)] for earlier in range(j)])
                for o in choices
            }
            if j == min(i, slots - 1):
                for amount in beyond.values():
                    model.add(amount <= 0)
            else:
                time = [problem.lent[kind, s, o, k].transfer * amount for o, amount in beyond.items()]
                model.add(moment - joint.end[Task(w, s, j)] >= total(time))


def remote_fetch(joint: JointModel) -> None:
    """A task brings back what lies elsewhere, from each creditor in one transfer."""
    problem, model = joint.problem, joint.model
    for at, out in joint.out.items():
        if at.slot < problem.slots_of(at.row):
            fetched = model.new_int_var(0, most_lent(problem, at.row), name("fetched", *at))
            joint.fetched[at] = fetched
            used = joint.used[problem.list_of(at.row), at.slot]
            add_if(joint, fetched - out, [used])
    for w, s, i, k in dict.fromkeys((at.row, at.stage, at.slot, at.creditor) for at in joint.fetched):
        task, kind = Task(w, s, i), problem.waves[w].kind
        time = [
            problem.lent[kind, s, o, k].transfer * joint.fetched[Lent(w, s, o, i, k)]
            for o in range(problem.choices[s])
            if Lent(w, s, o, i, k) in joint.fetched
        ]
        if not problem.overlap:
            time.append(joint.duration(task))
        model.add(joint.end[task] >= joint.start[task] + total(time))


def serve_stall(joint: JointModel) -> None:
    """Behind a wave's last task lie all compute of its die, and all fetches of stages before it."""
    problem = joint.problem
    for k in range(1, problem.stages):
        work: list[Sum] = []
        for w in range(len(problem.waves)):
            work += [joint.duration(Task(w, k, i)) for i in range(problem.slots_of(w))]
            work += [
                problem.lent[problem.waves[w].kind, at.stage, at.choice, k].serve * fetched
                for at, fetched in joint.fetched.items()
                if at.row == w and at.creditor == k and at.stage < k
            ]
            joint.model.add(joint.end[Task(w, k, problem.slots_of(w) - 1)] >= total(work))


def memory_admission(joint: JointModel) -> None:
    """Whenever a task starts, every die has room for what it holds of its own and for others, and all have together."""
    problem, model = joint.problem, joint.model
    rooms = [
        total([problem.room[k, o] * joint.on(k, o) for o in range(problem.choices[k])]) for k in range(problem.stages)
    ]
    for moment in problem.tasks:
        for k in range(problem.stages):
            own = _own(joint, moment, k, lent=True)
            hosted = [_hosted(joint, moment, s, k) for s in problem.creditors if k in problem.creditors[s]]
            model.add(joint.workspace[k] + own + total(hosted) <= rooms[k])
        if problem.lent:
            everywhere = [_own(joint, moment, k, lent=False) for k in range(problem.stages)]
            model.add(total([*joint.workspace, *everywhere]) <= total(rooms) + problem.stages * problem.host_room)
        mine = [
            problem.lent[problem.waves[moment.wave].kind, at.stage, at.choice, HOST].memory * out
            for at, out in joint.out.items()
            if at.creditor == HOST and (at.row, at.stage, at.slot) == moment
        ]
        if mine:
            model.add(total(mine) <= problem.host_room)


def _own(joint: JointModel, moment: Task, stage: int, *, lent: bool) -> Sum:
    """KV of a stage when a task starts there or elsewhere; ``lent``: without what may lie elsewhere by then."""
    problem, model = joint.problem, joint.model
    if moment.stage == stage:
        return joint.held(moment) - total(_lent_by(joint, moment, up=True) if lent else [])
    own = model.new_int_var(0, most_held(problem, stage), name("own" if lent else "kept", *moment, stage))
    for w in range(len(problem.waves)):
        for i in range(problem.slots_of(w)):
            task = Task(w, stage, i)
            until = [~_first(joint, after, moment) for after in later_slots(problem, task)]
            if not until:
                until = [~_left(joint, w, stage, moment)]
            elsewhere = _lent_by(joint, Task(w, stage, i + 1), up=True) if lent else []
            kept = joint.held(task) - total(elsewhere)
            add_if(joint, own - kept, [_first(joint, task, moment), *until])
    return own


def _hosted(joint: JointModel, moment: Task, stage: int, creditor: int) -> Sum:
    """What a die holds for another stage when a task starts."""
    problem = joint.problem
    if moment.stage == stage:
        return total(_lent_by(joint, moment, up=False, creditor=creditor))
    most = max(problem.lent[key].memory for key in problem.lent if key[1] == stage) * max(
        most_lent(problem, w) for w in range(len(problem.waves))
    )
    hosted = joint.model.new_int_var(0, most, name("hosted", *moment, stage, creditor))
    for w in range(len(problem.waves)):
        for i in range(1, problem.slots_of(w)):
            task = Task(w, stage, i)
            elsewhere = total(_lent_by(joint, task, up=False, creditor=creditor))
            conditions = [_first(joint, task, moment), ~_left(joint, w, stage, moment)]
            add_if(joint, hosted - elsewhere, conditions)
    return hosted


def _lent_by(joint: JointModel, task: Task, *, up: bool, creditor: int | None = None) -> list[Sum]:
    """Memory of what a wave and stage has elsewhere at a slot."""
    problem, kind = joint.problem, joint.problem.waves[task.wave].kind
    amounts: list[Sum] = []
    for k in problem.creditors.get(task.stage, ()) if creditor is None else (creditor,):
        for o in range(problem.choices[task.stage]):
            out = joint.out.get(Lent(task.wave, task.stage, o, task.slot, k))
            if out is not None:
                numbers = problem.lent[kind, task.stage, o, k]
                amounts.append((numbers.memory_up if up else numbers.memory) * out)
    return amounts


def _first(joint: JointModel, task: Task, other: Task) -> Literal:
    """Whether a task starts no later than another."""
    known = starts_before(task, other)
    if known is not None:
        return joint.model.new_constant(int(known))
    if other < task:
        return ~_first(joint, other, task)
    if (task, other) not in joint.first:
        first = joint.model.new_bool_var(name("first", *task, *other))
        joint.first[task, other] = first
        later = joint.start[other] - joint.start[task]
        add_if(joint, later, [first])
        add_if(joint, -later, [~first])
    return joint.first[task, other]


def _left(joint: JointModel, wave: int, stage: int, moment: Task) -> Literal:
    """Whether a wave has left a stage, and its memory, when a task starts."""
    last = joint.problem.slots_of(wave) - 1
    known = has_left((wave, stage), moment, last)
    if known is not None:
        return joint.model.new_constant(int(known))
    if (wave, stage, moment) not in joint.left:
        left = joint.model.new_bool_var(name("left", wave, stage, *moment))
        joint.left[wave, stage, moment] = left
        since = joint.start[moment] - joint.end[Task(wave, stage, last)]
        add_if(joint, since, [left])
    return joint.left[wave, stage, moment]
