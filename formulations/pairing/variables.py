"""What the two pairing models share: the groups, their peaks by rank, and traffic in whole ticks.

``together[g]``: the stages of group g, and no others, share their memories. Only the order of peaks matters for the
worst group, so the models see ranks: small whole numbers, and exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.pairing.problem import Group, PairingProblem

LARGEST_TICKS = 1_000_000
"""Whole units in the largest traffic of a group, where traffic is not small and whole already."""
SAME_PEAK = 1e-9
"""Relative difference of peaks that is rounding."""


@dataclass(frozen=True)
class PairingTicks:
    """Groups with whole numbers.

    Attributes
    ----------
    groups
        As in the problem.
    rank
        Of each group's peak among all peaks, (G,), the lowest 0.
    peaks
        Peak of each rank.
    traffic
        Of each group in ticks of ``tick``, rounded down, (G,).
    """

    groups: tuple[Group, ...]
    rank: npt.NDArray[np.int64]
    peaks: npt.NDArray[np.float64]
    traffic: npt.NDArray[np.int64]
    tick: float


def in_ticks(problem: PairingProblem) -> PairingTicks:
    """Ranks and ticks of all groups."""
    groups = problem.groups
    peak = np.array([problem.peak(group) for group in groups])
    order = np.argsort(peak, kind="stable")
    ordered = peak[order]
    higher = np.concatenate([[False], ordered[1:] > ordered[:-1] * (1 + SAME_PEAK)])
    rank = np.empty(len(groups), dtype=np.int64)
    rank[order] = np.cumsum(higher)
    peaks = ordered[np.append(np.flatnonzero(higher[1:]), len(groups) - 1)]
    traffic = np.array([problem.traffic(group) for group in groups])
    whole = bool((traffic == np.floor(traffic)).all()) and traffic.max() <= LARGEST_TICKS
    tick = 1.0 if whole or traffic.max() == 0 else float(traffic.max()) / LARGEST_TICKS
    return PairingTicks(groups, rank, peaks, np.floor(traffic / tick).astype(np.int64), tick)


def together_name(group: Group) -> str:
    """Name of the variable "these stages are a group"."""
    return f"together[{','.join(map(str, group))}]"
