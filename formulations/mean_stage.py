"""Work of the average stage where the layer split is free: a bound on that of the slowest stage (see ``bounds``).

For every stage s the completion is at least a path that stays at s, so for weights lambda_d >= 0 of the dies

    completion * sum_s lambda_d(s)  >=  sum_s lambda_d(s) * (work of stage s on its die).

On the right every layer stands once, on some die: at least sum_l min_d lambda_d t_d(l). On the left the sum is at most
that of the N largest weights. Dies alike have equal weights, which gives the whole model's time shared equally. A slow
die gets less weight, as much as its speed: so a die of half the speed counts as half a die.
"""

from __future__ import annotations

import numpy as np

from formulations.tables import StageTables, Table, fastest_die
from instances.costs import RooflineSpec
from instances.hardware import Die
from instances.workload import Shape


def mean_work(tables: StageTables, size: int, shape: Shape) -> tuple[Table, bool]:
    """Seconds of each chunk (n+1, n+1), and whether dies differ: then transfers are not in the mean of paths."""
    instance, die = tables.instance, fastest_die(tables.instance)
    stages, layers = instance.pipeline.stages, instance.model.layer_count
    # Fitted and measured costs do not depend on the die; they have the overheads in them, and share them like the rest.
    roofline = isinstance(instance.costs, RooflineSpec)
    dies = list(dict.fromkeys(_rates(instance.hardware.die_at(at)) for at in instance.hardware.live_dies))
    if roofline and len(dies) > 1:
        return _weighted(tables, size, shape, dies), True
    overhead = die.chunk_overhead_s if roofline else 0.0
    whole = tables.stage(die, 0, layers, size, shape, head=True)
    return (whole - overhead) / stages + overhead, False


def _weighted(tables: StageTables, size: int, shape: Shape, dies: list[Die]) -> Table:
    instance = tables.instance
    model, cost, stages = instance.model, instance.stage_cost, instance.pipeline.stages
    weight = _speeds(tables, size, shape, dies)
    largest = sorted((weight[_rates(instance.hardware.die_at(at))] for at in instance.hardware.live_dies), reverse=True)
    total = np.zeros((tables.grid(shape).quanta + 1,) * 2)
    for kind, count in model.kind_counts(0, model.layer_count).items():
        at = model.layer_kinds.index(kind)
        each = [
            weight[die] * (tables.stage(die, at, at + 1, size, shape, head=False) - die.chunk_overhead_s)
            for die in dies
        ]
        total += count * np.minimum.reduce(each)
    total += stages * min(weight[die] * die.chunk_overhead_s for die in dies)
    total[:-1, -1] += min(weight[die] * cost.head_seconds(die, size) for die in dies)
    return total / sum(largest[:stages])


def _rates(die: Die) -> Die:
    """What a die has but its memory, which takes no time."""
    return die.model_copy(update={"hbm_bytes": 1.0})


def _speeds(tables: StageTables, size: int, shape: Shape, dies: list[Die]) -> dict[Die, float]:
    """Speed of each die on the whole request in one chunk, relative to the fastest."""
    instance, (tokens, cached) = tables.instance, shape
    layers = instance.model.layer_count
    seconds = [float(instance.stage_cost.stage_seconds(die, 0, layers, size, tokens - cached, cached)) for die in dies]
    return {die: min(seconds) / own for die, own in zip(dies, seconds, strict=True)}
