"""Programs that differ in numbers alone, run one after the other over the same tables, compiled.

A variant is a row of numbers: durations, KV taken and activations sent of all tasks, spill writes, static memory and
capacities of the dies, in this order. What a run leaves in the tables is put back before the next one.
"""

from __future__ import annotations

from solver.simulation import columns as c
from solver.simulation.compiled import compiled
from solver.simulation.program import Int64s


@compiled
def set_up(
    tasks: Int64s, groups: Int64s, slots: Int64s, writes: Int64s, dies: Int64s, pools: Int64s, links: Int64s,
    counters: Int64s, variants: Int64s, row: int,
) -> None:  # fmt: skip
    """Make the tables those of one variant that has not run yet."""
    for counter in range(c.COUNTERS):
        counters[counter] = 0
    count, before_writes = len(tasks), 3 * len(tasks)
    for task in range(count):
        tasks[task, c.DURATION_PS] = variants[row, task]
        tasks[task, c.TAKE_UNITS] = variants[row, count + task]
        tasks[task, c.SEND_UNITS] = variants[row, 2 * count + task]
        tasks[task, c.INPUTS] = 0
        tasks[task, c.START_PS] = tasks[task, c.END_PS] = tasks[task, c.COMPUTE_PS] = -1
    for task in range(count):
        if tasks[task, c.SUCCESSOR] >= 0:
            tasks[tasks[task, c.SUCCESSOR], c.INPUTS] += 1
    for group in range(len(groups)):
        groups[group, c.KEPT] = groups[group, c.CLOSED] = 0
    for slot in range(len(slots)):
        slots[slot, c.GRANTED] = slots[slot, c.ARRIVED_PS] = slots[slot, c.WAITING] = 0
    for write in range(len(writes)):
        writes[write, c.UNITS] = variants[row, before_writes + write]
    before_dies, first = before_writes + len(writes), 0
    for die in range(len(dies)):
        for column in range(c.DIE_COLUMNS):
            if column != c.STOP:
                dies[die, column] = 0
        dies[die, c.NEXT], first = first, dies[die, c.STOP]
        dies[die, c.RUNNING] = dies[die, c.TRY_PS] = -1
        pools[die, c.USED] = pools[die, c.PEAK] = variants[row, before_dies + die]
        pools[die, c.CAPACITY] = variants[row, before_dies + len(dies) + die]
    for pool in range(len(pools)):
        if pool >= len(dies):
            pools[pool, c.USED] = pools[pool, c.PEAK] = 0
        pools[pool, c.HOSTED] = 0
        pools[pool, c.FIRST] = pools[pool, c.LAST] = -1
    for link in range(len(links)):
        links[link, c.FREE_PS] = links[link, c.CARRIED] = links[link, c.BUSY_PS] = 0


@compiled
def measure(tasks: Int64s, counters: Int64s, outcomes: Int64s, row: int) -> None:
    """Note how many tasks ran, units times hops, and the end of each wave: of its last chunk at the last stage."""
    outcomes[row, c.TASKS_RUN] = counters[c.DONE]
    outcomes[row, c.HOP_UNITS] = counters[c.BYTE_HOPS]
    column = c.FIRST_COMPLETION
    for task in range(len(tasks)):
        if tasks[task, c.CLOSES] and tasks[task, c.LEAVES]:
            outcomes[row, column] = tasks[task, c.END_PS]
            column += 1
