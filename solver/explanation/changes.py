"""The smallest change of one field with which a plan is found: proofs from below, plans from above."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from instances.instance import Instance
from solver.explanation.fields import Field
from solver.explanation.probe import find_plan_of_changed
from solver.explanation.result import Change
from solver.limits import Deadline
from solver.result import Result

MOST_SCANNED = 64
"""Values that are looked at one by one where they are not nested."""
FURTHEST = 3.0
"""How far away from the first value that is not ruled out a plan is looked for, relative to that value."""
NEAREST = 0.01
"""What counts as near to it."""
HALVINGS = 7
"""Plans looked for between a value with a plan and one without."""
PROBES = 3
"""Values that are not nested are each tried, at most so many."""
LEAST_S = 0.5
"""Seconds below which a search is not worth a start."""
FIRST_SHARE, FAR_SHARE, SHARE = 0.3, 0.5, 0.25
"""Shares of the time left for the first value, for one far away from it, and for each other one."""

TIME_WAS_UP = "time was up before a plan was found"

Clashes = Callable[[Instance], bool]


def first_possible(field: Field, clashes: Clashes, deadline: Deadline) -> int | str:
    """Index of the first value that no proof rules out, or why there is none."""
    last = len(field.values) - 1
    if last < 0:
        return "no other value"
    if not field.nested:
        for index in range(min(last + 1, MOST_SCANNED)):
            if deadline.over:
                return TIME_WAS_UP
            if not clashes(field.apply(field.values[index])):
                return index
        return (
            "the rules clash whatever its value" if last < MOST_SCANNED else "the rules clash for the values looked at"
        )
    if clashes(field.apply(field.values[last])):
        return "the rules clash whatever its value"
    low, high = 0, last
    while low < high:
        if deadline.over:
            return TIME_WAS_UP
        middle = (low + high) // 2
        low, high = (middle + 1, high) if clashes(field.apply(field.values[middle])) else (low, middle)
    return low


@dataclass
class ChangeSearch:
    """Looks for the smallest change of a field.

    Attributes
    ----------
    proved
        Whether it is proved that the instance as it is has no plan.
    clock
        Time for this field.
    """

    proved: bool
    clock: Deadline

    def smallest(self, field: Field, first: int) -> Change | str:
        """A change with which a plan was found, or why none was; ``first`` is the first value that is not ruled out."""
        # Beside a value for which no plan was found, though there may be one, the next one is hardly worth a search.
        hopeful = self.proved or first > 0 or not field.nested or len(field.values) == 1
        found = self._plan(field, first, FIRST_SHARE) if hopeful else None
        if found is not None:
            return self._change(field, first, first, found)
        return self._nested(field, first) if field.nested else self._in_turn(field, first)

    def _nested(self, field: Field, first: int) -> Change | str:
        """From far away, where a plan is soon found, towards the first value."""
        reach = self._reach(field, first)
        last, failed = len(field.values) - 1, first
        good = min(last, first + max(1, math.ceil(FURTHEST * reach)))
        found = self._plan(field, good, FAR_SHARE) if good > first else None
        if found is None and last > good:
            good, found = last, self._plan(field, last, FAR_SHARE)
        if found is None:
            return self._none_up_to(field, last)
        for _ in range(HALVINGS):
            if good - failed < 2 or not self._has_time:
                break
            near = max(failed - first, 1, NEAREST * reach)
            far = good - first
            middle = first + round(math.sqrt(near * far) if far > 4 * near else (failed - first + far) / 2)
            middle = min(max(middle, failed + 1), good - 1)
            better = self._plan(field, middle, SHARE)
            failed, good, found = (middle, good, found) if better is None else (failed, middle, better)
        return self._change(field, first, good, found)

    def _in_turn(self, field: Field, first: int) -> Change | str:
        last = min(first + PROBES, len(field.values) - 1)
        for index in range(first + 1, last + 1):
            found = self._plan(field, index, SHARE)
            if found is not None:
                return self._change(field, first, index, found)
        return self._none_up_to(field, last)

    def _none_up_to(self, field: Field, last: int) -> str:
        if not self._has_time:
            return TIME_WAS_UP
        within = "" if self.clock.time_s is None else ", in its share of the time"
        return f"no plan was found up to {field.shown(field.values[last])}{within}"

    @property
    def _has_time(self) -> bool:
        left = self.clock.left_s
        return left is None or left >= LEAST_S

    def _reach(self, field: Field, first: int) -> float:
        """Steps that make a value differ by as much as it is."""
        if field.reach is not None:
            return field.reach
        base = field.values[first]
        return abs(base) / field.step if field.step and isinstance(base, int | float) else len(field.values) / FURTHEST

    def _plan(self, field: Field, index: int, share: float) -> Result | None:
        if not self._has_time:
            return None
        left = self.clock.left_s
        time_s = None if left is None else max(LEAST_S, share * left)
        return find_plan_of_changed(field.apply(field.values[index]), time_s)

    def _change(self, field: Field, first: int, good: int, found: Result) -> Change:
        ruled_out = field.before if self.proved else None
        if first > 0 and field.nested:
            ruled_out = field.shown(field.values[first - 1])
        minimal = good == first and field.complete and (first > 0 or self.proved)
        assert found.objective.value is not None
        value = field.shown(field.values[good])
        if minimal:
            says = "a plan replays, and none exists for a smaller change"
        elif ruled_out is not None:
            says = f"a plan replays; none exists with {ruled_out}, between the two nothing is proved"
        else:
            says = "a plan replays; nothing is proved of smaller changes"
        says = f"{says} ({field.note})" if field.note else says
        return Change(
            field=field.name,
            before=field.before,
            to=value,
            unit=field.unit,
            step=field.step,
            proved_minimal=minimal,
            no_plan_at=ruled_out,
            value=found.objective.value,
            says=says,
        )
