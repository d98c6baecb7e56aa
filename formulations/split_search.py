"""The least bound over all layer splits, from bounds of cases (see ``free_split``).

**Why no split can be below B.** Say that a level y is shut for a width where every case (f, r) of y with that width has
a bound of at least B, and let width(y) be the largest width for which it is not shut, 0 if there is none. In a split
whose bound is below B the stages of weight >= y lie among width(y) consecutive ones, so they are at most so many, and
no stage weighs as much as a level of width 0. So for any levels y_1 < y_2 < ... and steps d_j > 0

    sum over stages of h(weight of the stage) <= sum_j d_j*width(y_j),       h(x) = sum of d_j over the levels y_j <= x.

A dynamic program over (stage, first layer) finds the least left side over all splits that keep the cuts allowed; if it
is larger than the right side, B is a bound. The cases themselves assume that no stage weighs more than some cap, and a
split with a heavier stage is bounded by that stage alone: the result is the smaller of the two, for the best cap.

The search is lazy: cases begin with the bound of one stage of weight y, then get an interpolated one, and those that
decide B a thorough one of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formulations.free_split import SplitCase

Amounts = npt.NDArray[np.float64]
Evaluate = Callable[[SplitCase, bool], float]
"""Bound of a case, and whether it may take its time."""

LARGEST_WORK = 20_000_000
"""Layers times part lengths above which nothing is tried: models of many thousand layers on few stages."""
MOST_CASES = 80
"""Thorough bounds at most; each is a few chunk problems."""
NEAR = 1.02
"""Levels closer than this are treated as the lower one."""
CLOSE = 1e-7
"""Relative difference of bounds that is not worth another case."""


class Parts:
    """Consecutive layers that may be a stage, by weight.

    Parameters
    ----------
    weights
        (L,), multiples of one unit, so that sums are exact.
    stages
        N.
    may_be_stage
        Of (start, stop): whether these layers may be one; called for arrays of starts and one length at a time.
    """

    def __init__(
        self,
        weights: Amounts,
        stages: int,
        may_be_stage: Callable[[npt.NDArray[np.int64], int], npt.NDArray[np.bool_]],
    ) -> None:
        self.stages, self.layers = stages, len(weights)
        self.total = float(weights.sum())
        before = np.concatenate([[0.0], np.cumsum(weights)])
        # Heavier parts than this are never worth it; what holds for one that heavy holds for them.
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
        """Least sum over the stages of the steps (y, d) up to their weight, none above the cap; inf if there is none."""
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


@dataclass
class _Level:
    """Cases of one threshold: bounds by (f, r), inf where there is no such split, and which are final."""

    weight: float
    lighter: float
    bounds: Amounts
    final: npt.NDArray[np.bool_]

    def width(self, below: float) -> int:
        """Largest width of a case with a smaller bound."""
        stages = len(self.bounds)
        front, back = np.nonzero(self.bounds < below)
        return int((stages - front - back).max(initial=0))


@dataclass
class SplitSearch:
    """One search.

    Attributes
    ----------
    evaluate
        Bound of a case.
    concave
        Whether cases may be interpolated.
    enough
        A bound of at least this need not become better.
    over
        Whether time is up.
    cases
        Thorough bounds computed so far.
    """

    parts: Parts
    evaluate: Evaluate
    concave: bool
    enough: float
    over: Callable[[], bool]
    cases: int = 0
    _alone: dict[int, float] = field(default_factory=dict)
    _known: dict[tuple[SplitCase, bool], float] = field(default_factory=dict)
    _checked: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def run(self) -> float:
        """A bound for all splits; -inf if none was found."""
        parts, best = self.parts, -math.inf
        if not parts.by_length or not len(parts.levels):
            return best
        lowest = parts.least_heaviest()
        if lowest is None:
            return best
        cap = lowest
        while not self.over():
            heavier = self._stay(cap + 1)
            within = self._within(cap, heavier)
            best = max(best, min(heavier, within))
            if within < heavier or best >= self.enough or cap == len(parts.levels) - 1:
                break
            cap = self._next(cap)
        return best

    def _next(self, level: int) -> int:
        """The next level that is not near."""
        levels = self.parts.levels
        following = int(np.searchsorted(levels, levels[level] * NEAR, side="right"))
        return min(max(level + 1, following - 1), len(levels) - 1)

    def _stay(self, level: int) -> float:
        """Bound of all splits with a stage of a level; behind the last level, of one heavier than the limit."""
        if level not in self._alone:
            levels = self.parts.levels
            weight = float(levels[level]) if level < len(levels) else self.parts.limit
            self._alone[level] = self._bound(SplitCase(weight, weight, None, None), thorough=False)
        return self._alone[level]

    def _bound(self, case: SplitCase, *, thorough: bool) -> float:
        if (case, thorough) not in self._known:
            self.cases += thorough
            self._known[case, thorough] = self.evaluate(case, thorough)
        return self._known[case, thorough]

    def _within(self, cap: int, most: float) -> float:
        """Bound, up to ``most``, of the splits without a stage heavier than a level."""
        levels = self.parts.levels
        end = max(0.0, self.parts.total - (self.parts.stages - 1) * float(levels[cap]))
        used: list[_Level] = []
        best = -math.inf
        for level in self._downwards(cap):
            opened = self._opened(level, cap, end)
            if best > -math.inf and self._refined(opened, 0, 0, end) < best:
                break  # this many layers on every stage are no harm, and so fewer are none
            used.append(opened)
            self._interpolate(opened, end)
            best = self._settled(used, cap, end, most)
            if best >= min(most, self.enough) or self.over():
                break
        return best

    def _downwards(self, cap: int) -> list[int]:
        """Levels from a cap down, none near the one before."""
        levels = self.parts.levels
        chosen = [cap]
        for level in range(cap - 1, -1, -1):
            if levels[level] * NEAR < levels[chosen[-1]]:
                chosen.append(level)
        return chosen

    def _opened(self, level: int, cap: int, end: float) -> _Level:
        """A level with the bound of one stage for every case that can be."""
        parts, levels = self.parts, self.parts.levels
        stages, weight = parts.stages, float(levels[level])
        lighter = float(levels[level - 1]) if level else 0.0
        front, back = np.indices((stages, stages))
        outside = front + back
        heaviest = outside * lighter + (stages - outside) * float(levels[cap])
        possible = (outside < stages) & (heaviest >= parts.total) & ((outside == 0) | (end <= lighter))
        bounds = np.where(possible, self._stay(level), np.inf)
        return _Level(weight, lighter, bounds, ~possible)

    def _refined(self, level: _Level, front: int, back: int, end: float) -> float:
        """The thorough bound of one case."""
        case = SplitCase(level.weight, level.lighter, front, back, end)
        if not level.final[front, back]:
            level.bounds[front, back] = max(level.bounds[front, back], self._bound(case, thorough=True))
            level.final[front, back] = True
        return float(level.bounds[front, back])

    def _interpolate(self, level: _Level, end: float) -> None:
        """Raise the cases of a level to the plane through the bounds at three corners."""
        stages, lighter = self.parts.stages, level.lighter
        room = self.parts.total - level.weight
        most = stages - 1 if lighter <= 0 else min(stages - 1, int(room / lighter))
        if not self.concave or most < 1 or end > lighter or self.over():
            return
        corners = [
            self._bound(SplitCase(level.weight, lighter, f, r, end, interpolates=True), thorough=False)
            for f, r in ((0, 0), (most, 0), (0, most))
        ]
        front, back = np.indices((stages, stages))
        plane = corners[0] + (front * (corners[1] - corners[0]) + back * (corners[2] - corners[0])) / most
        inside = front + back <= most
        level.bounds[inside] = np.maximum(level.bounds, plane)[inside]

    def _settled(self, used: list[_Level], cap: int, end: float, most: float) -> float:
        """The largest bound that the levels prove, with thorough bounds for the cases on which it rests."""
        best = self._proved(used, cap, most)
        while best < min(most, self.enough) and self.cases < MOST_CASES and not self.over():
            resting = self._resting(used, best)
            if resting is None:
                break
            self._refined(*resting, end)
            best = max(best, self._proved(used, cap, most))
        return best

    @staticmethod
    def _resting(used: list[_Level], best: float) -> tuple[_Level, int, int] | None:
        """A case without a thorough bound that keeps the result from being better, the widest first."""
        above = best + CLOSE * abs(best)
        open_cases = []
        for level in used:
            width = level.width(above)
            stages = len(level.bounds)
            for front, back in np.argwhere((level.bounds < above) & ~level.final).tolist():
                decides = level.bounds[front, back] >= best or stages - front - back == width
                if decides:
                    open_cases.append((level.bounds[front, back] < best, front + back, level, front, back))
        if not open_cases:
            return None
        return min(open_cases, key=lambda case: case[:2])[2:]

    def _proved(self, used: list[_Level], cap: int, most: float) -> float:
        """The largest of the known bounds, at most ``most``, that no split can be below."""
        known = np.unique(np.concatenate([level.bounds[np.isfinite(level.bounds)] for level in used]))
        candidates = [*known[known < most].tolist(), most]
        low, high = -1, len(candidates) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._holds(used, cap, candidates[middle]):
                low = middle
            else:
                high = middle - 1
        return candidates[low] if low >= 0 else -math.inf

    def _holds(self, used: list[_Level], cap: int, bound: float) -> bool:
        """Whether no split has a smaller bound."""
        parts, levels = self.parts, self.parts.levels
        widths = sorted((level.weight, level.width(bound)) for level in used)
        shut = [weight for weight, width in widths if not width]
        heaviest = float(levels[cap]) if not shut else float(levels[np.searchsorted(levels, min(shut)) - 1])
        if shut and min(shut) <= levels[0]:
            return True
        active = [(weight, width) for weight, width in widths if 0 < width < parts.stages]
        key = (heaviest, *active)
        if key not in self._checked:
            below = [0.0] + [weight for weight, _ in widths]
            steps = [(weight, weight - below[[w for w, _ in widths].index(weight)]) for weight, _ in active]
            allowed = sum(step * width for (_, step), (_, width) in zip(steps, active, strict=True))
            self._checked[key] = parts.least(steps, heaviest) > allowed * (1 + 1e-9)
        return self._checked[key]
