"""VPP as its public engine patch runs it: one order of visits for all dies, hand-offs that the sender waits for.

A plan can say neither, so the answer is a program. Both are lowerings of a V-shaped plan's program:

- ``single_fifo``: the engine issues visits one after the other, over all waves, and every die runs them in this order
  (``vpp_fifo``); Q = N + 1, as its batch queue has one place more than dies. For N = 2 and waves at time 0 this is the
  order of ``vpp-packed``; for N > 2 a die waits for visits that other dies have not made yet.
- blocking hand-off: a die that sends stands still until the transfer has arrived. The time is part of the sender's
  task, and the links of the program take none: transfers of several dies over one link do not wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from instances.check import check
from instances.errors import InputError, PlanError
from instances.plan import Plan
from solver.evaluate import Evaluation, Evaluator
from solver.metrics import metrics_of
from solver.policies.plan_document import document_of
from solver.policies.vpp_fifo import hand_off_ps, single_fifo
from solver.search import Search
from solver.serving.served import Served
from solver.serving.setting import MOST_TASKS, refuse_slow_seams
from solver.simulation.network import PICOSECONDS_PER_S, Network
from solver.simulation.program import Program
from solver.simulation.program_file import read_program
from solver.simulation.replay import Replay, replay

FASTEST_BYTES_PER_S = 1e27
"""The speed of links that take no time."""


@dataclass(frozen=True)
class Engine:
    """How dies order their visits and hand over.

    Parameters
    ----------
    heads
        Q of the single FIFO order; None: each die has the order of its schedule.
    blocking
        Whether senders wait.
    """

    heads: int | None
    blocking: bool

    def lowered(self, program: Program) -> Program:
        """A V-shaped plan's program in this order, with these hand-offs."""
        if self.heads is not None:
            program = replace(program, die_tasks=single_fifo(program, self.heads, blocking=self.blocking))
        if self.blocking:
            duration_ps = program.duration_ps + hand_off_ps(program)
            program = replace(program, duration_ps=duration_ps, network=_instant(program.network))
        return program


def engine_of(search: Search) -> Engine | None:
    """What the knobs of a V-shaped method ask for; None where a plan can say it.

    Raises
    ------
    InputError
        For more heads than chunks may be in flight, and slower seams between wafers, which a program cannot say.
    """
    knobs, window = search.knobs, search.instance.pipeline.max_in_flight
    heads = None
    if knobs["order"] == "single_fifo":
        if window is not None and knobs["heads"] > window:
            raise InputError("knob heads", knobs["heads"], f"at most max_in_flight, {window} chunks")
        heads = knobs["heads"] or min(search.stages + 1, window or search.stages + 1)
    blocking = knobs["handoff"] == "blocking"
    if heads is not None and not blocking:
        refuse_slow_seams(search.instance.hardware)
    return Engine(heads, blocking) if heads is not None or blocking else None


def _instant(network: Network) -> Network:
    """The same links without the time they take."""
    return replace(
        network,
        bottleneck_bytes_per_s=np.full_like(network.bottleneck_bytes_per_s, FASTEST_BYTES_PER_S),
        link_bytes_per_s=np.full_like(network.link_bytes_per_s, FASTEST_BYTES_PER_S),
        hop_latency_ps=0,
    )


def evaluated(evaluator: Evaluator, plan: Plan, engine: Engine) -> tuple[Evaluation, Program | None]:
    """Check and replay a V-shaped plan in an engine's order, without metrics; the program if it came so far.

    The rule on windows is about the plan's own order, and does not hold of another one.
    """
    own_window = engine.heads is not None
    broken = tuple(
        finding
        for finding in check(evaluator.instance, plan)
        if not finding.ok and not (own_window and finding.rule == "v_window")
    )
    if broken:
        reason = f"{broken[0].rule}: {broken[0].where} (by {broken[0].amount:.6g} {broken[0].unit})"
        return Evaluation(plan, None, None, broken, reason), None
    try:
        program = engine.lowered(evaluator.lowering.program(plan))
    except PlanError as error:  # a chunk outside a measured table
        return Evaluation(plan, None, None, (), str(error)), None
    replayed = _replayed(evaluator, plan, program)
    if replayed.deadlock:
        return Evaluation(plan, None, None, (), f"deadlock: {replayed.reason}"), program
    return Evaluation(plan, evaluator.objective(plan, program, replayed.run), None, (), ""), program


def _replayed(evaluator: Evaluator, plan: Plan, program: Program) -> Replay:
    waves = evaluator.waves(plan.batch)
    return replay(program, np.split(waves.arrival_s, waves.pointers[1:-1]))


@dataclass
class EngineRuns:
    """Plans run as the engine does; the best becomes the answer, a program.

    The bounds of V-shaped plans speak of the orders of the three schedules without delays, so none is compared with the
    answer; the best one is noted beside it.
    """

    search: Search
    engine: Engine
    best: tuple[float, Plan, Program] | None = None
    failed: str | None = None

    def offer(self, plan: Plan) -> float | None:
        """Replay a plan the engine's way; its objective, or None if it does not run."""
        search = self.search
        if not search.incumbent.affords(plan):
            search.incumbent.skip(search.evaluator.replay_s(plan))
            return None
        found, program = evaluated(search.evaluator, plan, self.engine)
        search.evaluator.replays += 1
        if found.value is None or program is None:
            self.failed = found.reason
            return None
        value = found.value
        if self.best is None or value < self.best[0]:
            self.best = value, plan, program
        return value

    def answer(self) -> None:
        """Hand the best over to the search, as a document that was read and replayed."""
        search, engine = self.search, self.engine
        if search.incumbent.bound is not None:
            search.details["v_bound_s"] = search.incumbent.bound
        search.incumbent.bound = None
        search.incumbent.trace.clear()
        search.folded.clear()
        if self.best is None:
            search.unserved = self.failed or search.why_not()
            return
        value, plan, program = self.best
        if program.tasks > MOST_TASKS:
            search.unserved = f"a program of {program.tasks} tasks; at most {MOST_TASKS} are written down"
            return
        document = document_of(search.instance, plan, program)
        if engine.blocking:
            document |= {"link_bytes_per_s": FASTEST_BYTES_PER_S, "hop_latency_s": 0}
        replayed = _replayed(search.evaluator, plan, read_program(document))
        expected = _replayed(search.evaluator, plan, program)
        # The time for which a sender waits is no work.
        working = replace(program, duration_ps=search.evaluator.lowering.program(plan).duration_ps)
        metrics = metrics_of(search.instance, Replay(working, replayed.run, replayed.arrivals_s))
        assert metrics is not None
        error_ps = int(np.abs(replayed.run.end_ps - expected.run.end_ps).max())
        search.served = Served(document, metrics, value, error_ps / PICOSECONDS_PER_S)
        search.details.update(
            batch=plan.batch,
            chunks={tokens: list(sizes) for tokens, sizes in plan.chunks.items()},
            layers=list(plan.layers),
            heads=engine.heads,
            prediction_error_s=error_ps / PICOSECONDS_PER_S,
        )
