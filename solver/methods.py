"""All methods by name."""

from __future__ import annotations

from instances.errors import InputError
from solver.exact.search import exact
from solver.method import Knob, Method
from solver.policies.registry import POLICIES
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

METHODS: dict[str, Method] = {method.name: method for method in (_EXACT, *POLICIES, *SERVING)}


def find_method(name: str) -> Method:
    """The method of a name; InputError with the names there are."""
    if name not in METHODS:
        raise InputError("method", name, f"one of {', '.join(METHODS)}")
    return METHODS[name]
