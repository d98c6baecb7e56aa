"""Which chunks memory admits at all: necessary conditions that hold for every placement, spill and timing."""

from __future__ import annotations

from itertools import accumulate

from formulations.tables import fastest_die
from instances.instance import Instance
from instances.workload import Shape


def admissible_chunk_tokens(instance: Instance, size: int, shape: Shape) -> tuple[int, str | None]:
    """Most tokens that a chunk may have in any plan that runs, for waves of ``size`` requests.

    Two necessary conditions, both from ``memory_admission``: a die must hold its weights, the workspace of the largest
    chunk and that chunk's own KV (and the cached prefix with the first); and when a stage starts its last chunk of a
    wave, all KV of that wave and stage lies somewhere in the memories of the dies in use or at the stage's host.

    Returns
    -------
    int, str or None
        The limit, and a reason instead if no chunk fits. With a free layer split every stage has at least one layer,
        which is all that is used.
    """
    cost, layers = instance.stage_cost, instance.model.layer_count
    die, stages = fastest_die(instance), instance.pipeline.stages
    uncached = shape[0] - shape[1]
    split = instance.fixed_layers
    if split is None:
        parts = [(layer, layer + 1) for layer in range(layers)]
        total_weights = cost.weight_bytes(0, layers, embedding=True, head=True)
    else:
        parts = [(stop - count, stop) for stop, count in zip(accumulate(split), split, strict=True)]
        total_weights = sum(cost.weight_bytes(*part, embedding=part[0] == 0, head=part[1] == layers) for part in parts)
    limit = uncached
    host = instance.hardware.host
    for start, stop in parts:
        embedding, head = (start == 0, stop == layers) if split is not None else (False, False)
        weights = cost.weight_bytes(start, stop, embedding=embedding, head=head)
        per_token = cost.workspace_bytes(start, stop, size, 1)
        kv_per_token = size * cost.spillable_bytes_per_token(start, stop)
        free = die.hbm_bytes - weights
        limit = min(limit, _whole(free, per_token + kv_per_token))
        if limit < min(uncached, instance.pipeline.chunk_quantum):
            need = weights + (per_token + kv_per_token) * min(uncached, instance.pipeline.chunk_quantum)
            where = f"layers {start}..{stop - 1}"
            return 0, f"capacity_at_rest: {where} need {need:.4g} bytes on a die of {die.hbm_bytes:.4g} at batch {size}"
        everywhere = stages * die.hbm_bytes - total_weights + (0.0 if host is None else host.host_bytes)
        wave_kv = kv_per_token * shape[0]
        # Workspace of the largest chunk on every die in use, at least the narrowest one's.
        spare = everywhere - wave_kv
        limit = min(limit, _whole(spare, stages * min(cost.workspace_bytes(a, b, size, 1) for a, b in parts)))
        if limit < min(uncached, instance.pipeline.chunk_quantum):
            reason = (
                f"memory_admission: the KV of one wave of layers {start}..{stop - 1} is {wave_kv:.4g} bytes at batch"
            )
            return 0, f"{reason} {size}, and all dies in use have {everywhere:.4g} free"
    return limit, None


def _whole(amount: float, each: float) -> int:
    # A chunk that fits exactly must not be lost to the rounding of the division; the condition is only necessary.
    return max(0, int(amount / each * (1 + 1e-12))) if each else 2**62
