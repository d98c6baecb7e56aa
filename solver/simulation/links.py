"""Transfers over the links, compiled (spec section 3, rule ``link_fifo``)."""

from __future__ import annotations

import numpy as np

from solver.simulation import columns as c
from solver.simulation.compiled import compiled
from solver.simulation.program import Float64s, Int64s


@compiled
def send(
    dies: Int64s, paths: Int64s, route: Int64s, speeds: Float64s, links: Int64s, link_speeds: Float64s,
    settings: Int64s, counters: Int64s, trace: Int64s,
    kind: int, path: int, task: int, units: int, requested: int, ready: int,
) -> tuple[int, int]:  # fmt: skip
    """Reserve the links of a transfer (rule ``link_fifo``); return when it starts and when it arrives.

    Links are granted in the order of the calls. A host's path is one link without hops; ``one_send_per_die`` and
    ``store_and_forward`` are about the links between dies. With a switch two links are one hop: stored in between, a
    transfer takes its time on both, and the latency once.
    """
    size_bytes = units / settings[c.UNITS_PER_BYTE]
    first, stop, source = paths[path, c.FIRST_LINK], paths[path, c.STOP_LINK], paths[path, c.SOURCE]
    hops = paths[path, c.HOPS]
    start = ready
    one_send = settings[c.ONE_SEND_PER_DIE] and hops > 0
    if one_send:
        start = max(start, dies[source, c.DELIVERED_PS])
    if settings[c.STORE_AND_FORWARD] and hops > 0:
        arrival = start
        for position in range(first, stop):
            link = route[position]
            begin = max(arrival, links[link, c.FREE_PS])
            if position == first:
                start = begin
            free = begin + whole_ps(settings, size_bytes / link_speeds[link])
            _hold(links, counters, trace, link, units, begin, free)
            arrival = free + (settings[c.HOP_LATENCY_PS] if position - first < hops else 0)
    else:
        for position in range(first, stop):
            start = max(start, links[route[position], c.FREE_PS])
        free = start + whole_ps(settings, size_bytes / speeds[path])
        for position in range(first, stop):
            _hold(links, counters, trace, route[position], units, start, free)
        arrival = free + hops * settings[c.HOP_LATENCY_PS]
    if one_send:
        dies[source, c.DELIVERED_PS] = arrival
    counters[c.BYTE_HOPS] += units * hops
    note(trace, counters, c.TRANSFER, kind, path, task, units, requested, start, arrival)
    return start, arrival


@compiled
def _hold(links: Int64s, counters: Int64s, trace: Int64s, link: int, units: int, start: int, free: int) -> None:
    links[link, c.FREE_PS] = free
    links[link, c.CARRIED] += units
    links[link, c.BUSY_PS] += free - start
    note(trace, counters, c.HOLD, link, start, free, 0, 0, 0, 0)


@compiled
def whole_ps(settings: Int64s, seconds: float) -> int:
    """Round a duration once, to the nearest picosecond, or up to whole nanoseconds."""
    ps = int(np.rint(seconds * 1e12))
    return -(-ps // 1000) * 1000 if settings[c.INTEGER_NS] else ps


@compiled
def note(
    trace: Int64s, counters: Int64s, record: int, v1: int, v2: int, v3: int, v4: int, v5: int, v6: int, v7: int
) -> None:
    """Add a record to the trace, if there is one. A link's holds come before the transfer that they belong to."""
    if len(trace) > 0:
        row = counters[c.RECORDS]
        counters[c.RECORDS] += 1
        trace[row, 0], trace[row, 1], trace[row, 2], trace[row, 3] = record, v1, v2, v3
        trace[row, 4], trace[row, 5], trace[row, 6], trace[row, 7] = v4, v5, v6, v7
