"""Layer splits worth a try where the split is free."""

from __future__ import annotations

from formulations.layers.candidates import at_rest, even_split, fastest_split
from solver.search import Search


def free_splits(search: Search) -> list[tuple[int, ...]]:
    """Splits that keep the cuts allowed and, where any does, fit at rest; the instance's own where it gives one.

    First the ones whose slowest stage is fastest for mean chunks, for the largest batch and for single requests of the
    longest shape, then the one with as equal numbers of layers as can be. Empty where there are too few cuts.
    """
    instance = search.instance
    if instance.fixed_layers is not None:
        return [instance.fixed_layers]
    longest = max(instance.workload.shapes)
    sizes = dict.fromkeys((search.batches()[-1], 1))
    candidates = [fastest_split(instance, size, longest) for size in sizes]
    splits = list(dict.fromkeys(split for split in (*candidates, even_split(instance)) if split is not None))
    memory = at_rest(instance, 1, longest)
    return [split for split in splits if not memory.violations(split)] or splits
