"""When a search stops: one deadline over everything it does (building, solving, polishing)."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """Limits of one ``solve`` call.

    Parameters
    ----------
    time_s
        Wall-clock limit in seconds; None lets a method run to its own end.
    gap
        Stop once the relative gap between value and bound is at most this.
    workers
        Threads an engine may use.
    deterministic
        Same input, same output: one worker, work limits instead of clocks where an engine offers them, and no shares of
        the time for parts of the work. A run that ends before its time limit then repeats exactly.
    """

    time_s: float | None = 60.0
    gap: float = 1e-4
    workers: int = 1
    deterministic: bool = False

    def start(self) -> Deadline:
        """Start the clock."""
        return Deadline(self.time_s, by_clock=not self.deterministic)


@dataclass
class Deadline:
    """A running clock; asked by everything that may take long.

    ``by_clock``: parts of the work may be cut short by their share of the time. ``cuts``: when something was cut short
    for lack of time, in seconds since the start of its clock; shared with the deadlines of parts.
    """

    time_s: float | None
    by_clock: bool = True
    started: float = field(default_factory=time.monotonic)
    cuts: list[float] = field(default_factory=list, repr=False)

    def restart(self) -> None:
        """Start the clock anew: what went before does not count."""
        self.started = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left_s(self) -> float | None:
        """Seconds left, at least 0; None without a limit."""
        return None if self.time_s is None else max(0.0, self.time_s - self.elapsed_s)

    @property
    def over(self) -> bool:
        """Whether time is up; who asks stops then, so that it counts as cut short."""
        if self.time_s is None or self.elapsed_s < self.time_s:
            return False
        self.cut_short()
        return True

    def cut_short(self) -> None:
        """Note that something ended for lack of time."""
        self.cuts.append(self.elapsed_s)

    def share(self, fraction: float, at_most_s: float) -> float:
        """Seconds for a part of the work: a fraction of what is left, at most so many."""
        if self.left_s is None or not self.by_clock:
            return at_most_s
        return min(at_most_s, fraction * self.left_s)

    def part(self, fraction: float, at_most_s: float) -> Deadline:
        """A deadline for a part of the work: its share of the time, or without shares all that is left."""
        time_s = self.share(fraction, at_most_s) if self.by_clock else self.left_s
        return Deadline(time_s, self.by_clock, cuts=self.cuts)
