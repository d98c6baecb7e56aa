"""Plans as an engine runs them: within its window, and in a V in the one order that it issues for all dies."""

from __future__ import annotations

from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluation, Evaluator
from solver.policies.vpp_engine import Engine, evaluated


class EngineReplay:
    """Replays of plans of an instance within a window.

    Attributes
    ----------
    failed
        Why the last plan that did not run did not.
    """

    def __init__(self, instance: Instance, window: int) -> None:
        self.instance, self.window = instance.with_pipeline(max_in_flight=window), window
        self.evaluator = Evaluator(self.instance)
        self.failed: Evaluation | None = None

    def value(self, plan: Plan) -> float | None:
        """Objective of a plan here, whatever instance it was made for; None if it does not run."""
        there = plan.model_copy(update={"instance": self.instance.fingerprint})
        if plan.v_shaped:
            found, _ = evaluated(self.evaluator, there, Engine(heads=self.window, blocking=False))
        else:
            found = self.evaluator.full(there)
        self.failed = self.failed if found.value is not None else found
        return found.value
