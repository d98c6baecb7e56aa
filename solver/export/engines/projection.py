"""A plan brought down to what an engine can do: its knobs, its window, no spill; and what that costs under replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from instances.errors import InfeasibleError
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluation
from solver.export.engines.engine import Target
from solver.export.engines.knobs import Chunker, Knobs
from solver.export.engines.replayed import EngineReplay

MOST_STEPS = 12
"""Rounds of looking at settings beside the best ones."""
WORTH = 1e-3
"""Share that a deeper window has to gain."""
MOST_CHUNKS = 4096
"""Chunks of a request that are replayed; settings with more of them are not looked at."""


@dataclass(frozen=True)
class Projection:
    """What the engine would run.

    Attributes
    ----------
    plan
        Its chunks and batch, with the layers and places of the exported plan.
    window
        Chunks in flight that the engine allows.
    value_s, planned_s
        Objective of the engine's plan within its window, and of the exported plan, both replayed.
    window_s
        The exported plan itself within the engine's window: what its other chunks do not explain. None where it does
        not run there.
    own_layers, own_value_s
        The split that the engine would make by itself, and the objective with it; None where that does not run.
    """

    plan: Plan
    knobs: Knobs
    window: int
    value_s: float
    planned_s: float
    window_s: float | None
    own_layers: tuple[int, ...]
    own_value_s: float | None

    @property
    def loss(self) -> float:
        """Share by which the engine's plan is slower than the exported one."""
        return self.value_s / self.planned_s - 1

    @property
    def sizes(self) -> dict[int, tuple[int, ...]]:
        """Chunk sizes per number of uncached tokens."""
        return {int(tokens): cuts for tokens, cuts in self.plan.chunks.items()}


def project(instance: Instance, plan: Plan, planned_s: float, target: Target) -> Projection:
    """The engine's settings with the least objective under replay, found from a ladder and then step by step.

    An engine knows neither quantum nor most chunks, so neither holds here. Requests are cut one at a time, as engines
    fill a step; what is left of a step for the next request is not modelled. V-shaped plans run in the one order of
    visits that the engine issues for all dies.

    Raises
    ------
    InfeasibleError
        If no settings give a plan that runs: engines keep the KV of a running request where it is computed.
    """
    alone = instance.pipeline.stages == 1  # predictors need a pipeline
    predictor = "" if plan.v_shaped or alone else target.predictor
    free = instance.with_pipeline(chunk_quantum=1, max_chunks=MOST_CHUNKS)
    chunker = Chunker(free, plan.layers, predictor, target.page, instance.pipeline.max_chunks)
    windows = target.windows(instance, v_shaped=plan.v_shaped)
    replayed = EngineReplay(free, windows[0])
    best = _best(replayed, chunker, plan, chunker.first())
    if best is None:
        raise _no_settings(target, plan, replayed.failed)
    for _ in range(MOST_STEPS):
        found = _best(replayed, chunker, plan, chunker.near(best[1]))
        if found is None or found[0] >= best[0]:
            break
        best = found
    value, knobs, candidate = best
    window = windows[0]
    for deeper in windows[1:]:
        other = EngineReplay(free, deeper).value(candidate)
        if other is not None and other < value * (1 - WORTH):
            value, window = other, deeper
    own = target.own_layers(instance.model.layer_count, instance.pipeline.stages, v_shaped=plan.v_shaped)
    layered = EngineReplay(free.with_pipeline(layers="free"), window)
    return Projection(
        plan=candidate,
        knobs=knobs,
        window=window,
        value_s=value,
        planned_s=planned_s,
        window_s=EngineReplay(free, window).value(plan),
        own_layers=own,
        own_value_s=value if own == plan.layers else layered.value(candidate.model_copy(update={"layers": own})),
    )


def _no_settings(target: Target, plan: Plan, failed: Evaluation | None) -> InfeasibleError:
    needs = "; the plan keeps KV at other dies or the host, which no engine does for a running request"
    rule, why = "chunk_count", "every chunk size would make more than max_chunks chunks"
    if failed is not None:
        rule, why = failed.violations[0].rule if failed.violations else "deadlock", failed.reason
    return InfeasibleError(rule, f"no settings of {target.name} run: {why}{needs if plan.spill else ''}")


def _best(
    replayed: EngineReplay, chunker: Chunker, exported: Plan, candidates: Iterable[Knobs]
) -> tuple[float, Knobs, Plan] | None:
    """The settings with the least objective, and their plan; the first of equal ones."""
    best: tuple[float, Knobs, Plan] | None = None
    seen: set[tuple[int, tuple[tuple[int, ...], ...]]] = set()
    for knobs in candidates:
        sizes = chunker.sizes(knobs)
        if sizes is None or (key := (knobs.batch, tuple(sizes.values()))) in seen:
            continue
        seen.add(key)
        chunks = {str(tokens): cuts for tokens, cuts in sizes.items()}
        plan = exported.model_copy(update={"batch": knobs.batch, "chunks": chunks, "spill": ()})
        value = replayed.value(plan)
        if value is not None and (best is None or value < best[0]):
            best = value, knobs, plan
    return best
