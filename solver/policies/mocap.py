"""MOCAP (arXiv 2606.22968): MBKR's pairs and thresholds with LBCP's chunk boundaries, under the full replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from formulations.chunks.single_label import single_label_chunks
from instances.plan import Plan
from instances.workload import Shape
from solver.placing import partner_placement
from solver.policies.annealing import Schedule, anneal
from solver.policies.layout import heaviest_table, layer_split
from solver.policies.mbkr import MOST_REPLAYS, Layout, Partners, Thresholds, cross_half, fit, spilled_plan
from solver.search import Search

Cuts = dict[Shape, list[int]]

MOST_COUNTS = 16
"""Numbers of chunks that stage 1 is run with: as many as 16 stages have up to 128 chunks, in multiples of N/2."""
FEW_REPLAYS = 8
"""Replays for the thresholds of a neighbour whose predecessor's do not run."""


@dataclass(frozen=True)
class Candidate:
    """Cuts with the largest batch that runs and the thresholds found for it."""

    cuts: Cuts
    batch: int
    windows: Mapping[Shape, Thresholds]
    plan: Plan
    value: float


@dataclass(frozen=True)
class Variant:
    """Which parts of MOCAP are in use.

    Attributes
    ----------
    partners
        Who lends to whom, from the number of stages.
    boundaries
        Whether LBCP moves the boundaries; else chunks are equal.
    """

    partners: Callable[[int], Partners] = cross_half
    boundaries: bool = True


def mocap(search: Search, variant: Variant | None = None) -> Plan | None:
    """MBKR + LBCP as the paper words it, or a variant of it.

    Stage 1 of LBCP (Algorithm 1, lines 1 to 7) cuts by the single-label recurrence on compute times; stage 2 (lines 8
    to 16) is simulated annealing that moves one boundary at a time, keeps the number of chunks, and scores every
    candidate by the replayed latency of the largest batch that runs. The paper does not say how the number of chunks is
    chosen: multiples of N/2 are tried after stage 1 and the best goes to stage 2, unless one is asked for.

    Knobs: ``iterations``, ``temperature`` (relative to the latency), ``cooling`` (factor an iteration), ``batch``
    (``largest`` as in the paper, or ``best``: every batch is tried).
    """
    variant = variant or Variant()
    partners = variant.partners(search.stages)
    pairs = tuple((stage, other) for stage, other in enumerate(partners) if other is not None and stage < other)
    placement = partner_placement(search, pairs)
    layout = Layout(layer_split(search, placement), placement, partners)
    first = _first_cuts(search, equal=not variant.boundaries)
    starts = [found for cuts in first if (found := evaluate(search, cuts, layout)) is not None]
    if not starts:
        return None
    best = start = min(starts, key=lambda candidate: candidate.value)
    if variant.boundaries:
        best = lbcp(search, start, layout)
        search.details["lbcp_start_value"] = start.value
    if variant.partners is cross_half:
        search.details["thresholds"] = {
            f"{shape[0]},{shape[1]}": {
                "p1": window.p1(search.stages, len(best.cuts[shape])),
                "p2": window.p2,
                "n": window.n,
            }
            for shape, window in best.windows.items()
        }
    return best.plan


def lbcp(search: Search, start: Candidate, layout: Layout) -> Candidate:
    """Stage 2: anneal the boundaries of ``start``."""
    schedule = Schedule(
        iterations=search.knobs["iterations"],
        temperature=search.knobs["temperature"] * start.value,
        cooling=search.knobs["cooling"],
    )

    def neighbour(candidate: Candidate) -> Candidate | None:
        cuts = _moved(search, candidate.cuts)
        return None if cuts is None else evaluate(search, cuts, layout, like=candidate)

    return anneal(start, neighbour, lambda candidate: candidate.value, schedule, search.rng, search.deadline)


def evaluate(search: Search, cuts: Cuts, layout: Layout, like: Candidate | None = None) -> Candidate | None:
    """EvaluatePrefill and EvaluateE2E: the largest batch that runs, and the replayed objective with it.

    ``like`` is a neighbour whose batch and thresholds are tried first; only if they fail are others searched, in few
    replays and up to that batch.
    """
    sizes = search.sizes(cuts)
    if like is not None:
        plan = spilled_plan(search, like.batch, sizes, layout, like.windows)
        value = search.offer(plan)
        if value is not None:
            return Candidate(cuts, like.batch, like.windows, plan, value)
    best: Candidate | None = None
    most_batch, most_replays = (search.batches()[-1], MOST_REPLAYS) if like is None else (like.batch, FEW_REPLAYS)
    for batch in range(most_batch, 0, -1):
        if search.deadline.over:
            break
        found = fit(search, batch, sizes, layout, most_replays)
        if found is not None and (best is None or found[2] < best.value):
            best = Candidate(cuts, batch, found[1], found[0], found[2])
        if best is not None and search.knobs["batch"] == "largest":
            break
    return best


def _first_cuts(search: Search, *, equal: bool = False) -> list[Cuts]:
    """Stage-1 cuts for each number of chunks worth a try, or equal ones."""
    half = max(1, search.stages // 2)
    most = search.instance.pipeline.max_chunks
    counts = [search.chunks] if search.chunks is not None else sorted({*range(half, most + 1, half), most})
    results: list[Cuts] = []
    # Of more, evenly spread ones, the fewest and the most chunks among them.
    chosen = np.linspace(0, len(counts) - 1, min(MOST_COUNTS, len(counts))).round().astype(int)
    for count in (counts[index] for index in chosen):
        cuts: Cuts = {}
        for shape in search.instance.workload.shapes:
            if not search.may_tabulate(shape):
                return results
            grid = search.tables.grid(shape)
            chunks = min(count, grid.quanta)
            if equal:
                cuts[shape] = grid.positions(search.equal_sizes(shape, chunks))
                continue
            table = heaviest_table(search, 1, shape)
            cuts[shape] = single_label_chunks(table, search.stages - 1, chunks).cuts
        if all(cuts.values()) and cuts not in results:
            results.append(cuts)
    return results


def _moved(search: Search, cuts: Cuts) -> Cuts | None:
    """Move one boundary of one list by a few quanta, within its neighbours; None where nothing can move."""
    movable = [
        (shape, index)
        for shape, ends in cuts.items()
        for index, (before, after) in enumerate(zip([0, *ends], ends[1:], strict=False))
        if after - before > 2
    ]
    if not movable:
        return None
    shape, index = movable[int(search.rng.integers(len(movable)))]
    ends = cuts[shape]
    low, high = (ends[index - 1] if index else 0) + 1, ends[index + 1] - 1
    reach = max(1, (high - low) // 4)
    step = int(search.rng.integers(1, reach + 1)) * (1 if search.rng.random() < 0.5 else -1)
    moved = min(high, max(low, ends[index] + step))
    if moved == ends[index]:
        moved = min(high, max(low, ends[index] - step))  # at one end of its room it can only go the other way
    return {**cuts, shape: [*ends[:index], moved, *ends[index + 1 :]]}
