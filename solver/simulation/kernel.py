"""The compiled event loop (spec section 3), over the tables that ``tables.py`` packs.

Functions take the tables one by one: a call with a tuple of arrays costs more than the event that it handles.
"""

from __future__ import annotations

import numpy as np

from solver.simulation import columns as c
from solver.simulation import heap as heap_part
from solver.simulation import links as links_part
from solver.simulation import memory as memory_part
from solver.simulation import variants as variants_part
from solver.simulation.compiled import compiled, compiled_entry
from solver.simulation.heap import copy_events, pop, push
from solver.simulation.links import note, send, whole_ps
from solver.simulation.memory import ask, close, first_fits, grant, queue, take
from solver.simulation.program import Float64s, Int64s
from solver.simulation.variants import measure, set_up


@compiled_entry(c, heap_part, links_part, memory_part, variants_part)
def simulate(
    tasks: Int64s,
    order: Int64s,
    groups: Int64s,
    slots: Int64s,
    writes: Int64s,
    dies: Int64s,
    pools: Int64s,
    paths: Int64s,
    route: Int64s,
    speeds: Float64s,
    links: Int64s,
    link_speeds: Float64s,
    settings: Int64s,
    serve_fraction: float,
    trace: Int64s,
    variants: Int64s,
    outcomes: Int64s,
) -> Int64s:
    """Run until no event is left. The tables then hold the outcome; the counters are returned.

    An event changes its task and die at once. What it asks of memories and links it puts on the agenda, which is worked
    through, in order, before the next event.

    With ``variants`` each of them is run, one after the other, and measured in its row of ``outcomes``.
    """
    counters = np.zeros(c.COUNTERS, dtype=np.int64)
    most = settings[c.MOST_ITEMS]
    agenda = np.empty((most, c.AGENDA_COLUMNS), dtype=np.int64)
    heap = np.empty((4 * (most + len(dies)), c.HEAP_COLUMNS), dtype=np.int64)
    for run in range(max(1, len(variants))):
        if len(variants) > 0:
            set_up(tasks, groups, slots, writes, dies, pools, links, counters, variants, run)
        for die in range(len(dies)):
            note(trace, counters, c.MEMORY, 0, die, pools[die, c.USED], 0, 0, 0, 0)
            _try(tasks, order, dies, heap, counters, die, 0)
        while counters[c.EVENTS] > 0:
            # An event brings at most one more for each die, item of its agenda, and queued write that it grants.
            room = counters[c.EVENTS] + counters[c.QUEUED] + most + len(dies)
            if room > len(heap):
                larger = np.empty((2 * room, c.HEAP_COLUMNS), dtype=np.int64)
                copy_events(heap, larger)
                heap = larger
            now, key, data = heap[0, c.TIME_PS], heap[0, c.KEY], heap[0, c.DATA]
            pop(heap, counters)
            kind, task = key >> c.KIND_SHIFT, (key >> c.TASK_SHIFT) & (c.MOST_TASKS - 1)
            counters[c.ITEMS] = 0
            started = False
            if kind == c.TASK_END:
                if dies[data, c.DUE_PS] > now:
                    # A stall has put the end off.
                    push(heap, counters, dies[data, c.DUE_PS], c.TASK_END, task, data)
                else:
                    _end(tasks, order, groups, slots, writes, dies, pools, settings, heap, counters, agenda, task, now)
            elif kind == c.TRANSFER_ARRIVAL:
                if data < 0:
                    _receive(tasks, order, dies, heap, counters, -1 - data, now)
                elif groups[tasks[task, c.GROUP], c.CLOSED] == 0:
                    # The spilled bytes are at their creditor: the source gives them up.
                    groups[tasks[task, c.GROUP], c.KEPT] -= writes[data, c.UNITS]
                    ask(agenda, counters, c.RELEASE, tasks[task, c.DIE], writes[data, c.UNITS], 0)
            elif kind == c.SERVICE_STALL:
                _stall(dies, counters, trace, slots[data, c.POOL], slots[data, c.SERVE_PS], now)
            elif dies[data, c.BLOCKED_PS] > now:
                dies[data, c.TRY_PS] = -1
                _try(tasks, order, dies, heap, counters, data, now)
            else:
                dies[data, c.TRY_PS] = -1
                started = _may_start(tasks, order, dies, pools, settings, counters, data, task)
                if started:
                    _start(tasks, groups, slots, dies, pools, counters, agenda, trace, data, task, now)
            fetched = now
            for item in range(counters[c.ITEMS]):
                what, which, units = agenda[item, c.WHAT], agenda[item, c.WHICH], agenda[item, c.AMOUNT]
                if what == c.ACTIVATION:
                    path = tasks[task, c.SEND_PATH]
                    _, arrival = send(
                        dies, paths, route, speeds, links, link_speeds, settings, counters, trace,
                        what, path, task, units, now, now,
                    )  # fmt: skip
                    push(heap, counters, arrival, c.TRANSFER_ARRIVAL, task, -1 - which)
                elif what == c.FETCH:
                    path, ready = slots[which, c.READ_PATH], max(now, slots[which, c.ARRIVED_PS])
                    start, arrival = send(
                        dies, paths, route, speeds, links, link_speeds, settings, counters, trace,
                        what, path, task, units, now, ready,
                    )  # fmt: skip
                    fetched = max(fetched, arrival)
                    if slots[which, c.POOL] < len(dies):
                        serve = whole_ps(settings, serve_fraction * (units / settings[c.UNITS_PER_BYTE]) / speeds[path])
                        if serve > 0:
                            # One fetch of a slot is under way at a time: it keeps the length until the stall begins.
                            slots[which, c.SERVE_PS] = serve
                            push(heap, counters, start, c.SERVICE_STALL, task, which)
                else:
                    pool = which
                    if what == c.WRITE:
                        pool = slots[writes[which, c.SLOT], c.POOL]
                        queue(slots, writes, pools, counters, pool, which)
                    else:
                        take(pools, counters, trace, pool, -units, -agenda[item, c.HOSTING], now)
                    while first_fits(writes, pools, pool):
                        write = grant(slots, writes, pools, counters, trace, pool, now)
                        slot, writer = writes[write, c.SLOT], writes[write, c.WRITER]
                        path, size = slots[slot, c.WRITE_PATH], writes[write, c.UNITS]
                        _, arrival = send(
                            dies, paths, route, speeds, links, link_speeds, settings, counters, trace,
                            c.WRITE, path, writer, size, now, now,
                        )  # fmt: skip
                        slots[slot, c.ARRIVED_PS] = max(slots[slot, c.ARRIVED_PS], arrival)
                        push(heap, counters, arrival, c.TRANSFER_ARRIVAL, writer, write)
                    if what == c.RELEASE and pool < len(dies):
                        _try(tasks, order, dies, heap, counters, pool, now)
            if started:
                compute = now if settings[c.OVERLAP] else fetched
                tasks[task, c.COMPUTE_PS] = compute
                dies[data, c.COMPUTED_PS] = compute + tasks[task, c.DURATION_PS]
                dies[data, c.FETCHED_PS] = fetched
                dies[data, c.DUE_PS] = max(dies[data, c.COMPUTED_PS], fetched)
                push(heap, counters, dies[data, c.DUE_PS], c.TASK_END, task, data)
        if len(variants) > 0:
            measure(tasks, counters, outcomes, run)
    return counters


