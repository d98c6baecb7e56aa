"""The ways to spill that a capacity table compares; each offers plans of one length to its search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from formulations.virtual.split import virtual_reason
from instances.instance import Instance
from instances.plan import Plan, Schedule
from solver.capacity.length import Length
from solver.exact.host_spill import bisected
from solver.exact.lockstep import lockstep
from solver.exact.pool import Unlimited, pooled_plan, unlimited_run
from solver.policies.held_back import held_back
from solver.policies.mbkr import Layout, Partners, cross_half, fit, head_to_tail, mbkr_pairs
from solver.policies.rematch import refusal, rematchings
from solver.policies.vpp import folded_splits
from solver.search import Search
from solver.serving.served import Served
from solver.serving.setting import slow_seams


@dataclass(frozen=True)
class Goal:
    """When a search for one length has what it wants: an answer within ``budget_s``, any one if that is None."""

    search: Search
    budget_s: float | None

    @property
    def reached(self) -> bool:
        """Whether there is such an answer."""
        found = _best(self.search)
        return found is not None and (self.budget_s is None or found.value <= self.budget_s)


Offer = Callable[[Search, Plan, Unlimited | None, Goal], None]
"""Offers plans like one without spill, until the goal is reached."""


@dataclass(frozen=True)
class Way:
    """One row of the table.

    Attributes
    ----------
    host
        Whether it uses the host; without one there is no such row.
    schedule
        Of its plans; V-shaped ones are rows where they are asked for by name.
    refusal
        Why it has no programs on an instance, and so can do no more than ``fallback``; None if it has.
    """

    name: str
    says: str
    offer: Offer
    host: bool = False
    schedule: Schedule = "chunked"
    refusal: Callable[[Instance], str | None] = lambda instance: None
    fallback: str = "without spill"

    @property
    def bounded(self) -> bool:
        """Whether the bound on lengths speaks about its plans."""
        return not self.host and self.schedule == "chunked"


@dataclass(frozen=True)
class Found:
    """The fastest answer for one length: a plan, or a program where no plan can say it; and its value in seconds."""

    value: float
    plan: Plan | None = None
    served: Served | None = None


def _none(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    search.offer(plan)


def _pairs(partners: Callable[[int, int], Partners]) -> Offer:
    def offer(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
        (key,) = plan.chunks
        sizes = {int(key): plan.chunks[key]}
        layout = Layout(plan.layers, plan.placement, partners(search.stages, len(plan.chunks[key])))
        if fit(search, plan.batch, sizes, layout) is None and search.failed is None:
            search.offer(plan)  # no window helps: the plan without one says what is missing

    return offer


def _rematch(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    search.unserved = refusal(search.instance)
    search.offer(plan)
    _keep_best(search, rematchings(search, plan, lambda: goal.reached))


def _lent(
    search: Search,
    plan: Plan,
    unlimited: Unlimited | None,
    goal: Goal,
    *,
    partners: Callable[[int], Partners] | None = None,
) -> None:
    """Amounts by a linear program: at any die, or only at the partner of the stage's die."""
    search.offer(plan)
    for timeline in () if unlimited is None else (lockstep(unlimited), unlimited):
        if goal.reached:
            return
        pooled_plan(search, plan, timeline, partners=None if partners is None else partners(search.stages))


def _pool_with_delays(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    _pool(search, plan, unlimited, goal)
    if unlimited is not None and not goal.reached:
        _keep_best(search, held_back(search, plan, unlimited, goal.budget_s, lambda: goal.reached))


def _keep_best(search: Search, programs: Iterator[Served]) -> None:
    for served in programs:
        if search.served is None or served.value < search.served.value:
            search.served = served


def _partnered(partners: Callable[[int], Partners]) -> Offer:
    return partial(_lent, partners=partners)


def _pool(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    _lent(search, plan, unlimited, goal)
    for pairs in (mbkr_pairs, lambda n, m: head_to_tail(n)):
        if goal.reached or unlimited is None:
            return
        _pairs(pairs)(search, plan, unlimited, goal)  # pairs are pools, and the program may miss them


def _host(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    search.offer(plan)
    if not goal.reached:
        bisected(search, plan)


def _pool_and_host(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    _host(search, plan, unlimited, goal)
    _pool(search, plan, unlimited, goal)


def _lent_and_host(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    _host(search, plan, unlimited, goal)
    _lent(search, plan, unlimited, goal)


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


_SCHEDULES: tuple[tuple[Schedule, str], ...] = (
    ("vpp", "a chunk's second visit before a later one's first"),
    ("vpp-async", "the two visits of a period swapped"),
    ("vpp-packed", "the next wave's chunks enter while the last wave's leave"),
)
_SPILLS: tuple[tuple[str, str, Offer], ...] = (
    ("", "every stage keeps its own KV", _none),
    ("+head-to-tail", "dies r and N-1-r lend each other memory, amounts by a linear program", _partnered(head_to_tail)),
    ("+mocap", "dies half the pipeline apart lend, amounts by a linear program", _partnered(cross_half)),
    ("+pool", "any die may hold any stage's chunks, amounts by a linear program", _lent),
    ("+host", "late chunks leave for the die's host memory (active spill)", _host),
    ("+pool+host", "any die and the host", _lent_and_host),
)

WAYS = (
    Way("none", "every stage keeps its own KV (TeraPipe, CPP)", _none),
    Way(
        "head-to-tail",
        "stages s and N-1-s lend each other memory (BPipe's pairs), MBKR's windows",
        _pairs(lambda n, m: head_to_tail(n)),
    ),
    Way("mocap", "MBKR's cross-half pairs; with fewer chunks than stages pairs half a wave apart", _pairs(mbkr_pairs)),
    Way(
        "rematch",
        "creditors by load, matched anew every few chunks; what is lent moves, and the die waits (a program)",
        _rematch,
        refusal=refusal,
    ),
    Way("pool", "any die may hold any stage's chunks, amounts by a linear program", _pool),
    Way(
        "pool+delays",
        "as pool, on a timeline whose stages wait so that their peaks are apart (a program)",
        _pool_with_delays,
        refusal=lambda instance: slow_seams(instance.hardware),
        fallback="pool",
    ),
    Way(
        "host-reuse",
        "host memory serves reuse alone, as in engines today: a running request stays whole",
        _none,
        host=True,
    ),
    Way("host", "late chunks leave for the die's host memory (active spill)", _host, host=True),
    Way("pool+host", "any die and the host", _pool_and_host, host=True),
    *(
        Way(
            schedule + suffix,
            f"two parts of the layers a die, {order}; {says}",
            partial(_folded, schedule, spill),
            host=suffix.endswith("host"),
            schedule=schedule,
        )
        for schedule, order in _SCHEDULES
        for suffix, says, spill in _SPILLS
    ),
)
BY_NAME = {way.name: way for way in WAYS}


def best_found(length: Length, way: Way, budget_s: float | None) -> Found | None:
    """The fastest answer found by one way of spilling; stops at the first within the budget. None if none runs."""
    search = length.search(host=way.host)
    goal = Goal(search, budget_s)
    for plan, unlimited in length.plans(search):
        if goal.reached or search.deadline.over:
            break
        way.offer(search, plan, unlimited, goal)
    return _best(search)


def _best(search: Search) -> Found | None:
    """The faster of the incumbent and a program."""
    plan, value, served = search.incumbent.plan, search.incumbent.value, search.served
    if served is not None and (value is None or served.value < value):
        return Found(served.value, served=served)
    return None if value is None else Found(value, plan=plan)
