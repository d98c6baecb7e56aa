"""Whether the window on chunks in flight holds a plan back: engines allow one a stage, and growing chunks need more."""

from __future__ import annotations

from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator

WORTH = 0.01
"""Share of the objective from which on it is said."""

QUICK_S = 0.25
"""A replay that takes longer is not done for this: time may be up."""


def without_window(instance: Instance, plan: Plan) -> float | None:
    """Objective in seconds of the same plan with any number of chunks in flight; None where there is no limit."""
    if instance.pipeline.max_in_flight is None:
        return None
    free = instance.with_pipeline(max_in_flight=None)
    return Evaluator(free).full(plan.model_copy(update={"instance": free.fingerprint})).value
