"""All methods by name."""

from __future__ import annotations

from instances.errors import InputError
from solver.exact.search import exact
from solver.method import Knob, Method
from solver.policies.registry import POLICIES

_EXACT = Method(
    "exact",
    "bounds, exact cuts and pooled spill, with the heuristics beside it; proves its gap",
    exact,
    {"compare": Knob("yes", "run the heuristics too, so that the answer is never worse than theirs", ("yes", "no"))},
)

METHODS: dict[str, Method] = {method.name: method for method in (_EXACT, *POLICIES)}


def find_method(name: str) -> Method:
    """The method of a name; InputError with the names there are."""
    if name not in METHODS:
        raise InputError("method", name, f"one of {', '.join(METHODS)}")
    return METHODS[name]
