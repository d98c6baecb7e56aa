"""The queue of events, compiled: a binary heap over (time, kind, task, order of request)."""

from __future__ import annotations

import numpy as np

from solver.simulation import columns as c
from solver.simulation.compiled import compiled
from solver.simulation.program import Int64s


@compiled
def push(heap: Int64s, counters: Int64s, time: int, kind: int, task: int, data: int) -> None:
    """Add an event; the order of calls is the order of request."""
    key = (np.int64(kind) << c.KIND_SHIFT) | (np.int64(task) << c.TASK_SHIFT) | counters[c.ORDER]
    counters[c.ORDER] += 1
    hole = counters[c.EVENTS]
    counters[c.EVENTS] += 1
    while hole > 0:
        parent = (hole - 1) >> 1
        above = heap[parent, c.TIME_PS]
        if above < time or (above == time and heap[parent, c.KEY] <= key):
            break
        heap[hole, c.TIME_PS], heap[hole, c.KEY], heap[hole, c.DATA] = above, heap[parent, c.KEY], heap[parent, c.DATA]
        hole = parent
    heap[hole, c.TIME_PS], heap[hole, c.KEY], heap[hole, c.DATA] = time, key, data


@compiled
def pop(heap: Int64s, counters: Int64s) -> None:
    """Take the first event, by (time, key), out of the heap."""
    last = counters[c.EVENTS] - 1
    counters[c.EVENTS] = last
    time, key, data = heap[last, c.TIME_PS], heap[last, c.KEY], heap[last, c.DATA]
    hole, child = 0, 1
    while child < last:
        below = heap[child, c.TIME_PS]
        if child + 1 < last:
            right = heap[child + 1, c.TIME_PS]
            if right < below or (right == below and heap[child + 1, c.KEY] < heap[child, c.KEY]):
                child, below = child + 1, right
        if time < below or (time == below and key <= heap[child, c.KEY]):
            break
        heap[hole, c.TIME_PS], heap[hole, c.KEY], heap[hole, c.DATA] = below, heap[child, c.KEY], heap[child, c.DATA]
        hole, child = child, 2 * child + 1
    heap[hole, c.TIME_PS], heap[hole, c.KEY], heap[hole, c.DATA] = time, key, data


@compiled
def copy_events(source: Int64s, target: Int64s) -> None:
    """Copy a heap into a larger one."""
    # Element by element: for an assignment of slices numba compiles five seconds' worth of error messages.
    for row in range(len(source)):
        for column in range(c.HEAP_COLUMNS):
            target[row, column] = source[row, column]
