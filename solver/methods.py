"""All methods by name."""

from __future__ import annotations

from functools import partial

from instances.errors import InputError
from solver.exact.search import exact
from solver.exact.spilling import spilling
from solver.method import Knob, Method
from solver.policies.registry import POLICIES, PROGRAMS
from solver.serving.registry import SERVING

_EXACT = Method(
    "exact",
    "bounds, exact cuts and pooled spill, with the heuristics beside it; proves its gap",
    exact,
    {
        "compare": Knob(
            "yes",
            "run the heuristics too, so that the answer is never worse than theirs; all: parts of MOCAP as well",
            ("yes", "no", "all"),
        ),
        "schedules": Knob(
            "plain",
            "what to search and to bound: the plain schedule, or all, with the V-shaped ones (see vpp)",
            ("plain", "all"),
        ),
    },
)

_SPILLING = (
    Method(
        "pool",
        "cuts of the bound; any die may hold any stage's chunks, amounts by a linear program",
        partial(spilling, dies=True, host=False),
    ),
    Method(
        "host",
        "cuts of the bound; late chunks leave for the die's host memory while their request runs",
        partial(spilling, dies=False, host=True),
    ),
    Method("pool+host", "cuts of the bound; spill to any die and to the host", partial(spilling, dies=True, host=True)),
)

METHODS: dict[str, Method] = {method.name: method for method in (_EXACT, *_SPILLING, *POLICIES, *PROGRAMS, *SERVING)}


def find_method(name: str) -> Method:
    """The method of a name; InputError with the names there are."""
    if name not in METHODS:
        raise InputError("method", name, f"one of {', '.join(METHODS)}")
    return METHODS[name]
