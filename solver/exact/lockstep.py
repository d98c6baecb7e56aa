"""The timeline of dies in step: every chunk takes a slot on each stage, and starts as soon as order and inputs let it.

Where chunk times differ a little, a run without memory limits drifts out of step, some dies race ahead, and at moments
more KV is alive than there need be. A plan that waits now and then stays nearer to lockstep, in which equal chunks use
memory most evenly: spill that fits this timeline often runs where spill for the unlimited run does not exist, at the
price of these waits. The replay decides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solver.exact.pool import Unlimited
from solver.simulation.program import Int64s, Program

GAP = 1e-3
"""Share of a slot between the end of a chunk and the next start, so that ends come before starts."""


def lockstep(unlimited: Unlimited) -> Unlimited:
    """The same run in slots as long as the longest chunk, activations there at once and all requests from the start."""
    slot_s = float((unlimited.end_s - unlimited.start_s).max())
    waves, stages, chunks = unlimited.start_s.shape
    first = slots(unlimited.program).reshape(waves, chunks, stages).transpose(0, 2, 1)
    start_s = np.asarray(first * slot_s, dtype=np.float64)
    return replace(unlimited, start_s=start_s, end_s=start_s + (1 - GAP) * slot_s)


def slots(program: Program) -> Int64s:
    """Slot of each task, shape (T,): each die runs its tasks in order, one a slot, each after those it waits for.

    Whole numbers: a replay of such tasks would bring transfers, arrivals and windows back in, and with them the drift.
    """
    slot = np.zeros(program.tasks, dtype=np.int64)
    missing = program.inputs.copy()
    following, free_at = program.die_ptr[:-1].copy(), np.zeros(program.dies, dtype=np.int64)
    waiting = list(range(program.dies))
    while waiting:
        die = waiting.pop()
        while following[die] < program.die_ptr[die + 1]:
            task = program.die_tasks[following[die]]
            if missing[task]:
                break
            slot[task] = max(slot[task], free_at[die])
            free_at[die] = slot[task] + 1
            following[die] += 1
            after = program.successor[task]
            if after >= 0:
                slot[after] = max(slot[after], slot[task] + 1)
                missing[after] -= 1
                waiting.append(int(program.die[after]))
    return slot
