"""What each way to spill offers for one length: plans, or programs where no plan says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from instances.plan import Plan
from solver.capacity.way import Goal, Offer
from solver.exact.host_spill import bisected
from solver.exact.lockstep import lockstep
from solver.exact.pool import Unlimited, pooled_plan
from solver.policies.held_back import held_back
from solver.policies.mbkr import Layout, Partners, fit, head_to_tail, mbkr_pairs
from solver.policies.rematch import refusal, rematchings
from solver.search import Search
from solver.serving.served import Served


def none(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    """Every stage keeps its own KV."""
    search.offer(plan)


def pairs(partners: Callable[[int, int], Partners]) -> Offer:
    """MBKR's windows between the partners for a number of stages and of chunks."""

    def offer(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
        (key,) = plan.chunks
        sizes = {int(key): plan.chunks[key]}
        layout = Layout(plan.layers, plan.placement, partners(search.stages, len(plan.chunks[key])))
        if fit(search, plan.batch, sizes, layout) is None and search.failed is None:
            search.offer(plan)  # no window helps: the plan without one says what is missing

    return offer


def rematch(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    """Partners chosen anew every few chunks."""
    search.unserved = refusal(search.instance)
    search.offer(plan)
    _keep_best(search, rematchings(search, plan, lambda: goal.reached))


def lent(
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


def partnered(partners: Callable[[int], Partners]) -> Offer:
    """``lent`` between the partners for a number of dies."""
    return partial(lent, partners=partners)


def pool(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    """``lent``; then pairs, which are pools too, and which the program may miss."""
    lent(search, plan, unlimited, goal)
    for partners in (mbkr_pairs, head_to_tail_pairs):
        if goal.reached or unlimited is None:
            return
        pairs(partners)(search, plan, unlimited, goal)


def pool_with_delays(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    """``pool``; then programs whose tasks are held back."""
    pool(search, plan, unlimited, goal)
    if unlimited is not None and not goal.reached:
        _keep_best(search, held_back(search, plan, unlimited, goal.budget_s, lambda: goal.reached))


def host(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    """Late chunks leave for the host."""
    search.offer(plan)
    if not goal.reached:
        bisected(search, plan)


def pool_and_host(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    """``host``, then ``pool`` with the host as one more creditor."""
    host(search, plan, unlimited, goal)
    pool(search, plan, unlimited, goal)


def lent_and_host(search: Search, plan: Plan, unlimited: Unlimited | None, goal: Goal) -> None:
    """``host``, then ``lent`` with the host as one more creditor."""
    host(search, plan, unlimited, goal)
    lent(search, plan, unlimited, goal)


def head_to_tail_pairs(stages: int, chunks: int) -> Partners:
    """The same partners for any number of chunks."""
    return head_to_tail(stages)


def _keep_best(search: Search, programs: Iterator[Served]) -> None:
    for served in programs:
        if search.served is None or served.value < search.served.value:
            search.served = served