@compiled
def _may_start(
    tasks: Int64s, order: Int64s, dies: Int64s, pools: Int64s, settings: Int64s, counters: Int64s, die: int, task: int
) -> bool:
    """Whether it is the task's turn, and window and memory let it in; its inputs are there.

    Rules ``die_serial``, ``in_flight_window``, ``memory_admission``.
    """
    position = dies[die, c.NEXT]
    if dies[die, c.RUNNING] >= 0 or position >= dies[die, c.STOP] or order[position] != task:
        return False
    if tasks[task, c.ENTERS] and 0 < settings[c.WINDOW] <= counters[c.INSIDE]:
        return False
    units = tasks[task, c.TAKE_UNITS]
    return bool(units < 0 or pools[die, c.USED] + units <= pools[die, c.CAPACITY])


@compiled
def _start(
    tasks: Int64s, groups: Int64s, slots: Int64s, dies: Int64s, pools: Int64s, counters: Int64s, agenda: Int64s,
    trace: Int64s, die: int, task: int, now: int,
) -> None:  # fmt: skip
    """Take the task's memory and ask for its fetches (rule ``remote_fetch``)."""
    tasks[task, c.START_PS] = now
    dies[die, c.RUNNING] = task
    dies[die, c.NEXT] += 1
    counters[c.INSIDE] += tasks[task, c.ENTERS]
    group, units = tasks[task, c.GROUP], tasks[task, c.TAKE_UNITS]
    groups[group, c.KEPT] += units
    if units < 0:
        ask(agenda, counters, c.RELEASE, die, -units, 0)
    else:
        take(pools, counters, trace, die, units, 0, now)
    for slot in range(groups[group, c.FIRST_SLOT], groups[group, c.STOP_SLOT]):
        if slots[slot, c.GRANTED] > 0:
            ask(agenda, counters, c.FETCH, slot, slots[slot, c.GRANTED], 0)


