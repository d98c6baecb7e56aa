"""Searches that have not begun, for tests of methods and of what they are handed."""

from __future__ import annotations

from instances.instance import Instance
from solver.limits import Limits
from solver.methods import METHODS
from solver.search import Search


def make_search(instance: Instance, method: str, **knobs: object) -> Search:
    """What a method of that name is handed: nothing known, no time limit."""
    return Search.begin(instance, Limits(time_s=None), knobs=METHODS[method].settings(knobs))


def bare_search(instance: Instance, *, chunks: int | None = None) -> Search:
    """A search without a clock and without a method's knobs."""
    return Search.begin(instance, Limits(time_s=None, deterministic=True), chunks=chunks)
