"""Plans: heuristics and exact search, replayed by the event simulator."""

from solver.api import solve
from solver.limits import Limits
from solver.result import Result
from solver.simulate import simulate

__all__ = ["Limits", "Result", "simulate", "solve"]
