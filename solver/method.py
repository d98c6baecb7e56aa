"""What a method is: a name, a function, and knobs that are read and checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from formulations.scope import EVERY_SCHEDULE, PLAIN
from instances.errors import InputError
from instances.plan import Plan, Schedule
from solver.search import Search


@dataclass(frozen=True)
class Knob:
    """A parameter of a method: its default decides the type, ``choices`` or ``least`` what is allowed."""

    default: int | float | str
    says: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    def read(self, name: str, value: object) -> int | float | str:
        """Read a value given as text or as a number."""
        if self.choices:
            if value not in self.choices:
                raise InputError(name, value, f"one of {', '.join(self.choices)}")
            return str(value)
        whole = isinstance(self.default, int)
        try:
            number = _number(value, whole)
        except ValueError:
            raise InputError(name, value, "a whole number" if whole else "a finite number") from None
        if self.least is not None and number < self.least:
            raise InputError(name, value, f"a number of at least {self.least:g}")
        if self.most is not None and number > self.most:
            raise InputError(name, value, f"a number of at most {self.most:g}")
        return number


def _number(value: object, whole: bool) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    number = float(value)
    if not math.isfinite(number) or (whole and number != int(number)):
        raise ValueError
    return int(number) if whole else number


@dataclass(frozen=True)
class Method:
    """A way to find plans.

    ``run`` offers plans to the search and may return the plan that is its answer; None means the best one offered.
    ``schedules`` are those of its plans, and what its bound speaks about.
    One that ``serves`` answers with a program in place of a plan; no bound speaks about it.
    """

    name: str
    says: str
    run: Callable[[Search], Plan | None]
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    schedules: tuple[Schedule, ...] = PLAIN
    serves: bool = False

    def covers(self, settings: Mapping[str, Any]) -> tuple[Schedule, ...]:
        """The schedules among which a run with these knobs looks for plans."""
        return EVERY_SCHEDULE if settings.get("schedules") == "all" else self.schedules

    def settings(self, given: Mapping[str, object] = MappingProxyType({})) -> dict[str, Any]:
        """All knobs, the given ones read and checked."""
        for name in given:
            if name not in self.knobs:
                known = ", ".join(self.knobs) or "none"
                raise InputError(f"knob {name}", given[name], f"a knob of method {self.name}: {known}")
        return {
            name: knob.read(f"knob {name}", given[name]) if name in given else knob.default
            for name, knob in self.knobs.items()
        }