@compiled
def _end(
    tasks: Int64s, order: Int64s, groups: Int64s, slots: Int64s, writes: Int64s, dies: Int64s, pools: Int64s,
    settings: Int64s, heap: Int64s, counters: Int64s, agenda: Int64s, task: int, now: int,
) -> None:  # fmt: skip
    """Ask for the task's activation transfer, its spill writes, the releases of its end, in this order.

    Rules ``activation_ready``, ``spill_write``, ``release``.
    """
    die, successor = tasks[task, c.DIE], tasks[task, c.SUCCESSOR]
    tasks[task, c.END_PS] = now
    dies[die, c.RUNNING] = -1
    counters[c.DONE] += 1
    if successor >= 0:
        if tasks[task, c.SEND_PATH] < 0:
            _receive(tasks, order, dies, heap, counters, successor, now)
        else:
            ask(agenda, counters, c.ACTIVATION, successor, tasks[task, c.SEND_UNITS], 0)
    for write in range(tasks[task, c.FIRST_WRITE], tasks[task, c.STOP_WRITE]):
        ask(agenda, counters, c.WRITE, write, writes[write, c.UNITS], 0)
    if tasks[task, c.CLOSES]:
        close(groups, slots, writes, pools, counters, agenda, tasks[task, c.GROUP])
    if tasks[task, c.LEAVES]:
        counters[c.INSIDE] -= 1
        if settings[c.WINDOW] > 0:
            for other in range(len(dies)):
                if dies[other, c.NEXT] < dies[other, c.STOP] and tasks[order[dies[other, c.NEXT]], c.ENTERS]:
                    _try(tasks, order, dies, heap, counters, other, now)
    _try(tasks, order, dies, heap, counters, die, now)


@compiled
def _receive(tasks: Int64s, order: Int64s, dies: Int64s, heap: Int64s, counters: Int64s, task: int, now: int) -> None:
    """Note that an activation has arrived for the task (rule ``activation_ready``)."""
    tasks[task, c.INPUTS] -= 1
    die = tasks[task, c.DIE]
    if dies[die, c.NEXT] < dies[die, c.STOP] and order[dies[die, c.NEXT]] == task:
        _try(tasks, order, dies, heap, counters, die, now)


@compiled
def _stall(dies: Int64s, counters: Int64s, trace: Int64s, die: int, length: int, now: int) -> None:
    """Let a die's compute stand still while it serves a fetch (rule ``serve_stall``)."""
    dies[die, c.STALL_PS] += length
    note(trace, counters, c.STALL, die, now, length, 0, 0, 0, 0)
    if dies[die, c.RUNNING] < 0:
        dies[die, c.BLOCKED_PS] = max(dies[die, c.BLOCKED_PS], now) + length
    else:
        dies[die, c.COMPUTED_PS] += length
        dies[die, c.DUE_PS] = max(dies[die, c.COMPUTED_PS], dies[die, c.FETCHED_PS])


@compiled
def _try(tasks: Int64s, order: Int64s, dies: Int64s, heap: Int64s, counters: Int64s, die: int, now: int) -> None:
    """Queue a try to start the die's next task, unless it cannot start or the same try is queued already."""
    position = dies[die, c.NEXT]
    if dies[die, c.RUNNING] >= 0 or position >= dies[die, c.STOP]:
        return
    task = order[position]
    if tasks[task, c.INPUTS] > 0:
        return
    time = max(now, tasks[task, c.EARLIEST_PS], dies[die, c.BLOCKED_PS])
    if 0 <= dies[die, c.TRY_PS] <= time:
        return
    dies[die, c.TRY_PS] = time
    push(heap, counters, time, c.TASK_START, task, die)
