"""Every plan of a tiny instance, and its neighbours: what bounds and claims are held against."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, combinations, pairwise, permutations, product

import numpy as np

from instances.instance import Instance
from instances.plan import Plan, SpillRow
from solver.evaluate import Evaluator

Placement = tuple[tuple[int, int], ...]


def every_plan(instance: Instance, *, spill: bool = False) -> Iterator[Plan]:
    """All batches, layer splits, placements and cuts; with ``spill`` also whole chunks at every creditor."""
    counts = instance.workload.uncached_counts
    chunks = [
        dict(zip(map(str, counts), lists, strict=True))
        for lists in product(*(cut_lists(instance, count) for count in counts))
    ]
    for batch, split, placement, sizes in product(batches(instance), splits(instance), placements(instance), chunks):
        plan = Plan(instance=instance.fingerprint, batch=batch, layers=split, placement=placement, chunks=sizes)
        if not spill:
            yield plan
        else:
            yield from (plan.model_copy(update={"spill": rows}) for rows in spills(instance, plan))


def batches(instance: Instance) -> range:
    """Batches that differ in effect."""
    return range(1, min(instance.pipeline.max_batch, len(instance.workload.all_requests())) + 1)


def splits(instance: Instance) -> list[tuple[int, ...]]:
    """The layer split, or all of them where it is free."""
    if instance.fixed_layers is not None:
        return [instance.fixed_layers]
    layers, stages = instance.model.layer_count, instance.pipeline.stages
    inner = [cut for cut in range(1, layers) if cut not in instance.pipeline.forbidden_cuts]
    return [_sizes((*ends, layers)) for ends in combinations(inner, stages - 1)]


def placements(instance: Instance) -> list[Placement]:
    """All ways to put the stages on enabled dies."""
    return list(permutations(instance.hardware.live_dies, instance.pipeline.stages))


def cut_lists(instance: Instance, uncached: int) -> list[tuple[int, ...]]:
    """All chunk lists of a request: multiples of the quantum, the rest last."""
    inner = range(instance.pipeline.chunk_quantum, uncached, instance.pipeline.chunk_quantum)
    most = min(instance.pipeline.max_chunks - 1, len(inner))
    return [_sizes((*ends, uncached)) for count in range(most + 1) for ends in combinations(inner, count)]


def spills(instance: Instance, plan: Plan) -> Iterator[tuple[SpillRow, ...]]:
    """Each chunk but the last stays at home or goes to one creditor as a whole."""
    shapes, stages = instance.workload.shapes, len(plan.layers)
    places, options = [], []
    for shape, (stage, stop) in product(shapes, enumerate(accumulate(plan.layers))):
        sizes = plan.chunk_sizes(shape[0] - shape[1])
        if instance.stage_cost.spillable_bytes_per_token(stop - plan.layers[stage], stop):
            for chunk in range(len(sizes) - 1):
                others: list[int | str | None] = [None, *(k for k in range(stages) if k != stage)]
                places.append((stage, chunk, sizes[chunk], shape if len(shapes) > 1 else None))
                options.append([*others, "host"] if instance.hardware.host is not None else others)
    for chosen in product(*options):
        yield tuple(
            SpillRow.model_validate({"stage": s, "chunk": i, "creditor": k, "tokens": tokens, "shape": shape})
            for (s, i, tokens, shape), k in zip(places, chosen, strict=True)
            if k is not None
        )


def neighbours(instance: Instance, plan: Plan) -> Iterator[Plan]:
    """Plans that differ in one boundary, the batch, the split or one placed stage.

    Spill goes with its chunks where there are as many as before, and is dropped else.
    """
    quantum = instance.pipeline.chunk_quantum
    for key, sizes in plan.chunks.items():
        ends = set(accumulate(sizes))
        for end in range(quantum, int(key), quantum):
            changed = _sizes(tuple(sorted(ends ^ {end})))
            if len(changed) <= instance.pipeline.max_chunks:
                yield plan.model_copy(update={"chunks": {**plan.chunks, key: changed}, "spill": ()})
            for other in (end - quantum, end + quantum):
                if end in ends and other not in ends and 0 < other < int(key):
                    moved = _sizes(tuple(sorted(ends ^ {end, other})))
                    spill = tuple(_fitted(instance, plan, row, key, moved) for row in plan.spill)
                    yield plan.model_copy(update={"chunks": {**plan.chunks, key: moved}, "spill": spill})
    for batch in batches(instance):
        if batch != plan.batch:
            yield plan.model_copy(update={"batch": batch})
    for stage, die in product(range(len(plan.layers)), instance.hardware.live_dies):
        old = plan.placement[stage]
        swapped = tuple({old: die, die: old}.get(other, other) for other in plan.placement)
        if die != old:
            yield plan.model_copy(update={"placement": swapped})
    if instance.fixed_layers is None:
        yield from _moved_layers(instance, plan)


def descend(
    evaluator: Evaluator, plan: Plan, bound_s: dict[int, float | None], replays: int
) -> Iterator[tuple[Plan, float]]:
    """Local search that minimises value - bound of the plan's batch; every plan that runs is handed out."""
    best: float | None = None
    queue, rng = [plan], np.random.default_rng(0)
    while queue and replays > 0:
        # In any order: neighbours of one kind may all fail to run.
        here, replays = queue.pop(int(rng.integers(len(queue)))), replays - 1
        value = evaluator.value(here)
        if value is None:
            continue
        yield here, value
        bound = bound_s[here.batch]
        slack = value - (0.0 if bound is None else bound)
        if best is None or slack < best:
            best, queue = slack, list(neighbours(evaluator.instance, here))


def _moved_layers(instance: Instance, plan: Plan) -> Iterator[Plan]:
    """Plans with some layers of one stage given to another, where that keeps the rules."""
    forbidden = set(instance.pipeline.forbidden_cuts)
    for giver, taker in permutations(range(len(plan.layers)), 2):
        for count in range(1, plan.layers[giver]):
            split = list(plan.layers)
            split[giver] -= count
            split[taker] += count
            if forbidden.isdisjoint(accumulate(split[:-1])):
                yield plan.model_copy(update={"layers": tuple(split), "spill": ()})


def _fitted(instance: Instance, plan: Plan, row: SpillRow, key: str, moved: tuple[int, ...]) -> SpillRow:
    """The row with its share of a chunk that may have another size now."""
    shape = row.shape or instance.workload.shapes[0]
    if str(shape[0] - shape[1]) != key:
        return row
    return row.model_copy(update={"tokens": row.tokens * moved[row.chunk] // plan.chunks[key][row.chunk]})


def _sizes(ends: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in pairwise((0, *ends)))
