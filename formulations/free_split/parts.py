"""Which layers may be a stage, what they weigh, and the split whose stages weigh least by a measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from formulations.tables import fastest_die
from instances.instance import Instance
from instances.parameters import growth_bytes_per_token, layer_weight_bytes
from instances.workload import Shape

Amounts = npt.NDArray[np.float64]
MayBeStage = Callable[[npt.NDArray[np.int64], int], npt.NDArray[np.bool_]]
"""Of an array of starts, and a length: whether the layers from there on, so many, may be a stage."""

LARGEST_WORK = 20_000_000
"""Layers times part lengths above which nothing is tried: models of many thousand layers on few stages."""


class Parts:
    """Consecutive layers that may be a stage, by weight.

    Parameters
    ----------
    weights
        (L,), multiples of one unit, so that sums are exact.
    stages
        N.
    may_be_stage
        See `MayBeStage`.

    Attributes
    ----------
    limit
        A weight that no good split reaches; what holds for stages that heavy holds for heavier ones.
    by_length
        Weight of the parts of 1, 2, ... layers at each start, as long as some are below the limit; +inf where they may
        not be a stage. Empty where there would be too many.
    levels
        All weights of parts up to the limit, smallest first, but 0.
    """

    def __init__(
        self,
        weights: Amounts,
        stages: int,
        may_be_stage: MayBeStage,
    ) -> None:
        self.stages, self.layers = stages, len(weights)
        self.total = float(weights.sum())
        before = np.concatenate([[0.0], np.cumsum(weights)])
        self.limit = max(2.0 * self.total / stages + float(weights.max()), float(weights.max()))
        self.by_length: list[Amounts] = []
        for length in range(1, self.layers - stages + 2):
            starts = np.arange(self.layers - length + 1)
            weight = before[length:] - before[:-length]
            if weight.min() > self.limit:
                break
            if self.layers * length > LARGEST_WORK:
                self.by_length.clear()
                break
            self.by_length.append(np.where(may_be_stage(starts, length), weight, np.inf))
        known = [weight[weight <= self.limit] for weight in self.by_length]
        self.levels: Amounts = np.unique(np.concatenate([*known, [0.0]]))[1:]

    def least(self, steps: Sequence[tuple[float, float]], cap: float) -> float:
        """Least sum over the stages of the steps d of levels y up to their weight, for (y, d) in ``steps``.

        No stage may weigh more than the cap; inf if there is no such split.
        """
        levels = np.array([level for level, _ in steps])
        height = np.concatenate([[0.0], np.cumsum([step for _, step in steps])])
        costs = [
            (length, np.where(weight <= cap, height[np.searchsorted(levels, weight, side="right")], np.inf))
            for length, weight in enumerate(self.by_length, start=1)
            if weight.min() <= cap
        ]
        value = np.full(self.layers + 1, np.inf)
        value[-1] = 0.0
        for _ in range(self.stages):
            better = np.full(self.layers + 1, np.inf)
            for length, cost in costs:
                np.minimum(better[:-length], cost + value[length:], out=better[:-length])
            value = better
        return float(value[0])

    def least_heaviest(self) -> int | None:
        """Index of the smallest level that some split does not exceed; None without one below the limit."""
        low, high = 0, len(self.levels) - 1
        if high < 0 or math.isinf(self.least((), float(self.levels[high]))):
            return None
        while low < high:
            middle = (low + high) // 2
            if math.isinf(self.least((), float(self.levels[middle]))):
                low = middle + 1
            else:
                high = middle
        return low


def may_be_stage(instance: Instance, waves: Iterable[tuple[Shape, int]], most_chunks: int) -> MayBeStage:
    """Parts that keep the cuts allowed and, at rest and beside their largest chunk, fit in the largest memory.

    With at most so many chunks the largest has at least that part of the tokens. It needs workspace on its die, as much
    as the narrowest layer asks for, and takes its own KV there (``capacity_at_rest``, ``memory_admission``).

    Parameters
    ----------
    waves
        (request shape, number of requests) of each kind of wave.
    """
    model, cost, layers = instance.model, instance.stage_cost, instance.model.layer_count
    may_cut = np.array([cut not in instance.pipeline.forbidden_cuts for cut in range(layers + 1)])
    largest = max(size * math.ceil((shape[0] - shape[1]) / most_chunks) for shape, size in waves)
    need = {kind: layer_weight_bytes(model, kind) for kind in model.kinds}
    narrowest = math.inf
    for layer, kind in enumerate(model.layer_kinds):
        narrowest = min(narrowest, cost.workspace_bytes(layer, layer + 1, 1, 1))
        need[kind] = layer_weight_bytes(model, kind) + largest * growth_bytes_per_token(model, layer, layer + 1)
    before = np.concatenate([[0.0], np.cumsum([need[kind] for kind in model.layer_kinds])])
    bare = cost.weight_bytes(0, 1, embedding=False, head=False)
    embedding = cost.weight_bytes(0, 1, embedding=True, head=False) - bare
    head = cost.weight_bytes(0, 1, embedding=False, head=True) - bare
    room = fastest_die(instance).hbm_bytes * (1 + 1e-12) - largest * narrowest

    def allowed(starts: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.bool_]:
        stops = starts + length
        held = before[stops] - before[starts] + np.maximum(embedding * (starts == 0), head * (stops == layers))
        kept: npt.NDArray[np.bool_] = may_cut[starts] & may_cut[stops] & (held <= room)
        return kept

    return allowed
