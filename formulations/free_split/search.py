"""The least bound over all layer splits, from bounds of cases (see ``cases``).

**Why no split can be below B.** Say that a level y is shut for a width where every case (f, r) of y with that width has
a bound of at least B, and let width(y) be the largest width for which it is not shut, 0 if there is none. In a split
whose bound is below B the stages of weight >= y lie among width(y) consecutive ones, so they are at most so many, and
no stage weighs as much as a level of width 0. So for any levels y_1 < y_2 < ... and steps d_j > 0

    sum over stages of h(weight of the stage) <= sum_j d_j*width(y_j),       h(x) = sum of d_j over the levels y_j <= x.

A dynamic program finds the least left side over all splits that the cuts and the memories allow (``parts``); if it is
larger than the right side, B is a bound. The cases themselves assume that no stage weighs more than some cap, and a
split with a heavier stage is bounded by that stage alone: the result is the smaller of the two, for the best cap.

The search is lazy: cases begin with the bound of one stage of weight y and an interpolated one; those that decide B get
one of their own, and where stages lie in front a careful one, for which the entering chunk is chosen well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formulations.free_split.cases import SplitCase
from formulations.free_split.parts import Parts

Amounts = npt.NDArray[np.float64]
Evaluate = Callable[[SplitCase, bool], float]
"""Bound of a case, and whether it may take its time."""

MOST_CAREFUL = 12
"""Careful bounds at most; each takes as long as the bound of a fixed split."""
NEAR = 1.02
"""Levels closer than this are treated as the lower one."""
CLOSE = 1e-7
"""Relative difference of bounds that is not worth another case."""


@dataclass
class _Level:
    """Cases of one threshold: bounds by (f, r), inf where there is no such split, and steps that each may still take.

    The steps are a bound of its own, and a careful one.
    """

    weight: float
    lighter: float
    bounds: Amounts
    steps: npt.NDArray[np.int64]

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
    careful
        Careful bounds computed so far.
    """

    parts: Parts
    evaluate: Evaluate
    concave: bool
    enough: float
    over: Callable[[], bool]
    careful: int = 0
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
            self._alone[level] = self._bound(SplitCase(weight, weight, None, None), careful=False)
        return self._alone[level]

    def _bound(self, case: SplitCase, *, careful: bool) -> float:
        if (case, careful) not in self._known:
            self.careful += careful
            self._known[case, careful] = self.evaluate(case, careful)
        return self._known[case, careful]

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
        steps = np.where(possible, np.where(front > 0, 2, 1), 0)
        return _Level(weight, lighter, bounds, steps)

    def _refined(self, level: _Level, front: int, back: int, end: float) -> float:
        """The bound of one case after its next step."""
        if level.steps[front, back]:
            case = SplitCase(level.weight, level.lighter, front, back, end)
            careful = bool(front) and level.steps[front, back] == 1
            level.bounds[front, back] = max(level.bounds[front, back], self._bound(case, careful=careful))
            level.steps[front, back] -= 1
        return float(level.bounds[front, back])

    def _interpolate(self, level: _Level, end: float) -> None:
        """Raise the cases of a level to the plane through the bounds at three corners."""
        stages, lighter = self.parts.stages, level.lighter
        room = self.parts.total - level.weight
        most = stages - 1 if lighter <= 0 else min(stages - 1, int(room / lighter))
        if not self.concave or most < 1 or end > lighter or self.over():
            return
        corners = [
            self._bound(SplitCase(level.weight, lighter, f, r, end, interpolates=True), careful=False)
            for f, r in ((0, 0), (most, 0), (0, most))
        ]
        front, back = np.indices((stages, stages))
        plane = corners[0] + (front * (corners[1] - corners[0]) + back * (corners[2] - corners[0])) / most
        inside = front + back <= most
        level.bounds[inside] = np.maximum(level.bounds, plane)[inside]

    def _settled(self, used: list[_Level], cap: int, end: float, most: float) -> float:
        """The largest bound that the levels prove, with further steps for the cases on which it rests."""
        best = self._proved(used, cap, most)
        while best < min(most, self.enough) and not self.over():
            resting = self._resting(used, best)
            if resting is None:
                break
            self._refined(*resting, end)
            best = max(best, self._proved(used, cap, most))
        return best

    def _resting(self, used: list[_Level], best: float) -> tuple[_Level, int, int] | None:
        """A case that may take a step and keeps the result from being better; quick steps and wide cases first."""
        above = best + CLOSE * abs(best)
        open_cases = []
        for level in used:
            width, stages = level.width(above), len(level.bounds)
            for front, back in np.argwhere((level.bounds < above) & (level.steps > 0)).tolist():
                careful = bool(front) and level.steps[front, back] == 1
                decides = level.bounds[front, back] >= best or stages - front - back == width
                if decides and not (careful and self.careful >= MOST_CAREFUL):
                    rank = (careful, level.bounds[front, back] < best, front + back)
                    open_cases.append((rank, level, front, back))
        return min(open_cases, key=lambda case: case[0])[1:] if open_cases else None

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
