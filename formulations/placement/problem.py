"""The placement problem on plain arrays: stages, dies, distances and flows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from formulations.placement.automorphisms import automorphisms
from instances.errors import InputError

Hops = npt.NDArray[np.int64]
Flow = tuple[int, int, float]

TICKS = 1_000_000
"""Whole units into which the largest flow weight is divided where weights have no small common unit."""
MOST_EXACT_TICKS = 10**8
"""Largest weight in common units with which the integer models still work exactly."""


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
        if self.unit is not None:
            return self.weighed(self.ticks_of(placement))
        return float(sum(weight * int(self.hops[placement[s], placement[t]]) for s, t, weight in self.flows))

    def ticks_of(self, placement: Sequence[int]) -> int:
        """Value of a placement in the models' integer objective."""
        return sum(
            ticks * int(self.hops[placement[s], placement[t]])
            for (s, t, _), ticks in zip(self.flows, self.ticks, strict=True)
        )

    def weighed(self, ticks: int) -> float:
        """An integer objective or bound in the flows' own unit; a lower estimate where ticks are rounded."""
        return float(ticks * self.unit) if self.unit is not None else ticks * self.tick

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
    def unit(self) -> Fraction | None:
        """Largest number of which all weights, read as decimals, are whole multiples; None where those get too large.

        With it values, bounds and proofs are exact: 3.672 and 0.25 have the unit 0.002.
        """
        weights = [Fraction(repr(weight)) for *_, weight in self.flows]
        below = math.lcm(*(weight.denominator for weight in weights))
        above = math.gcd(*(weight.numerator * below // weight.denominator for weight in weights))
        unit = Fraction(above, below) if weights else Fraction(1)
        return unit if all(weight <= MOST_EXACT_TICKS * unit for weight in weights) else None

    @cached_property
    def tick(self) -> float:
        """Weight of one unit of the integer models: `unit`, or the largest weight / TICKS where there is none."""
        return max(weight for *_, weight in self.flows) / TICKS if self.unit is None else float(self.unit)

    @cached_property
    def ticks(self) -> tuple[int, ...]:
        """Flow weights in ticks, rounded down: an integer model's bound * tick is then a bound here."""
        if self.unit is not None:
            return tuple(int(Fraction(repr(weight)) / self.unit) for *_, weight in self.flows)
        return tuple(int(weight / self.tick) for *_, weight in self.flows)

    @cached_property
    def symmetric(self) -> bool:
        """True if all distances are the same both ways."""
        return bool((self.hops == self.hops.T).all())

    @cached_property
    def symmetries(self) -> list[list[int]]:
        """Permutations of the dies that keep all distances, the identity first; perhaps not all of them."""
        return automorphisms(self.hops)

    @cached_property
    def tick_matrix(self) -> Hops:
        """Flow weights in ticks, shape (N, N), source by target."""
        matrix = np.zeros((self.stages, self.stages), dtype=np.int64)
        for (s, t, _), ticks in zip(self.flows, self.ticks, strict=True):
            matrix[s, t] = ticks
        return matrix

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


def filled(placement: Sequence[int], dies: int) -> list[int]:
    """A placement whose missing stages (die -1) take the first dies that are left."""
    free = iter(sorted(set(range(dies)) - set(placement)))
    return [next(free) if die < 0 else die for die in placement]


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
