"""V-shaped rows: the plain plan's dies there and back again, two parts of the layers each, with or without spill."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from formulations.virtual.split import virtual_reason
from instances.plan import Plan, Schedule
from solver.capacity import offers
from solver.capacity.way import Goal, Offer, Way
from solver.exact.pool import Unlimited, unlimited_run
from solver.policies.mbkr import cross_half, head_to_tail
from solver.policies.vpp import folded_splits
from solver.search import Search

_SCHEDULES: tuple[tuple[Schedule, str], ...] = (
    ("vpp", "a chunk's second visit before a later one's first"),
    ("vpp-async", "the two visits of a period swapped"),
    ("vpp-packed", "the next wave's chunks enter while the last wave's leave"),
)
_SPILLS: tuple[tuple[str, str, Offer], ...] = (
    ("", "every stage keeps its own KV", offers.none),
    (
        "+head-to-tail",
        "dies r and N-1-r lend each other memory, amounts by a linear program",
        offers.partnered(head_to_tail),
    ),
    ("+mocap", "dies half the pipeline apart lend, amounts by a linear program", offers.partnered(cross_half)),
    ("+pool", "any die may hold any stage's chunks, amounts by a linear program", offers.lent),
    ("+host", "late chunks leave for the die's host memory (active spill)", offers.host),
    ("+pool+host", "any die and the host", offers.lent_and_host),
)


def folded_ways() -> Iterator[Way]:
    """All rows of V-shaped schedules."""
    for schedule, order in _SCHEDULES:
        for suffix, says, spill in _SPILLS:
            yield Way(
                schedule + suffix,
                f"two parts of the layers a die, {order}; {says}",
                partial(_folded, schedule, spill),
                host=suffix.endswith("host"),
                schedule=schedule,
            )


def _folded(
    schedule: Schedule,
    spill: Offer,
    search: Search,
    plan: Plan,
    unlimited: Unlimited | None,
    goal: Goal,
) -> None:
    search.structural = virtual_reason(search.instance)
    if search.structural is None:
        # There and back again along the plain plan's dies.
        changes = {"placement": plan.placement + plan.placement[::-1], "schedule": schedule}
        for split in folded_splits(search):
            folded = plan.model_copy(update={**changes, "layers": split})
            spill(search, folded, unlimited_run(search, folded), goal)
            if goal.reached:
                return
