"""Splits of an instance's layers that a search starts from where the split is free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.layers.exact import best_split
from formulations.layers.from_instance import layer_problem
from formulations.layers.problem import LayerProblem, stated
from instances.hardware import Die
from instances.instance import Instance
from instances.workload import Shape

Split = tuple[int, ...]


def even_split(instance: Instance) -> Split | None:
    """As equal numbers of layers as the cuts allow, the larger ones last; None where there are too few cuts."""
    layers, pipeline = instance.model.layer_count, instance.pipeline
    return best_split(stated(np.ones(layers), pipeline.stages, forbidden_cuts=pipeline.forbidden_cuts)).layers


def fastest_split(instance: Instance, size: int, shape: Shape, dies: Sequence[Die] | None = None) -> Split | None:
    """The split with the fastest slowest stage for waves of ``size`` requests of a shape, in mean chunks.

    ``dies`` are those of the stages; unless given, all are as good as the best there is.

    Where some split has room for the KV of the whole wave on every stage, the best of those; else one with room for the
    KV of a chunk, the rest being spilled; else the one with the least that does not fit. None where there are too few
    cuts.
    """
    start, chunk = even_split(instance), mean_chunk_tokens(instance, shape)
    for kv_tokens in (shape[0], chunk):
        found = best_split(layer_problem(instance, size, shape, chunk, kv_tokens=kv_tokens, dies=dies), start)
        if found.layers is not None:
            return found.layers
    least = layer_problem(instance, size, shape, chunk, kv_tokens=chunk, dies=dies, memory="excess")
    return best_split(least, start).layers


def at_rest(instance: Instance, size: int, shape: Shape) -> LayerProblem:
    """The problem whose memory rule every plan has to keep: static memory and the KV of a mean chunk."""
    chunk = mean_chunk_tokens(instance, shape)
    return layer_problem(instance, size, shape, chunk, kv_tokens=chunk)


def mean_chunk_tokens(instance: Instance, shape: Shape) -> int:
    """Whole quanta of a chunk where there are as many chunks as there may be; the largest is at least that large."""
    uncached, pipeline = shape[0] - shape[1], instance.pipeline
    quanta = -(-uncached // pipeline.chunk_quantum)
    each = -(-quanta // min(quanta, pipeline.max_chunks))
    return min(uncached, each * pipeline.chunk_quantum)
