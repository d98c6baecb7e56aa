"""The layer problem of an instance: times and bytes of one wave, run in equal chunks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.layers.problem import Amounts, LayerProblem, Memory, stated
from formulations.tables import fastest_die
from instances.costs import RooflineSpec
from instances.hardware import Die
from instances.instance import Instance
from instances.layers import LinearAttention
from instances.parameters import kv_held_bytes, layer_weight_bytes
from instances.workload import Shape


def layer_problem(
    instance: Instance,
    size: int,
    shape: Shape,
    chunk_tokens: int,
    *,
    kv_tokens: int | None = None,
    dies: Sequence[Die] | None = None,
    memory: Memory | None = None,
    attention_each_stage: bool = False,
) -> LayerProblem:
    """The split of an instance's layers for waves of ``size`` requests of a shape.

    A stage's seconds are those of all its chunks, of ``chunk_tokens`` each but the last, and of the head on the last
    one. With fitted or measured costs, which are known for the whole model and shared by layers, all layers are equal;
    chunks that were not measured count as nothing.

    Parameters
    ----------
    kv_tokens
        Tokens of each sequence whose KV a stage must hold; default all of the request, that is without any spill.
    dies
        The die of each stage; default for all a die at least as good as every enabled one, which makes "infeasible"
        hold for every placement.
    memory
        See `LayerProblem`; default "limit".
    attention_each_stage
        Whether every stage must hold a layer with KV that grows (some serving systems size their pages by it).
    """
    model, cost, stages = instance.model, instance.stage_cost, instance.pipeline.stages
    placed = [fastest_die(instance)] * stages if dies is None else list(dies)
    example = {kind: model.layer_kinds.index(kind) for kind in model.kinds if kind in model.layer_kinds}
    tokens = shape[0] if kv_tokens is None else min(kv_tokens, shape[0])
    each = {kind: _chunk_seconds(instance, placed, example[kind], size, shape, chunk_tokens) for kind in example}
    held = {kind: size * float(kv_held_bytes(model, kind, tokens, min(chunk_tokens, tokens))) for kind in example}
    weights = {kind: layer_weight_bytes(model, kind) for kind in example}
    workspace = {kind: cost.workspace_bytes(at, at + 1, size, chunk_tokens) for kind, at in example.items()}
    extra_s = np.zeros(stages)
    if isinstance(instance.costs, RooflineSpec):
        chunks = len(_chunk_starts(shape, chunk_tokens))
        extra_s += [chunks * die.chunk_overhead_s for die in placed]
        extra_s[-1] += cost.head_seconds(placed[-1], size)
    kinds = model.layer_kinds
    layer_s = np.array([each[kind] for kind in kinds]).T
    unit_s = _unit(float(max(layer_s.max(), extra_s.max())))
    return stated(
        np.round(layer_s / unit_s) * unit_s,
        stages,
        extra_s=np.round(extra_s / unit_s) * unit_s,
        weight_bytes=[weights[kind] for kind in kinds],
        # All tokens as one: a window's KV does not grow with them.
        kv_bytes_per_token=[held[kind] for kind in kinds],
        held_tokens=1,
        workspace_bytes=[workspace[kind] for kind in kinds],
        extra_bytes=_table_bytes(instance),
        capacity_bytes=[die.hbm_bytes for die in placed],
        memory=memory,
        forbidden_cuts=instance.pipeline.forbidden_cuts,
        needed=[not isinstance(model.kinds[kind].attention, LinearAttention) for kind in kinds]
        if attention_each_stage
        else None,
    )


def _unit(largest_s: float) -> float:
    """A billionth of the largest time or so, a power of two: sums of multiples are exact, equal stages equal."""
    return float(2.0 ** (np.frexp(largest_s)[1] - 30)) if largest_s > 0 else 1.0


def _chunk_starts(shape: Shape, chunk_tokens: int) -> Amounts:
    return np.arange(0, shape[0] - shape[1], chunk_tokens, dtype=np.float64)


def _chunk_seconds(
    instance: Instance, dies: Sequence[Die], layer: int, size: int, shape: Shape, chunk_tokens: int
) -> list[float]:
    """Seconds of one layer over all chunks, on the die of each stage."""
    starts = _chunk_starts(shape, chunk_tokens)
    chunks = np.minimum(chunk_tokens, shape[0] - shape[1] - starts)
    overhead = isinstance(instance.costs, RooflineSpec)
    seconds: dict[Die, float] = {}
    for die in dies:
        if die not in seconds:
            alone = instance.stage_cost.stage_seconds(
                die, layer, layer + 1, size, chunks, shape[1] + starts, outside=0.0
            )
            seconds[die] = float(alone.sum()) - overhead * len(starts) * die.chunk_overhead_s
    return [seconds[die] for die in dies]


def _table_bytes(instance: Instance) -> Amounts:
    """Embedding on the first stage, head and final norm on the last one; tied ones once where that is the same."""
    cost, model, stages = instance.stage_cost, instance.model, instance.pipeline.stages
    extra = np.zeros(stages)
    bare = cost.weight_bytes(0, 1, embedding=False, head=False)
    if stages == 1:
        extra[0] = cost.weight_bytes(0, 1, embedding=True, head=True) - bare
    else:
        extra[0] = cost.weight_bytes(0, 1, embedding=True, head=False) - bare
        last = model.layer_count - 1
        plain = cost.weight_bytes(last, last + 1, embedding=False, head=False)
        extra[-1] = cost.weight_bytes(last, last + 1, embedding=False, head=True) - plain
    return extra
