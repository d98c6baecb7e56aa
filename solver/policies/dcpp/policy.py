"""DCPP as a method: chunk lists of the engines' predictors on this instance's costs, the best base under replay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from instances.errors import InputError
from instances.plan import Plan
from instances.workload import Shape
from solver.policies.dcpp.predictor import LEAST_ALIGNMENT, Quadratic, ascend_chunks, profile_sizes, sglang_chunks
from solver.policies.layout import pipeline_layout
from solver.search import Search

Seconds = npt.NDArray[np.float64]
SGLANG_SAMPLES, SGLANG_LONGEST = 128, 1.25
ASCEND_SAMPLES = 64

Predict = Callable[[Search, int, Shape, int], list[int]]
"""Chunk sizes of a wave of so many requests of a shape, from a base in tokens of each request."""


def sglang(search: Search) -> Plan | None:
    """SGLang's dynamic chunking: fitted on stage 0, rounded down, floor of a quarter of the base."""
    return _best(search, _sglang)


def ascend(search: Search) -> Plan | None:
    """vLLM-Ascend's profiling chunk: fitted on the last stage, rounded up, never above the base, floor ``least``."""
    return _best(search, _ascend)


def _best(search: Search, predict: Predict) -> Plan | None:
    """Offer the lists of every batch and base worth a try; notes the base of the best."""
    layers, placement = pipeline_layout(search)
    shapes = search.instance.workload.shapes
    best: tuple[float, int] | None = None
    for batch in search.batches():
        if not search.incumbent.affords_s(2 * search.evaluator.least_replay_s(batch)):
            search.incumbent.skip(search.evaluator.least_replay_s(batch))
            continue
        for base in _bases(search):
            if search.deadline.over:
                return None
            try:
                sizes = {shape[0] - shape[1]: tuple(predict(search, batch, shape, base)) for shape in shapes}
            except InputError as error:
                search.details["refused"] = str(error)  # as the engine would, at its start
                continue
            if any(not _allowed(search, chunks) for chunks in sizes.values()):
                continue
            value = search.offer(search.plan(batch, sizes, layers, placement))
            if value is not None and (best is None or value < best[0]):
                best = value, base
                search.details["base_tokens"] = base
    return None


def _allowed(search: Search, chunks: tuple[int, ...]) -> bool:
    wanted = search.chunks
    return len(chunks) == wanted if wanted is not None else len(chunks) <= search.instance.pipeline.max_chunks


def _bases(search: Search) -> Iterator[int]:
    """The base asked for, or all that differ: whole quanta of a ladder of equal slices of the longest request."""
    asked, quantum = search.knobs["base"], search.instance.pipeline.chunk_quantum
    if asked:
        yield max(quantum, asked - asked % quantum)
        return
    longest = max(search.instance.workload.shapes, key=lambda shape: shape[0] - shape[1])
    quanta = search.tables.grid(longest).quanta
    yield from sorted({-(-quanta // count) * quantum for count in search.chunk_counts(longest)}, reverse=True)


def _alignment(search: Search) -> int:
    """Tokens to which chunks are rounded: what the engine asks for, in whole quanta."""
    return math.lcm(search.instance.pipeline.chunk_quantum, max(search.knobs["page"], LEAST_ALIGNMENT))


def _sglang(search: Search, batch: int, shape: Shape, base: int) -> list[int]:
    knobs, alignment = search.knobs, _alignment(search)
    most = max(knobs["most"], base) if knobs["most"] else None
    if knobs["cost"] == "true":
        return _true_chunks(search, batch, shape, base, 0, alignment, least=base // 4, most=most, up=False)
    model = _fitted(search, batch, 0, profile_sizes(base, SGLANG_SAMPLES, SGLANG_LONGEST))
    return sglang_chunks(shape[0] - shape[1], shape[1], model, base, knobs["smoothing"], alignment, most)


def _ascend(search: Search, batch: int, shape: Shape, base: int) -> list[int]:
    knobs, alignment, last = search.knobs, _alignment(search), search.stages - 1
    if knobs["cost"] == "true":
        return _true_chunks(search, batch, shape, base, last, alignment, least=knobs["least"], most=base, up=True)
    model = _fitted(search, batch, last, profile_sizes(base, ASCEND_SAMPLES, 1.0))
    # One budget of time and tokens for all requests of a wave, equally: base is each one's part.
    return ascend_chunks(shape[0] - shape[1], shape[1], model, base, knobs["smoothing"], knobs["least"], alignment)


def _stage(search: Search, stage: int) -> tuple[int, int]:
    layers, _ = pipeline_layout(search)
    stop = list(accumulate(layers))[stage]
    return stop - layers[stage], stop


def _seconds(search: Search, batch: int, stage: int, chunk: npt.ArrayLike, prefix: npt.ArrayLike) -> Seconds:
    instance = search.instance
    size = min(batch, len(search.evaluator.requests))
    found: Seconds = instance.stage_cost.stage_seconds(
        instance.hardware.best_die, *_stage(search, stage), size, chunk, prefix, outside=np.inf
    )
    return found


def _fitted(search: Search, batch: int, stage: int, sizes: list[int]) -> Quadratic:
    """What the engine would fit to its profile of first chunks."""
    times = _seconds(search, batch, stage, np.array(sizes), 0)
    known = np.isfinite(times)  # a measured table may not reach so far
    return Quadratic.fit([size for size, fine in zip(sizes, known, strict=True) if fine], times[known])


def _true_chunks(
    search: Search,
    batch: int,
    shape: Shape,
    base: int,
    stage: int,
    alignment: int,
    *,
    least: int,
    most: int | None,
    up: bool,
) -> list[int]:
    """The engine's rule with the stage's own times in place of a fit."""
    tokens, cached = shape[0] - shape[1], shape[1]
    target_s = float(_seconds(search, batch, stage, base, 0))
    ceiling = min(tokens, most or tokens)
    candidates = np.arange(alignment, ceiling + alignment, alignment)
    sizes: list[int] = []
    done = 0
    while done < tokens:
        size = base
        if done:
            inside = candidates[candidates <= max(alignment, tokens - done)]
            fits = _seconds(search, batch, stage, inside, cached + done) <= target_s
            reached = int(inside[fits][-1]) if fits.any() else 0
            wanted = reached + alignment if up else reached
            smooth = int(base + search.knobs["smoothing"] * (wanted - base))
            smooth = -(-smooth // alignment) * alignment if up else smooth - smooth % alignment
            size = max(smooth, -(-min(least, base) // alignment) * alignment, alignment)
            size = size if most is None else max(alignment, min(size, most - most % alignment))
        sizes.append(min(size, tokens - done))
        done += sizes[-1]
    return sizes
