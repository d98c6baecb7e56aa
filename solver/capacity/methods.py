"""The ways to spill that a capacity table compares, and the best that one of them finds for a length."""

from __future__ import annotations

from solver.capacity import offers
from solver.capacity.folded import folded_ways
from solver.capacity.length import Length
from solver.capacity.way import Found, Goal, Way, best_of
from solver.policies.mbkr import mbkr_pairs
from solver.policies.rematch import refusal
from solver.serving.setting import slow_seams

WAYS = (
    Way("none", "every stage keeps its own KV (TeraPipe, CPP)", offers.none),
    Way(
        "head-to-tail",
        "stages s and N-1-s lend each other memory (BPipe's pairs), MBKR's windows",
        offers.pairs(offers.head_to_tail_pairs),
    ),
    Way(
        "mocap",
        "MBKR's cross-half pairs; with fewer chunks than stages pairs half a wave apart",
        offers.pairs(mbkr_pairs),
    ),
    Way(
        "rematch",
        "creditors by load, matched anew every few chunks; what is lent moves, and the die waits (a program)",
        offers.rematch,
        refusal=refusal,
    ),
    Way("pool", "any die may hold any stage's chunks, amounts by a linear program", offers.pool),
    Way(
        "pool+delays",
        "as pool, on a timeline whose stages wait so that their peaks are apart (a program)",
        offers.pool_with_delays,
        refusal=lambda instance: slow_seams(instance.hardware),
        fallback="pool",
    ),
    Way(
        "host-reuse",
        "host memory serves reuse alone, as in engines today: a running request stays whole",
        offers.none,
        host=True,
    ),
    Way("host", "late chunks leave for the die's host memory (active spill)", offers.host, host=True),
    Way("pool+host", "any die and the host", offers.pool_and_host, host=True),
    *folded_ways(),
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
    return best_of(search)
