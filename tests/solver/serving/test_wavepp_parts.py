"""WavePP's parts: the cache of a stage, the boundary that all agree on, admission step by step, wave budgets."""

from __future__ import annotations

import math
from itertools import product

import pytest

from solver.serving.jobs import Job
from solver.serving.wavepp.admission import Admission, Control, Entry, agreed
from solver.serving.wavepp.cache import StageCache
from solver.serving.wavepp.planner import ladder, wave_budget


def seeded(capacity: int, snapshot: int = 0, **chains: int) -> StageCache:
    cache = StageCache(capacity, snapshot)
    for prefix, blocks in chains.items():
        cache.seed(prefix, blocks)
    return cache


def test_the_least_recently_used_chain_loses_its_last_blocks() -> None:
    cache = seeded(10, a=4, b=4)
    assert (cache.free, cache.evictable, cache.available) == (2, 8, 10)
    assert cache.take(7, 5) == 3  # two were free, three of a had to go
    assert (cache.matched("a", 9), cache.matched("b", 9)) == (1, 4)
    cache.pin("a", 8, 1)
    assert cache.take(7, 4) == 4
    assert (cache.matched("a", 9), cache.matched("b", 9), cache.evictable) == (1, 0, 0)
    with pytest.raises(ValueError, match="no room for 1 more"):
        cache.take(7, 1)


def test_what_a_request_leaves_extends_the_prefix_once() -> None:
    cache = seeded(20, a=2)
    for job in (1, 2):
        cache.pin("a", job, 2)
        cache.take(job, 6)  # blocks 2..7, of which 2 and 3 belong to the prefix of 4
    cache.leave(1, "a", 2, 4, 8)
    cache.leave(2, "a", 2, 4, 8)
    # The prefix has 4 blocks, each request a tail of 4; the second's blocks 2 and 3 were there already.
    assert (cache.matched("a", 9), cache.used, cache.evictable) == (4, 12, 12)
    # Tails go before the prefix.
    cache.take(3, 16)
    assert cache.matched("a", 9) == 4


def test_the_boundary_is_what_all_stages_have() -> None:
    assert agreed([seeded(20, a=10), seeded(20, a=7), seeded(20, a=9)], "a", 20) == 7
    assert agreed([seeded(20, a=10), seeded(20, a=7)], "a", 5) == 5
    assert agreed([seeded(20, a=10), seeded(20)], "a", 20) == 0


def test_recurrent_layers_resume_at_snapshots_only() -> None:
    # 7 blocks everywhere; the second stage has snapshots at 0, 4, 8; the third at 0, 3, 6: both at 0 and 12.
    assert agreed([seeded(20, a=7), seeded(20, 4, a=9)], "a", 20) == 4
    assert agreed([seeded(20, a=13), seeded(20, 4, a=13), seeded(20, 3, a=13)], "a", 20) == 12
    assert agreed([seeded(20, a=11), seeded(20, 4, a=11), seeded(20, 3, a=11)], "a", 20) == 0


def entry(number: int, blocks: int, prefix: str = "a", shared: int = 0) -> Entry:
    return Entry(Job(number, 0, blocks * 4, 0, 1, 0, blocks * 4), prefix, shared, min(shared, blocks - 1), blocks)


def admission(*caches: StageCache, hint_age_ps: int = 0, protected: bool = True, held: int = 9) -> Admission:
    # A walk takes 10, a round 5, a block 1 to prepare and 3 (first stage) or 7 to offload.
    control = Control(10, 5, 1, (3, 7, 7)[: len(caches)], hint_age_ps)
    return Admission(caches, control, protected=protected, most_held=held, headroom=10**6, block=4)


