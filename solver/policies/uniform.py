"""Policies with equal slices: GPipe (one slice), CPP (a given or the best number), and what they share."""

from __future__ import annotations

from collections.abc import Iterator

from instances.plan import Plan
from solver.policies.layout import pipeline_layout
from solver.search import Search


def gpipe(search: Search) -> None:
    """GPipe: micro-batches run whole, one chunk each; the micro-batch size is the best one under replay.

    Nothing is tried where another number of chunks is asked for.
    """
    if search.chunks in (None, 1):
        _try_slices(search, single=True)


def cpp(search: Search) -> None:
    """Chunked pipeline parallelism with equal chunks: the number asked for, or the best of a ladder under replay."""
    _try_slices(search, single=False)


def _try_slices(search: Search, *, single: bool) -> None:
    for plan in uniform_plans(search, single=single):
        search.offer(plan)
        if search.deadline.over:
            return


def uniform_plans(search: Search, *, single: bool = False, largest_batch_first: bool = False) -> Iterator[Plan]:
    """Equal-slice plans for every batch and number of slices worth a try, few slices and small batches first."""
    layers, placement = pipeline_layout(search)
    shapes, counts = search.instance.workload.shapes, [1]
    for batch in search.batches()[:: -1 if largest_batch_first else 1]:
        least_s = search.evaluator.least_replay_s(batch)
        if not search.incumbent.affords_s(2 * least_s):
            search.incumbent.skip(least_s)
            continue
        if not single and len(counts) == 1:
            counts = sorted({count for shape in shapes for count in search.chunk_counts(shape)})
        for count in counts:
            yield search.plan(batch, search.equal_lists(count), layers, placement)
