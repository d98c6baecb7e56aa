"""Plans become numbers here, by replay and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.bounds import nearest_rank
from instances.check import check
from instances.instance import Instance
from instances.plan import Plan
from instances.rules import Finding
from instances.workload import form_waves
from solver.metrics import metrics_of
from solver.result import Metrics
from solver.simulation.engine import Run, run
from solver.simulation.lowering import Lowering
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Program
from solver.simulation.replay import Replay, replay


@dataclass(frozen=True)
class Evaluation:
    """Outcome of checking and replaying one plan.

    Attributes
    ----------
    value
        Objective in seconds; None if the plan breaks a rule or does not run.
    metrics
        What the replay measured; None as above.
    violations
        Broken static rules, and ``deadlock`` where the replay got stuck.
    reason
        Why there is no value, in words; empty otherwise.
    """

    plan: Plan
    value: float | None
    metrics: Metrics | None
    violations: tuple[Finding, ...]
    reason: str


class Evaluator:
    """Checks and replays plans of one instance."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.lowering = Lowering(instance)
        self.requests = instance.workload.all_requests()
        self.replays = 0

    def value(self, plan: Plan) -> float | None:
        """Objective of a plan that keeps the static rules; None if its replay deadlocks."""
        program = self.lowering.program(plan)
        self.replays += 1
        if (program.static_units > program.capacity_units).any():
            return None
        outcome = run(program)
        return None if outcome.deadlock else self.objective(plan, program, outcome)

    def full(self, plan: Plan) -> Evaluation:
        """Check every static rule, replay, measure."""
        broken = tuple(finding for finding in check(self.instance, plan) if not finding.ok)
        if broken:
            worst = broken[0]
            reason = f"{worst.rule}: {worst.where} (by {worst.amount:.6g} {worst.unit})"
            return Evaluation(plan, None, None, broken, reason)
        replayed = self.replay(plan)
        if replayed.deadlock:
            stuck = max(waiting.missing_units for waiting in replayed.run.waiting) / replayed.program.units_per_byte
            reason = replayed.reason or ""
            finding = Finding(rule="deadlock", ok=False, amount=max(stuck, 0.0), unit="bytes", where=reason)
            return Evaluation(plan, None, None, (finding,), f"deadlock: {reason}")
        value = self.objective(plan, replayed.program, replayed.run)
        return Evaluation(plan, value, metrics_of(self.instance, replayed), (), "")

    def replay(self, plan: Plan, *, traced: bool = False) -> Replay:
        """Replay a plan that keeps the static rules, for its metrics or its trace."""
        self.replays += 1
        waves = form_waves(self.requests, plan.batch)
        return replay(self.lowering.program(plan), [wave.arrivals_s for wave in waves], traced=traced)

    def objective(self, plan: Plan, program: Program, outcome: Run) -> float:
        """Objective in seconds of a run that came to its end."""
        completions = wave_completions_s(program, outcome)
        if self.instance.objective == "makespan":
            return float(completions.max())
        waves = form_waves(self.requests, plan.batch)
        latencies = [
            done - arrival for wave, done in zip(waves, completions, strict=True) for arrival in wave.arrivals_s
        ]
        if self.instance.objective == "p95_latency":
            return float(nearest_rank(latencies, 0.95))
        return float(np.mean(latencies))


def wave_completions_s(program: Program, outcome: Run) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """End of the last chunk on the last stage of each wave."""
    last = np.flatnonzero(program.closes_group & (program.stage == program.stages - 1))
    return outcome.end_ps[last] / PICOSECONDS_PER_S