def test_steps_of_a_request_with_leases_and_escrow() -> None:
    caches = seeded(10, a=4, old=3), seeded(10, a=6, old=3)
    made = admission(*caches)
    asked = entry(1, 8, shared=6)
    made.ask(asked)
    made.next(100)
    # The hint: four blocks on all stages. Escrow at once for four more, nothing evicted, nothing pinned.
    assert (asked.hint, [cache.escrow for cache in caches], [cache.evicted for cache in caches]) == (4, [4, 4], [0, 0])
    assert made.next_ps == 115
    made.advance(115)
    # The lease: both pin four blocks, though the second has six.
    assert [cache.chains["a"].pinned for cache in caches] == [4, 4]
    assert made.next_ps == 120
    made.advance(120)
    # Four blocks each; 3 were free on the first stage, 1 on the second: 1 and 3 are evicted and offloaded.
    assert [cache.escrow for cache in caches] == [0, 0]
    assert [cache.evicted for cache in caches] == [1, 3]
    assert asked.ready_ps == [120 + 4 + 3, 120 + 4 + 21]


def test_a_stale_hint_is_caught_by_the_final_walk() -> None:
    caches = seeded(10, a=6), seeded(10, a=6)
    made = admission(*caches, hint_age_ps=1000)
    first, second = entry(1, 8, shared=6), entry(2, 8, shared=6)
    made.ask(first)
    made.next(0)
    caches[1].chains["a"].blocks = 2  # evicted while the request was on its way
    made.advance(15)
    assert (first.hint, first.start, made.stale_hints, made.rechecks) == (6, 2, 1, 1)
    # The promise grew from two blocks to six, and was taken at the commit.
    made.advance(20)
    assert [cache.active[1] for cache in caches] == [6, 6]
    # The index still says six.
    made.ask(second)
    made.next(20)
    assert second.hint == 6


def test_a_promise_that_no_longer_holds_is_taken_back_until_a_release() -> None:
    caches = seeded(12, a=6), seeded(12, a=6)
    made = admission(*caches)
    first, second = entry(1, 4, prefix="b"), entry(2, 9, shared=6)
    made.ask(first)
    made.ask(second)
    made.next(0)
    made.advance(20)
    made.next(20)
    assert (second.hint, second.promised) == (6, 3)
    caches[0].chains["a"].blocks = 4  # then five blocks are needed: 12 - 4 - 4 pinned = 4 are not enough
    made.advance(35)
    assert (list(made.queue), made.busy, [cache.escrow for cache in caches]) == ([second], False, [0, 0])
    assert not any(cache.chains["a"].pins for cache in caches)
    made.next(36)
    assert not made.busy
    made.leave(first)
    made.next(40)
    made.advance(60)
    assert (second.start, [cache.active[2] for cache in caches]) == (4, [5, 5])


def test_limits_on_who_holds_cache_state() -> None:
    made = admission(seeded(100), held=1)
    made.ask(entry(1, 4))
    made.ask(entry(2, 4))
    made.next(0)
    made.advance(20)
    made.next(20)
    assert (len(made.held), len(made.queue)) == (1, 1)
    roomy = Admission([seeded(100)], made.control, protected=True, most_held=9, headroom=31, block=4)
    roomy.ask(entry(1, 4))
    roomy.ask(entry(2, 4))
    roomy.next(0)
    roomy.advance(20)
    roomy.next(20)
    assert len(roomy.held) == 1  # 16 + 16 tokens are more than 31


def test_without_leases_what_was_matched_may_be_gone() -> None:
    cache = seeded(10, a=6)
    made = admission(cache, protected=False)
    asked = entry(1, 8, shared=6)
    made.ask(asked)
    made.next(0)
    made.advance(15)
    assert (asked.start, asked.ready_ps, cache.chains["a"].pinned) == (6, [15], 0)
    cache.take(9, 7)
    made.begin(asked)
    assert (asked.start, asked.job.context, made.lost_blocks) == (3, 12, 3)


def test_ladder() -> None:
    assert ladder(8192, 1024) == [8192, 4096, 2048, 1024]
    assert ladder(100, 30) == [100, 50]
    assert ladder(5, 9) == [5]


def test_the_budget_is_the_largest_that_fills_the_pipeline() -> None:
    budgets = ladder(8192, 512)
    for left, inside, target in product((1, 500, 4096, 9000, 70_000), range(6), (1, 4, 8)):
        fills = [budget for budget in budgets if inside + math.ceil(left / budget) >= target]
        assert wave_budget(left, inside, target, budgets) == (max(fills) if fills else 512)
