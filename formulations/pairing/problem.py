"""The pairing problem on plain arrays: stages, what each holds at each slot, and the sizes of the groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from instances.errors import InputError

Amounts = npt.NDArray[np.float64]
Group = tuple[int, ...]
"""Stages that share their memories, in order."""

MOST_GROUPS = 200_000
"""Groups that may be listed: all pairs of 632 stages, all fours of 46."""


@dataclass(frozen=True)
class PairingProblem:
    """N stages to be put into groups whose members share their memories evenly.

    What is asked for: first the lowest peak of the worst group, a group's peak being the largest share of its memory in
    use at any slot; second, among those groupings, the least traffic.

    Attributes
    ----------
    occupancy
        (N, T): what each stage keeps at each slot, in chunks, tokens or bytes.
    capacity
        (N,): memory of each stage's die in the same unit; 1 where none is stated, so that a peak is the mean amount per
        stage.
    hops
        (N, N): hops from die to die.
    sizes
        Sizes of the groups, the larger first; their sum is N.
    """

    occupancy: Amounts
    capacity: Amounts
    hops: npt.NDArray[np.int64]
    sizes: tuple[int, ...]

    @property
    def stages(self) -> int:
        """N."""
        return len(self.occupancy)

    def peak(self, group: Group) -> float:
        """Largest share of a group's memory in use at any slot."""
        members = list(group)
        return float(self.occupancy[members].sum(axis=0).max() / self.capacity[members].sum())

    def traffic(self, group: Group) -> float:
        """Amount times hops, over all slots, that lies with other members.

        Members share evenly: each keeps an equal part of what every other one has, so that between two of them the
        difference of what they have, over the number of members, lies with the one that has less.
        """
        return sum(float(self._exchange[i, j]) for i, j in combinations(group, 2)) / len(group)

    def value(self, groups: Sequence[Group]) -> tuple[float, float]:
        """Peak of the worst group, and traffic of all."""
        return max(self.peak(group) for group in groups), sum(self.traffic(group) for group in groups)

    def violations(self, groups: Sequence[Group]) -> list[str]:
        """What is wrong with a grouping; empty if nothing is."""
        members = sorted(stage for group in groups for stage in group)
        wrong = []
        if members != list(range(self.stages)):
            wrong.append(f"stage_in_one_group: the groups hold the stages {members}, not each of {self.stages} once")
        if sorted((len(group) for group in groups), reverse=True) != list(self.sizes):
            wrong.append(f"group_sizes: the groups are to have the sizes {list(self.sizes)}")
        return wrong

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every group that has one of the sizes."""
        return tuple(group for size in sorted(set(self.sizes)) for group in combinations(range(self.stages), size))

    @cached_property
    def _exchange(self) -> Amounts:
        """(N, N): hops, both ways on average, times the difference of what two stages have, over all slots."""
        apart = np.abs(self.occupancy[:, None, :] - self.occupancy[None, :, :]).sum(axis=2)
        exchange: Amounts = apart * (self.hops + self.hops.T) / 2
        return exchange


def stated(
    occupancy: npt.ArrayLike,
    size: int | Sequence[int],
    *,
    capacity: npt.ArrayLike = 1.0,
    hops: npt.ArrayLike = 1,
) -> PairingProblem:
    """Check the parts of a problem; see `PairingProblem`.

    Parameters
    ----------
    size
        Most members of a group, N for all stages together: as few groups as that allows, of sizes that differ by one at
        most. Or the sizes of all groups.
    capacity
        One number > 0, or one a stage.
    hops
        One number, or whole numbers (N, N); the diagonal is not read.

    Raises
    ------
    InputError
        For shapes and numbers that do not fit, and for more groups than can be listed.
    """
    amounts = np.asarray(occupancy, dtype=np.float64)
    if amounts.ndim != 2 or not amounts.size:
        raise InputError("occupancy", amounts.shape, "an array (stages, slots)")
    if not (np.isfinite(amounts).all() and (amounts >= 0).all()):
        raise InputError("occupancy", float(amounts.min()), "finite amounts >= 0")
    stages = len(amounts)
    sizes = _sizes(size, stages)
    listed = sum(comb(stages, members) for members in set(sizes))
    if listed > MOST_GROUPS:
        raise InputError("size", size, f"sizes with at most {MOST_GROUPS} different groups, not {listed}")
    memory = np.broadcast_to(np.asarray(capacity, dtype=np.float64), (stages,)).copy()
    if not (np.isfinite(memory).all() and (memory > 0).all()):
        raise InputError("capacity", memory.tolist(), "finite amounts > 0")
    distance = np.broadcast_to(np.asarray(hops), (stages, stages))
    if not (np.issubdtype(distance.dtype, np.integer) and (distance >= 0).all()):
        raise InputError("hops", distance.dtype.name, "whole numbers >= 0 between the dies of the stages")
    return PairingProblem(amounts, memory, distance.astype(np.int64), sizes)


def lockstep_occupancy(stages: int, chunks: int) -> Amounts:
    """Chunks that each stage keeps at each slot, (N, M), for M equal chunks, waves back to back and no spill.

    Stage i starts one slot after stage i-1 and frees a wave with its last chunk: ((slot - i) mod M) + 1.
    """
    slots, stage = np.arange(chunks)[None, :], np.arange(stages)[:, None]
    kept: Amounts = ((slots - stage) % chunks + 1).astype(np.float64)
    return kept


def cross_half(stages: int) -> list[Group]:
    """Pairs (i, i + N/2), N even."""
    return [(i, i + stages // 2) for i in range(stages // 2)]


def head_to_tail(stages: int) -> list[Group]:
    """Pairs (i, N-1-i), N even."""
    return [(i, stages - 1 - i) for i in range(stages // 2)]


def _sizes(size: int | Sequence[int], stages: int) -> tuple[int, ...]:
    if isinstance(size, int):
        if not 1 <= size <= stages:
            raise InputError("size", size, f"between 1 and the number of stages, {stages}")
        groups = -(-stages // size)
        small, larger = divmod(stages, groups)
        return (small + 1,) * larger + (small,) * (groups - larger)
    sizes = tuple(sorted((int(members) for members in size), reverse=True))
    if not sizes or sizes[-1] < 1 or sum(sizes) != stages:
        raise InputError("size", list(sizes), f"sizes of at least 1 with the sum {stages}")
    return sizes
