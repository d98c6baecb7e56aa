"""Plans become numbers here, by replay and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from formulations.bounds import nearest_rank
from instances.check import check
from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Plan
from instances.rules import Finding
from instances.workload import form_waves
from solver.metrics import metrics_of
from solver.result import Metrics
from solver.simulation.batch import run_plans
from solver.simulation.engine import Run
from solver.simulation.lowering import Lowering
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Program
from solver.simulation.replay import Replay, replay

Seconds = npt.NDArray[np.float64]


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
        self._arrivals = lru_cache(maxsize=64)(self._wave_of_request)

    def value(self, plan: Plan) -> float | None:
        """Objective of a plan that keeps the static rules; None if its replay deadlocks or its costs are not known."""
        return self.values([plan])[0]

    def values(self, plans: Sequence[Plan]) -> list[float | None]:
        """``value`` of each plan, in one call: sooner where they differ in chunk sizes and spilled tokens alone."""
        try:
            found = zip(plans, run_plans(self.lowering, plans), strict=True)
        except InputError:  # a chunk outside a measured table
            return [None] if len(plans) == 1 else [self.value(plan) for plan in plans]
        self.replays += len(plans)
        return [
            None if summary is None else self._objective(plan, summary.completion_ps / PICOSECONDS_PER_S)
            for plan, summary in found
        ]

    def full(self, plan: Plan) -> Evaluation:
        """Check every static rule, replay, measure."""
        broken = tuple(finding for finding in check(self.instance, plan) if not finding.ok)
        if broken:
            worst = broken[0]
            reason = f"{worst.rule}: {worst.where} (by {worst.amount:.6g} {worst.unit})"
            return Evaluation(plan, None, None, broken, reason)
        try:
            replayed = self.replay(plan)
        except InputError as error:  # a chunk outside a measured table
            return Evaluation(plan, None, None, (), str(error))
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
        return self._objective(plan, wave_completions_s(program, outcome))

    def _objective(self, plan: Plan, completions_s: Seconds) -> float:
        if self.instance.objective == "makespan":
            return float(completions_s.max())
        wave, arrivals_s = self._arrivals(plan.batch)
        latencies = completions_s[wave] - arrivals_s
        if self.instance.objective == "p95_latency":
            return float(nearest_rank(latencies.tolist(), 0.95))
        return float(np.mean(latencies))

    def _wave_of_request(self, batch: int) -> tuple[npt.NDArray[np.int64], Seconds]:
        """Wave and arrival of each request, wave by wave."""
        waves = form_waves(self.requests, batch)
        sizes = [wave.size for wave in waves]
        arrivals_s = np.array([arrival for wave in waves for arrival in wave.arrivals_s])
        return np.repeat(np.arange(len(waves)), sizes), arrivals_s


def wave_completions_s(program: Program, outcome: Run) -> Seconds:
    """End of the last chunk on the last stage of each wave."""
    last = np.flatnonzero(program.closes_group & (program.stage == program.stages - 1))
    return outcome.end_ps[last] / PICOSECONDS_PER_S
