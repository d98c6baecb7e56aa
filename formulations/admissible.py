"""Which chunks memory admits at all: necessary conditions that hold for every placement, spill and timing."""

from __future__ import annotations

from itertools import accumulate

from formulations.tables import fastest_die
from instances.instance import Instance
from instances.workload import Shape


def admissible_chunk_tokens(instance: Instance, size: int, shape: Shape) -> tuple[int, str | None]:
    """Most tokens that a chunk may have in any plan that runs, for waves of ``size`` requests.

    Two necessary conditions, both from ``memory_admission``: a die must hold its weights, the workspace of the largest
    chunk and that chunk's own KV (and the cached prefix with the first), and there must be such a die for every stage;
    and when a stage starts its last chunk of a wave, all KV of that wave and stage lies somewhere in the memories of
    the dies in use or at the stage's host.

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
    limit, least = uncached, min(uncached, instance.pipeline.chunk_quantum)
    host, memories = instance.hardware.host, instance.hardware.largest_memories[:stages]
    # Workspace of the largest chunk on every die in use, at least the narrowest one's.
    workspace = [cost.workspace_bytes(*part, size, 1) for part in parts]
    needs = []
    for (start, stop), per_token in zip(parts, workspace, strict=True):
        embedding, head = (start == 0, stop == layers) if split is not None else (False, False)
        weights = cost.weight_bytes(start, stop, embedding=embedding, head=head)
        kv_per_token = size * cost.spillable_bytes_per_token(start, stop)
        needs.append((weights, per_token + kv_per_token))
        free = die.hbm_bytes - weights
        limit = min(limit, _whole(free, per_token + kv_per_token))
        if limit < least:
            need = weights + (per_token + kv_per_token) * least
            where = f"layers {start}..{stop - 1}"
            return 0, f"capacity_at_rest: {where} need {need:.4g} bytes on a die of {die.hbm_bytes:.4g} at batch {size}"
        everywhere = sum(memories) - total_weights + (0.0 if host is None else host.host_bytes)
        wave_kv = kv_per_token * shape[0]
        spare = everywhere - wave_kv
        limit = min(limit, _whole(spare, stages * min(workspace)))
        if limit < least:
            reason = (
                f"memory_admission: the KV of one wave of layers {start}..{stop - 1} is {wave_kv:.4g} bytes at batch"
            )
            return 0, f"{reason} {size}, and all dies in use have {everywhere:.4g} free"
    if memories[-1] < memories[0]:
        limit = _matched(needs, memories, limit)
        if limit < least:
            return 0, f"capacity_at_rest: {_unmatched(needs, memories, least)} at batch {size}"
    return limit, None


def _matched(needs: list[tuple[float, float]], memories: tuple[float, ...], limit: int) -> int:
    """Most tokens, up to the limit, with which there is a die for every stage; 0 if there is none with a token.

    ``needs`` has bytes, and bytes a token, of the stages, or of all layers where the split is free: then no stage needs
    less than one of its layers.
    """
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if _first_unmatched(needs, memories, middle) is None:
            low = middle
        else:
            high = middle - 1
    return low


def _first_unmatched(
    needs: list[tuple[float, float]], memories: tuple[float, ...], tokens: int
) -> tuple[float, int] | None:
    """Bytes of the first stage, from the least needy, for which no die is left, and how many need as much.

    Dies and stages sorted alike is the best that any assignment can do.
    """
    bytes_of = sorted(weights + per_token * tokens for weights, per_token in needs)[: len(memories)]
    for stage, (need, memory) in enumerate(zip(bytes_of, reversed(memories), strict=True)):
        if need > memory * (1 + 1e-12):
            return need, len(memories) - stage
    return None


def _unmatched(needs: list[tuple[float, float]], memories: tuple[float, ...], tokens: int) -> str:
    found = _first_unmatched(needs, memories, tokens)
    assert found is not None
    need, stages = found
    enough = sum(memory >= need for memory in memories)
    return f"{stages} of the stages need at least {need:.4g} bytes each, which {enough} of the enabled dies have,"


def _whole(amount: float, each: float) -> int:
    # A chunk that fits exactly must not be lost to the rounding of the division; the condition is only necessary.
    return max(0, int(amount / each * (1 + 1e-12))) if each else 2**62
