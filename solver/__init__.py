"""Plans: heuristics and exact search, replayed by the event simulator.

Names are loaded when they are first used: engines take a second to import, and the command line has to be able to
show its help, or to take Ctrl-C, before that.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solver.api import solve
    from solver.explanation.answer import explain
    from solver.limits import Limits
    from solver.replaying import simulate
    from solver.result import Result
    from solver.tables import to_arrow, to_pandas

__all__ = ["Limits", "Result", "explain", "simulate", "solve", "to_arrow", "to_pandas"]

_HOMES = {
    "Limits": "solver.limits",
    "Result": "solver.result",
    "explain": "solver.explanation.answer",
    "simulate": "solver.replaying",
    "solve": "solver.api",
    "to_arrow": "solver.tables",
    "to_pandas": "solver.tables",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
