"""A row of a capacity table: what it offers for one length, and when that is enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from instances.instance import Instance
from instances.plan import Plan, Schedule
from solver.exact.pool import Unlimited
from solver.search import Search
from solver.serving.served import Served


@dataclass(frozen=True)
class Found:
    """The fastest answer for one length: a plan, or a program where no plan can say it; and its value in seconds."""

    value: float
    plan: Plan | None = None
    served: Served | None = None


def best_of(search: Search) -> Found | None:
    """The faster of the incumbent and a program."""
    plan, value, served = search.incumbent.plan, search.incumbent.value, search.served
    if served is not None and (value is None or served.value < value):
        return Found(served.value, served=served)
    return None if value is None else Found(value, plan=plan)


@dataclass(frozen=True)
class Goal:
    """When a search for one length has what it wants: an answer within ``budget_s``, any one if that is None."""

    search: Search
    budget_s: float | None

    @property
    def reached(self) -> bool:
        """Whether there is such an answer."""
        found = best_of(self.search)
        return found is not None and (self.budget_s is None or found.value <= self.budget_s)


Offer = Callable[[Search, Plan, Unlimited | None, Goal], None]
"""Offers plans like one without spill, until the goal is reached."""


@dataclass(frozen=True)
class Way:
    """One row of the table.

    Attributes
    ----------
    host
        Whether it uses the host; without one there is no such row.
    schedule
        Of its plans; V-shaped ones are rows where they are asked for by name.
    refusal
        Why it has no programs on an instance, and so can do no more than ``fallback``; None if it has.
    """

    name: str
    says: str
    offer: Offer
    host: bool = False
    schedule: Schedule = "chunked"
    refusal: Callable[[Instance], str | None] = lambda instance: None
    fallback: str = "without spill"

    @property
    def bounded(self) -> bool:
        """Whether the bound on lengths speaks about its plans."""
        return not self.host and self.schedule == "chunked"
