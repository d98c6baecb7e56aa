"""``pool``, ``host`` and ``pool+host``: the exact method's cuts with one way to spill, each as a method of its own."""

from __future__ import annotations

from instances.errors import InputError
from instances.plan import Plan
from solver.exact.host_spill import host_spill
from solver.exact.search import as_the_bound_suggests, batches_in_turn
from solver.exact.spill_search import enough, spill_search
from solver.search import Search


def spilling(search: Search, *, dies: bool, host: bool) -> Plan | None:
    """Offer the cuts of each batch's bound, and where memory binds, plans that spill to other dies, the host or both.

    Amounts at dies come from a linear program over all creditors; without dies, late chunks leave for the host. With
    several request shapes there is no program, and nothing is kept at dies.

    Raises
    ------
    InputError
        If the host is asked for and the hardware has none.
    """
    if host and search.instance.hardware.host is None:
        raise InputError("hardware.host", None, "a host memory, which this method spills to")
    for batch in batches_in_turn(search):
        bound, value = search.bounds[batch].bound_s, search.incumbent.value
        if enough(search, search.deadline) or (value is not None and bound is not None and bound >= value):
            break
        if as_the_bound_suggests(search, batch):
            continue
        if host:
            host_spill(search, batch)
        if dies:
            spill_search(search, batch, search.deadline, host=host)
    return None
