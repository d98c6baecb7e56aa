"""A small list scheduler that runs Chakra traces as ASTRA-sim does, written from the description of its rules.

An NPU runs one computation at a time, and one delay on its processor; among nodes that are free at once the lowest
number goes first. Messages between two NPUs follow each other, each after ``latency_us + size / bytes_per_us``; there
is no contention between pairs, and no limit on sends, unlike there.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence

from tests.solver.export.wire import WireNode

MEM_LOAD, MEM_STORE, COMP, SEND, RECV = 2, 3, 4, 5, 6


def free_of_charge(size_bytes: int) -> int:
    """Messages take no time."""
    return 0


def run_traces(
    nodes: Sequence[WireNode], message_us: Callable[[int], int] = free_of_charge, latency_us: int = 0
) -> dict[int, tuple[int, int]]:
    """Start and end of each node, by number, in microseconds; a node that never runs is missing.

    Parameters
    ----------
    message_us
        How long a message of so many bytes keeps the way between its two NPUs busy.
    """
    at = {node.id: node for node in nodes}
    waits = {node.id: set(node.data_deps) for node in nodes}
    awaited_by = defaultdict(list)
    for node in nodes:
        for other in node.data_deps:
            awaited_by[other].append(node.id)
    receipt_of = {node.message: node.id for node in nodes if node.type == RECV}
    delivered: set[int] = set()
    free_us: dict[tuple[int, int], int] = defaultdict(int)
    busy: dict[tuple[int, bool], bool] = defaultdict(bool)
    ready = [number for number, left in waits.items() if not left]
    times: dict[int, tuple[int, int]] = {}
    # (time, number, whether it is the arrival of the message that this receipt is for)
    events: list[tuple[int, int, bool]] = []
    now = 0
    while True:
        for number in sorted(ready):
            node = at[number]
            if node.type == COMP:
                unit = node.npu, node.value("is_cpu_op")
                if busy[unit]:
                    continue
                busy[unit] = True
                heapq.heappush(events, (now + node.duration_us, number, False))
            elif node.type == SEND:
                way = node.value("comm_src"), node.value("comm_dst")
                free_us[way] = max(now, free_us[way]) + message_us(node.value("comm_size"))
                arrival = free_us[way] + latency_us
                heapq.heappush(events, (arrival, number, False))
                heapq.heappush(events, (arrival, receipt_of[node.message], True))
            elif node.type == RECV:
                if number not in delivered:
                    continue
                heapq.heappush(events, (now, number, False))
            else:
                heapq.heappush(events, (now + message_us(node.value("tensor_size")), number, False))
            ready.remove(number)
            times[number] = now, now
        if not events:
            return {number: span for number, span in times.items() if number not in ready}
        now = events[0][0]
        while events and events[0][0] == now:
            _, number, arrived = heapq.heappop(events)
            if arrived:
                delivered.add(number)
                continue
            node = at[number]
            times[number] = times[number][0], now
            if node.type == COMP:
                busy[node.npu, node.value("is_cpu_op")] = False
            for later in awaited_by[number]:
                waits[later].discard(number)
                if not waits[later]:
                    ready.append(later)
