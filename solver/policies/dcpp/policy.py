"""DCPP as a method: chunk lists of the engines' predictors on this instance's costs, the best base under replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from instances.errors import InputError
from instances.plan import Plan
from instances.workload import Shape
from solver.policies.dcpp.lists import Predictor
from solver.policies.layout import pipeline_layout
from solver.search import Search

Predict = Callable[[Search, Predictor, Shape, int], list[int]]
"""Chunk sizes of a wave of requests of a shape, from a base in tokens of each request."""


def sglang(search: Search) -> Plan | None:
    """SGLang's dynamic chunking: fitted on stage 0, rounded down, floor of a quarter of the base."""
    return _best(search, _sglang)


def ascend(search: Search) -> Plan | None:
    """vLLM-Ascend's profiling chunk: fitted on the last stage, rounded up, never above the base, floor ``least``."""
    return _best(search, _ascend)


def _best(search: Search, predict: Predict) -> Plan | None:
    """Offer the lists of every batch and base worth a try; notes the base of the best."""
    layers, placement = pipeline_layout(search)
    shapes, knobs = search.instance.workload.shapes, search.knobs
    best: tuple[float, int] | None = None
    for batch in search.batches():
        if not search.incumbent.affords_s(2 * search.evaluator.least_replay_s(batch)):
            search.incumbent.skip(search.evaluator.least_replay_s(batch))
            continue
        size = min(batch, len(search.evaluator.requests))
        true_cost = knobs["cost"] == "true"
        predictor = Predictor(search.instance, layers, size, knobs["smoothing"], knobs["page"], true_cost)
        for base in _bases(search):
            if search.deadline.over:
                return None
            try:
                sizes = {shape[0] - shape[1]: tuple(predict(search, predictor, shape, base)) for shape in shapes}
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


def _sglang(search: Search, predictor: Predictor, shape: Shape, base: int) -> list[int]:
    most = search.knobs["most"]
    return predictor.sglang(shape, base, max(most, base) if most else None)


def _ascend(search: Search, predictor: Predictor, shape: Shape, base: int) -> list[int]:
    return predictor.ascend(shape, base, search.knobs["least"])
