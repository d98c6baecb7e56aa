"""Plans become numbers here, by replay and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from formulations.bounds import nearest_rank
from instances.check import check
from instances.errors import PlanError
from instances.instance import Instance
from instances.plan import Plan
from instances.rules import Finding
from solver.metrics import metrics_of
from solver.result import Metrics
from solver.simulation.batch import run_plans
from solver.simulation.engine import Run
from solver.simulation.lowering import Lowering
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Program
from solver.simulation.replay import Replay, replay

Seconds = npt.NDArray[np.float64]

TASK_S, WAVE_S, BLOCK_S, SPILL_S = 3e-6, 3e-5, 1e-3, 1e-5
"""Seconds to lower and replay a task, a wave, waves of a new shape or size, and a spill row in a wave, roughly."""
NEGLIGIBLE_S = 0.05
"""Replays that take no longer are not worth an estimate."""


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
        self.waves = lru_cache(maxsize=16)(instance.workload.gathered)
        self._arrivals = lru_cache(maxsize=64)(self._wave_of_request)
        self._counts = lru_cache(maxsize=16)(self._waves_of_tokens)
        pipeline = instance.pipeline
        quanta = max(-(-tokens // pipeline.chunk_quantum) for tokens in instance.workload.uncached_counts)
        tasks = 2 * pipeline.stages * min(pipeline.max_chunks, quanta) * len(self.requests)
        self.always_quick = tasks * TASK_S + len(self.requests) * (WAVE_S + BLOCK_S) <= NEGLIGIBLE_S

    def value(self, plan: Plan) -> float | None:
        """Objective of a plan that keeps the static rules; None if its replay deadlocks or its costs are not known."""
        return self.values([plan])[0]

    def values(self, plans: Sequence[Plan]) -> list[float | None]:
        """``value`` of each plan, in one call: sooner where they differ in chunk sizes and spilled tokens alone."""
        try:
            found = zip(plans, run_plans(self.lowering, plans), strict=True)
        except PlanError:  # a chunk outside a measured table
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
        except PlanError as error:  # a chunk outside a measured table
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
        waves = self.waves(plan.batch)
        arrivals_s = np.split(waves.arrival_s, waves.pointers[1:-1])
        return replay(self.lowering.program(plan), arrivals_s, traced=traced)

    def replay_s(self, plan: Plan) -> float:
        """Seconds that a replay of a plan takes, roughly; 0 where none takes long."""
        if self.always_quick:
            return 0.0
        counts = self._counts(plan.batch).items()
        chunks = sum(waves * len(plan.chunks.get(str(tokens), ())) for tokens, waves in counts)
        spill = len(plan.spill) * self.waves(plan.batch).waves * SPILL_S
        return chunks * len(plan.layers) * TASK_S + spill + self.least_replay_s(plan.batch)

    def least_replay_s(self, batch: int) -> float:
        """Seconds that a replay takes whatever the chunks are, roughly."""
        waves = self.waves(batch)
        return 0.0 if self.always_quick else waves.waves * WAVE_S + len(waves.kinds) * BLOCK_S

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
        waves = self.waves(batch)
        return waves.wave_of_request, waves.arrival_s

    def _waves_of_tokens(self, batch: int) -> dict[int, int]:
        """How many waves there are for each number of uncached tokens."""
        waves, found = self.waves(batch), Counter[int]()
        for (shape, _), count in zip(waves.kinds, waves.waves_of_kind, strict=True):
            found[shape[0] - shape[1]] += count
        return found


def wave_completions_s(program: Program, outcome: Run) -> Seconds:
    """End of the last chunk on the last stage of each wave."""
    last = np.flatnonzero(program.closes_group & (program.stage == program.stages - 1))
    return outcome.end_ps[last] / PICOSECONDS_PER_S
