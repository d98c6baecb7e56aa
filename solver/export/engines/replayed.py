"""Plans as an engine runs them: within its window, and in a V in the one order that it issues for all dies."""

from __future__ import annotations

import numpy as np

from instances.check import check
from instances.errors import PlanError
from instances.instance import Instance
from instances.plan import Plan
from instances.rules import Finding
from solver.evaluate import Evaluation, Evaluator
from solver.policies.vpp_engine import Engine
from solver.simulation.replay import replay


def with_pipeline(instance: Instance, **changes: object) -> Instance:
    """The instance with other pipeline limits."""
    return instance.model_copy(update={"pipeline": instance.pipeline.model_copy(update=changes)})


class EngineReplay:
    """Replays of plans of an instance within a window.

    Attributes
    ----------
    failed
        Why the last plan that did not run did not.
    """

    def __init__(self, instance: Instance, window: int) -> None:
        self.instance, self.window = with_pipeline(instance, max_in_flight=window), window
        self.evaluator = Evaluator(self.instance)
        self.failed: Evaluation | None = None

    def value(self, plan: Plan) -> float | None:
        """Objective of a plan here, whatever instance it was made for; None if it does not run."""
        there = plan.model_copy(update={"instance": self.instance.fingerprint})
        found = self._in_one_order(there) if plan.v_shaped else self.evaluator.full(there)
        self.failed = self.failed if found.value is not None else found
        return found.value

    def _in_one_order(self, plan: Plan) -> Evaluation:
        """A V-shaped plan with all visits in one queue; its rule on windows is about its own order."""
        broken = tuple(f for f in check(self.instance, plan) if not f.ok and f.rule != "v_window")
        if broken:
            return Evaluation(plan, None, None, broken, f"{broken[0].rule}: {broken[0].where}")
        evaluator = self.evaluator
        try:
            program = Engine(heads=self.window, blocking=False).lowered(evaluator.lowering.program(plan))
        except PlanError as error:  # a chunk outside a measured table
            return Evaluation(plan, None, None, (), str(error))
        waves = evaluator.waves(plan.batch)
        replayed = replay(program, np.split(waves.arrival_s, waves.pointers[1:-1]))
        if replayed.deadlock:
            reason = replayed.reason or ""
            finding = Finding(rule="deadlock", ok=False, amount=0.0, unit="bytes", where=reason)
            return Evaluation(plan, None, None, (finding,), f"deadlock: {reason}")
        return Evaluation(plan, evaluator.objective(plan, program, replayed.run), None, (), "")
