"""Memories and their queues of waiting writes, compiled (spec section 3, rules ``spill_write`` and ``release``)."""

from __future__ import annotations

from solver.simulation import columns as c
from solver.simulation.compiled import compiled
from solver.simulation.links import note
from solver.simulation.program import Int64s


@compiled
def take(pools: Int64s, counters: Int64s, trace: Int64s, pool: int, units: int, hosted: int, now: int) -> None:
    """Take units of a memory, ``hosted`` of them for another die; negative amounts give them back."""
    pools[pool, c.USED] += units
    pools[pool, c.HOSTED] += hosted
    pools[pool, c.PEAK] = max(pools[pool, c.PEAK], pools[pool, c.USED])
    if units != 0:
        note(trace, counters, c.MEMORY, now, pool, pools[pool, c.USED], pools[pool, c.HOSTED], 0, 0, 0)


@compiled
def queue(slots: Int64s, writes: Int64s, pools: Int64s, counters: Int64s, pool: int, write: int) -> None:
    """Put a write at the end of a memory's queue."""
    writes[write, c.AFTER] = -1
    if pools[pool, c.FIRST] < 0:
        pools[pool, c.FIRST] = write
    else:
        writes[pools[pool, c.LAST], c.AFTER] = write
    pools[pool, c.LAST] = write
    slots[writes[write, c.SLOT], c.WAITING] += 1
    counters[c.QUEUED] += 1


@compiled
def first_fits(writes: Int64s, pools: Int64s, pool: int) -> bool:
    """Whether a write waits for this memory, and the first one fits (exactly full is allowed)."""
    first = pools[pool, c.FIRST]
    return bool(first >= 0 and pools[pool, c.USED] + writes[first, c.UNITS] <= pools[pool, c.CAPACITY])


@compiled
def grant(slots: Int64s, writes: Int64s, pools: Int64s, counters: Int64s, trace: Int64s, pool: int, now: int) -> int:
    """Take the first write out of a memory's queue, and the memory for it (rule ``spill_write``)."""
    write = int(pools[pool, c.FIRST])
    slot, units = writes[write, c.SLOT], writes[write, c.UNITS]
    pools[pool, c.FIRST] = writes[write, c.AFTER]
    counters[c.QUEUED] -= 1
    slots[slot, c.WAITING] -= 1
    slots[slot, c.GRANTED] += units
    take(pools, counters, trace, pool, units, units, now)
    return write


@compiled
def close(
    groups: Int64s, slots: Int64s, writes: Int64s, pools: Int64s, counters: Int64s, agenda: Int64s, group: int
) -> None:
    """Ask for the release of all memory of a stage's wave, dies in stage order, hosts last (rule ``release``)."""
    groups[group, c.CLOSED] = 1
    at_home = True
    for slot in range(groups[group, c.FIRST_SLOT], groups[group, c.STOP_SLOT]):
        if at_home and slots[slot, c.STAGE] > groups[group, c.HOME_STAGE]:
            ask(agenda, counters, c.RELEASE, groups[group, c.HOME], groups[group, c.KEPT], 0)
            at_home = False
        if slots[slot, c.WAITING] > 0:
            _cancel(slots, writes, pools, counters, slot)
        # Zero units, where writes were only waiting, are a release like any other.
        ask(agenda, counters, c.RELEASE, slots[slot, c.POOL], slots[slot, c.GRANTED], slots[slot, c.GRANTED])
        slots[slot, c.GRANTED] = 0
    if at_home:
        ask(agenda, counters, c.RELEASE, groups[group, c.HOME], groups[group, c.KEPT], 0)
    groups[group, c.KEPT] = 0


@compiled
def _cancel(slots: Int64s, writes: Int64s, pools: Int64s, counters: Int64s, slot: int) -> None:
    """Take a slot's waiting writes out of the queue of its memory."""
    pool = slots[slot, c.POOL]
    write, before = pools[pool, c.FIRST], -1
    while write >= 0:
        after = writes[write, c.AFTER]
        if writes[write, c.SLOT] != slot:
            before = write
        elif before < 0:
            pools[pool, c.FIRST] = after
        else:
            writes[before, c.AFTER] = after
        write = after
    pools[pool, c.LAST] = before
    counters[c.QUEUED] -= slots[slot, c.WAITING]
    slots[slot, c.WAITING] = 0


@compiled
def ask(agenda: Int64s, counters: Int64s, what: int, which: int, amount: int, hosting: int) -> None:
    """Put an item on the agenda of the present event."""
    item = counters[c.ITEMS]
    counters[c.ITEMS] = item + 1
    agenda[item, c.WHAT], agenda[item, c.WHICH] = what, which
    agenda[item, c.AMOUNT], agenda[item, c.HOSTING] = amount, hosting
