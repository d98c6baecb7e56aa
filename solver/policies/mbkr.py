"""MBKR, MOCAP's memory-balanced KV reallocation: fixed cross-half pairs, one threshold rule for all stages.

As we read Fig. 5 of the paper (arXiv 2606.22968): with s_i chunks of the wave computed, a stage keeps everything while
s_i < p1, hosts its partner's chunks while p1 <= s_i < p2, and spills while s_i >= p2. Partners are N/2 apart, so
p1 = p2 - (N/2 mod M). We spill whole chunks p2 <= i < p2 + n of every stage to its partner, the fastest of
the first few windows that run, from the least n on; the paper gives no amounts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from formulations.tables import fastest_die
from instances.plan import Plan, SpillRow
from instances.workload import Shape
from solver.search import Placement, Search

Sizes = Mapping[int, tuple[int, ...]]

MORE_WINDOWS = 2
"""Wider windows tried after the first that runs: more spill can mean fewer waits."""
MOST_REPLAYS = 40


@dataclass(frozen=True)
class Thresholds:
    """Chunks p2 <= i < p2 + n of every stage go to the partner."""

    p2: int
    n: int

    def p1(self, stages: int, chunks: int) -> int:
        """First chunk count at which a stage hosts."""
        return self.p2 - (stages // 2) % chunks


Partners = tuple[int | None, ...]
"""Partner of each stage; None for one that lends and borrows nothing."""


@dataclass(frozen=True)
class Layout:
    """What the thresholds take as given."""

    layers: tuple[int, ...]
    placement: Placement
    partners: Partners


def cross_half(stages: int) -> Partners:
    """The stage half a pipeline away; with an odd number of stages the last one has none."""
    half = stages // 2
    return tuple((stage + half) % (2 * half) if stage < 2 * half else None for stage in range(stages))


def head_to_tail(stages: int) -> Partners:
    """The stage as far from the tail as this one is from the head; with an odd number the middle one has none."""
    return tuple(stages - 1 - stage if 2 * stage != stages - 1 else None for stage in range(stages))


def offset_pairs(stages: int, offset: int) -> Partners:
    """Stages s and s + offset lend each other memory, in blocks of twice the offset; what is left has no partner."""
    whole = stages - stages % (2 * offset)
    return tuple(
        None if stage >= whole else stage + offset if stage % (2 * offset) < offset else stage - offset
        for stage in range(stages)
    )


def mbkr_pairs(stages: int, chunks: int) -> Partners:
    """Cross-half partners; with fewer chunks than stages those half a wave apart, for others peak with one another."""
    return cross_half(stages) if chunks >= stages else offset_pairs(stages, max(1, min(chunks // 2, stages // 2)))


def nobody(stages: int) -> Partners:
    """No partners: everything stays at home."""
    return (None,) * stages


def spilled_plan(search: Search, batch: int, sizes: Sizes, layout: Layout, windows: Mapping[Shape, Thresholds]) -> Plan:
    """The plan with these thresholds for each request shape."""
    rows = []
    many = len(windows) > 1
    for shape, window in windows.items():
        chunks = sizes[shape[0] - shape[1]]
        for stage, creditor in enumerate(layout.partners):
            if creditor is not None:
                # Built without validation, which would take longer than the replay; the answer is checked in the end.
                rows += [
                    SpillRow.model_construct(
                        stage=stage, chunk=i, creditor=creditor, tokens=chunks[i], shape=shape if many else None
                    )
                    for i in range(window.p2, window.p2 + window.n)
                ]
    return search.plan(batch, sizes, layout.layers, layout.placement, rows)


def fit(
    search: Search, batch: int, sizes: Sizes, layout: Layout, most_replays: int = MOST_REPLAYS
) -> tuple[Plan, dict[Shape, Thresholds], float] | None:
    """Thresholds with which the plan runs, the fastest of the first few; None if none of ``most_replays`` does.

    The request shapes widen their windows together, each from the least that its own KV needs.
    """
    best: tuple[Plan, dict[Shape, Thresholds], float] | None = None
    since = 0
    for tried, windows in enumerate(_windows(search, batch, sizes, layout)):
        if tried >= most_replays or search.deadline.over:
            break
        plan = spilled_plan(search, batch, sizes, layout, windows)
        value = search.offer(plan)
        if search.incumbent.skipped is plan:
            break  # too long to replay, as the others are
        if value is not None and (best is None or value < best[2]):
            best, since = (plan, windows, value), 0
        elif best is not None:
            since += 1
        if best is not None and (since >= MORE_WINDOWS or not any(window.n for window in windows.values())):
            break
    return best


def _windows(search: Search, batch: int, sizes: Sizes, layout: Layout) -> Iterator[dict[Shape, Thresholds]]:
    """No spill, then windows of growing length; of each length the latest first, which is fetched least often."""
    shapes = search.instance.workload.shapes
    least = {}
    for shape in shapes:
        if search.deadline.over:
            return
        needed = _least_window(search, batch, sizes[shape[0] - shape[1]], shape, layout)
        if needed is None:
            return
        least[shape] = needed
    alone = all(creditor is None for creditor in layout.partners)
    if alone or not any(least.values()):
        yield {shape: Thresholds(len(sizes[shape[0] - shape[1]]) - 1, 0) for shape in shapes}
    if alone:
        return
    longest = max(len(sizes[shape[0] - shape[1]]) for shape in shapes) - 1
    for extra in range(longest):
        for earlier in (0, 1, 2, 4):
            windows = {}
            for shape in shapes:
                last = len(sizes[shape[0] - shape[1]]) - 1
                n = min(last, max(least[shape] + extra, 1))
                windows[shape] = Thresholds(max(0, last - n - earlier), n)
            yield windows


def _least_window(search: Search, batch: int, chunks: tuple[int, ...], shape: Shape, layout: Layout) -> int | None:
    """Least number of late chunks whose KV must leave the tightest stage; None if even all but the last do not help."""
    cost, die = search.instance.stage_cost, fastest_die(search.instance)
    least, start = 0, 0
    tokens = np.array(chunks)
    for stage, count in enumerate(layout.layers):
        stop = start + count
        weights = cost.weight_bytes(start, stop, embedding=stage == 0, head=stage == search.stages - 1)
        free = die.hbm_bytes - weights - cost.workspace_bytes(start, stop, batch, max(chunks))
        held = float(np.max(cost.kv_held_bytes(start, stop, batch, shape[0], chunks[-1])))
        each = batch * cost.spillable_bytes_per_token(start, stop)
        gone = np.concatenate(([0.0], np.cumsum(tokens[:-1][::-1] * each)))
        enough = np.flatnonzero(held - gone <= free)
        if not len(enough):
            return None
        least, start = max(least, int(enough[0])), stop
    return least
