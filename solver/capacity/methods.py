"""The ways to spill that a capacity table compares; each offers plans of one length to its search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from instances.plan import Plan
from solver.capacity.length import Length
from solver.exact.host_spill import bisected
from solver.exact.lockstep import lockstep
from solver.exact.pool import Unlimited, pooled_plan
from solver.policies.mbkr import Layout, Partners, fit, head_to_tail, mbkr_pairs
from solver.search import Search

Offer = Callable[[Search, Plan, Unlimited | None, Callable[[], bool]], None]
"""Offers plans like one without spill, until the function says that there is a good enough one."""


@dataclass(frozen=True)
class Way:
    """One row of the table.

    Attributes
    ----------
    host
        Whether it uses the host; without one there is no such row.
    """

    name: str
    says: str
    offer: Offer
    host: bool = False


def _none(search: Search, plan: Plan, unlimited: Unlimited | None, enough: Callable[[], bool]) -> None:
    search.offer(plan)


def _pairs(partners: Callable[[int, int], Partners]) -> Offer:
    def offer(search: Search, plan: Plan, unlimited: Unlimited | None, enough: Callable[[], bool]) -> None:
        (key,) = plan.chunks
        sizes = {int(key): plan.chunks[key]}
        layout = Layout(plan.layers, plan.placement, partners(search.stages, len(plan.chunks[key])))
        fit(search, plan.batch, sizes, layout)

    return offer


def _pool(search: Search, plan: Plan, unlimited: Unlimited | None, enough: Callable[[], bool]) -> None:
    search.offer(plan)
    if unlimited is None:
        return
    for timeline in (lockstep(unlimited), unlimited):
        if enough():
            return
        pooled_plan(search, plan, timeline)


def _host(search: Search, plan: Plan, unlimited: Unlimited | None, enough: Callable[[], bool]) -> None:
    search.offer(plan)
    if not enough():
        bisected(search, plan)


def _pool_and_host(search: Search, plan: Plan, unlimited: Unlimited | None, enough: Callable[[], bool]) -> None:
    _host(search, plan, unlimited, enough)
    _pool(search, plan, unlimited, enough)


WAYS = (
    Way("none", "every stage keeps its own KV (TeraPipe, CPP)", _none),
    Way(
        "head-to-tail",
        "stages s and N-1-s lend each other memory (BPipe's pairs), MBKR's windows",
        _pairs(lambda n, m: head_to_tail(n)),
    ),
    Way("mocap", "MBKR's cross-half pairs; with fewer chunks than stages pairs half a wave apart", _pairs(mbkr_pairs)),
    Way("pool", "any die may hold any stage's chunks, amounts by a linear program", _pool),
    Way("host", "late chunks leave for the die's host memory (active spill)", _host, host=True),
    Way("pool+host", "any die and the host", _pool_and_host, host=True),
)
BY_NAME = {way.name: way for way in WAYS}


def best_plan(length: Length, way: Way, budget_s: float | None) -> tuple[Plan, float] | None:
    """The fastest plan found by one way of spilling; stops at the first within the budget. None if none runs."""
    search = length.search(host=way.host)

    def enough() -> bool:
        value = search.incumbent.value
        return value is not None and (budget_s is None or value <= budget_s)

    for plan, unlimited in length.plans(search):
        if enough() or search.deadline.over:
            break
        way.offer(search, plan, unlimited, enough)
    best, value = search.incumbent.plan, search.incumbent.value
    return None if best is None or value is None else (best, value)
