"""The placement problem on plain arrays: stages, dies, distances and flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from instances.errors import InputError

Hops = npt.NDArray[np.int64]
Flow = tuple[int, int, float]

TICKS = 1_000_000
"""Whole units into which the largest flow weight is divided when weights are not whole numbers."""


@dataclass(frozen=True)
class PlacementProblem:
    """Stages to be placed on different dies so that the sum of weight*hops over all flows is least.

    Attributes
    ----------
    hops
        Shape (D, D), whole numbers >= 0: distance from die to die, live dies only; any metric, need not be symmetric.
    flows
        (source stage, target stage, weight >= 0), merged and free of zeros.
    stages
        N <= D.
    dies_rc
        (row, column) of each die, where the dies lie on a mesh; lets the models measure rows and columns apart.
    pairs
        Partner stages that must lie on dies one hop apart.
    """

    hops: Hops
    flows: tuple[Flow, ...]
    stages: int
    dies_rc: tuple[tuple[int, int], ...] | None
    pairs: tuple[tuple[int, int], ...]

    @property
    def dies(self) -> int:
        """D."""
        return len(self.hops)

    def value(self, placement: Sequence[int]) -> float:
        """Sum of weight*hops of a placement (die of each stage)."""
        return float(sum(weight * int(self.hops[placement[s], placement[t]]) for s, t, weight in self.flows))

    def violations(self, placement: Sequence[int]) -> list[str]:
        """What is wrong with a placement; empty if nothing is."""
        wrong = []
        if len(placement) != self.stages or not all(0 <= die < self.dies for die in placement):
            return [f"placement: {self.stages} dies between 0 and {self.dies - 1} are needed"]
        if len(set(placement)) < self.stages:
            wrong.append("placement: two stages share a die")
        for i, j in self.pairs:
            distance = int(self.hops[placement[i], placement[j]])
            if distance != 1:
                wrong.append(f"pair_adjacent: stages {i} and {j} are {distance} hops apart")
        return wrong

    @cached_property
    def tick(self) -> float:
        """Weight of one unit of the integer models: 1 for whole weights, else the largest weight / TICKS."""
        weights = [weight for *_, weight in self.flows]
        if all(weight.is_integer() and weight <= TICKS for weight in weights):
            return 1.0
        return max(weights) / TICKS

    @cached_property
    def ticks(self) -> tuple[int, ...]:
        """Flow weights in ticks, rounded down: an integer model's bound * tick is then a bound here."""
        return tuple(int(weight / self.tick) for *_, weight in self.flows)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Dies one hop from each die."""
        return tuple(tuple(np.flatnonzero(row == 1).tolist()) for row in self.hops)

    @cached_property
    def mesh_hops(self) -> Hops | None:
        """|row difference| + |column difference| where that never exceeds `hops`, else None."""
        if self.dies_rc is None:
            return None
        cells = np.array(self.dies_rc, dtype=np.int64)
        manhattan: Hops = np.abs(cells[:, None, :] - cells[None, :, :]).sum(axis=2)
        return manhattan if (manhattan <= self.hops).all() else None

    @cached_property
    def detours(self) -> tuple[int, ...]:
        """Dies from which some distance is longer than rows and columns say (all dies off a mesh)."""
        if self.mesh_hops is None:
            return tuple(range(self.dies))
        return tuple(np.flatnonzero((self.hops > self.mesh_hops).any(axis=1)).tolist())


def stated(
    hops: npt.ArrayLike,
    flows: Sequence[Flow],
    stages: int,
    dies_rc: Sequence[tuple[int, int]] | None = None,
    pairs: Sequence[tuple[int, int]] = (),
) -> PlacementProblem:
    """Check and normalise the parts of a problem; see `PlacementProblem`."""
    distances = np.asarray(hops)
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or distances.shape[0] == 0:
        raise InputError("hops.shape", distances.shape, "a square matrix of distances between dies")
    if not (np.issubdtype(distances.dtype, np.integer) and (distances >= 0).all()):
        raise InputError("hops", distances.dtype.name, "whole numbers >= 0 between live dies")
    if not 1 <= stages <= distances.shape[0]:
        raise InputError("stages", stages, f"between 1 and the number of live dies, {distances.shape[0]}")
    if dies_rc is not None and len(dies_rc) != distances.shape[0]:
        raise InputError("dies_rc", len(dies_rc), f"one (row, column) for each of the {distances.shape[0]} dies")
    merged: dict[tuple[int, int], float] = {}
    for source, target, weight in flows:
        _check_stages("flows", (source, target), stages)
        if not (np.isfinite(weight) and weight >= 0):
            raise InputError("flows", weight, "finite weights >= 0")
        merged[source, target] = merged.get((source, target), 0.0) + float(weight)
    for pair in pairs:
        _check_stages("pairs", pair, stages)
    return PlacementProblem(
        hops=distances.astype(np.int64),
        flows=tuple((s, t, weight) for (s, t), weight in sorted(merged.items()) if weight > 0),
        stages=stages,
        dies_rc=None if dies_rc is None else tuple((int(row), int(column)) for row, column in dies_rc),
        pairs=tuple((int(i), int(j)) for i, j in pairs),
    )


def _check_stages(field: str, pair: tuple[int, int], stages: int) -> None:
    if not all(0 <= stage < stages for stage in pair) or pair[0] == pair[1]:
        raise InputError(field, pair, f"two different stages between 0 and {stages - 1}")
