"""What all engines' exports share: what is refused, the summary as JSON, the short how-to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from instances.errors import InfeasibleError
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator
from solver.export.engines.engine import Target
from solver.export.engines.howto import howto
from solver.export.engines.projection import Projection, project
from solver.export.engines.ranks import Rank, fills_nodes, node_runs, ranks_of
from solver.export.source import Source

Files = Mapping[str, str]
ATTENTION = ("full", "sliding", "mla")
"""Kinds of attention that keep pages of KV."""


@dataclass(frozen=True)
class Handover:
    """What the writer of an engine needs.

    Attributes
    ----------
    ranks
        Of the pipeline's ranks, in order.
    devices
        Accelerators of a die: the tensor-parallel group that runs a stage.
    """

    instance: Instance
    plan: Plan
    projection: Projection
    ranks: tuple[Rank, ...]
    devices: int


def hand_over(
    source: Source,
    path: Path,
    target: Target,
    files_of: Callable[[Handover], Files],
    start: str,
    notes: tuple[str, ...],
    dynamic: tuple[str, ...] = (),
) -> str:
    """Write an engine's files, a summary and a how-to into a folder; what was written, in a few words.

    ``dynamic`` are notes for where a predictor sizes the chunks.

    Raises
    ------
    InfeasibleError
        For a plan that the engine cannot run: its schedule, every chunk size, a rank without attention, ranks that jump
        between nodes.
    """
    instance, plan = source.instance, source.plan
    if plan.v_shaped and not target.v_shaped:
        raise InfeasibleError("schedule", f"{target.name} has no V-shaped schedule, and the plan's is {plan.schedule}")
    _every_stage_attends(instance, plan, target)
    ranks = ranks_of(instance.hardware, plan.placement[: instance.pipeline.stages])
    if not target.any_node and not fills_nodes(ranks):
        raise InfeasibleError(
            "placement", f"{target.name} fills nodes with equal runs of ranks; this plan has {node_runs(ranks)}"
        )
    degree = instance.hardware.tensor_parallel
    planned_s = Evaluator(instance).full(plan).value
    assert planned_s is not None  # it was replayed
    found = project(instance, plan, planned_s, target)
    made = Handover(instance, plan, found, ranks, degree)
    files = {
        **files_of(made),
        "waferplan-export.json": json.dumps(_summary(made, target, source.origin), indent=1) + "\n",
        "HOWTO.md": howto(instance, plan, found, target, start, notes + (dynamic if found.knobs.dynamic else ())),
    }
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")
    loss = found.loss
    beside = f"{abs(loss):.2%} {'slower' if loss > 0 else 'faster'} than" if abs(loss) > 5e-5 else "as fast as"
    return f"{len(files)} files for {target.name}; with its chunks {beside} the plan, replayed"


def _every_stage_attends(instance: Instance, plan: Plan, target: Target) -> None:
    """Engines size KV pages by the attention layers of a stage; without one they fail at start (vllm #42927)."""
    kinds, layers = instance.model.kinds, instance.model.layer_kinds
    parts = [layers[start : start + count] for start, count in zip(plan.layer_starts, plan.layers, strict=True)]
    if plan.v_shaped:  # a rank has two
        parts = [one + other for one, other in zip(parts, parts[::-1], strict=True)][: len(parts) // 2]
    for stage, part in enumerate(parts):
        if not any(kinds[name].attention.kind in ATTENTION for name in part):
            why = f"no layer of stage {stage} has attention"
            raise InfeasibleError("layers", f"{why}; {target.name} cannot size its KV pages")


def _summary(made: Handover, target: Target, origin: Mapping[str, str]) -> dict[str, object]:
    found = made.projection
    return {
        "engine": target.name,
        "from": dict(origin),
        "layers": list(made.plan.layers),
        "engine_default_layers": list(found.own_layers),
        "step_tokens": found.knobs.base,
        "smoothing": found.knobs.smoothing,
        "min_chunk_tokens": found.knobs.least,
        "page_tokens": target.page,
        "max_in_flight": found.window,
        "chunks": {str(tokens): list(sizes) for tokens, sizes in found.sizes.items()},
        "ranks": [{"rank": rank.stage, "node": rank.node, "devices": devices_of(made, rank)} for rank in made.ranks],
        "objective": made.instance.objective,
        "planned_s": found.planned_s,
        "planned_within_window_s": found.window_s,
        "engine_s": found.value_s,
        "engine_default_layers_s": found.own_value_s,
        "loss": found.loss,
    }


def devices_of(made: Handover, rank: Rank) -> list[int]:
    """Numbers of a rank's accelerators inside its node."""
    return [rank.device * made.devices + index for index in range(made.devices)]
