"""The problem: what is given, what is decided, what it costs, which rules a plan must keep."""

from instances.errors import InfeasibleError, InputError
from instances.instance import Instance
from instances.plan import Plan, SpillRow

__all__ = ["InfeasibleError", "InputError", "Instance", "Plan", "SpillRow"]
