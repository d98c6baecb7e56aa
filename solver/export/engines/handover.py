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
from solver.export.engines.ranks import Rank, blocks_of, fills_nodes, node_runs, ranks_of
from solver.export.source import Source

Files = Mapping[str, str]
ATTENTION = ("full", "sliding", "mla")
"""Kinds of attention that keep pages of KV."""


@dataclass(frozen=True)
class Node:
    """A run of ranks on one node.

    Attributes
    ----------
    order
        Place of the run in the pipeline, which engines call the rank of the node.
    number
        Number of the node.
    devices
        Accelerators in the order of ranks.
    """

    order: int
    number: int
    devices: list[int]
    ranks: list[Rank]

    @property
    def visible(self) -> str:
        """Devices as the variable for them wants it."""
        return ",".join(map(str, self.devices))

    @property
    def says(self) -> str:
        """Its stages in words."""
        return f"stages {self.ranks[0].stage} to {self.ranks[-1].stage}"


@dataclass(frozen=True)
class Handover:
    """What the writer of an engine needs.

    Attributes
    ----------
    ranks
        Of the pipeline's ranks, in order.
    """

    instance: Instance
    plan: Plan
    projection: Projection
    ranks: tuple[Rank, ...]

    @property
    def degree(self) -> int:
        """Accelerators of a die: the tensor-parallel group that runs a stage."""
        return self.instance.hardware.tensor_parallel

    @property
    def partition(self) -> str:
        """Layers of the stages, as engines read them."""
        return ",".join(map(str, self.plan.layers))

    def devices_of(self, rank: Rank) -> list[int]:
        """Numbers of a rank's accelerators inside its node."""
        return [rank.device * self.degree + index for index in range(self.degree)]

    @property
    def nodes(self) -> list[Node]:
        """Runs of ranks on one node, in the order of stages."""
        return [
            Node(number, node, [device for rank in block for device in self.devices_of(rank)], block)
            for number, (node, block) in enumerate(blocks_of(self.ranks))
        ]


def hand_over(source: Source, path: Path, target: Target, files_of: Callable[[Handover], Files]) -> str:
    """Write an engine's files, a summary and a how-to into a folder; what was written, in a few words.

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
    planned_s = Evaluator(instance).objective(plan, source.program, source.run)
    found = project(instance, plan, planned_s, target)
    made = Handover(instance, plan, found, ranks)
    files = {
        **files_of(made),
        "waferplan-export.json": json.dumps(_summary(made, target, source.origin), indent=1) + "\n",
        "HOWTO.md": howto(instance, plan, found, target),
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
        "ranks": [{"rank": rank.stage, "node": rank.node, "devices": made.devices_of(rank)} for rank in made.ranks],
        "objective": made.instance.objective,
        "planned_s": found.planned_s,
        "planned_within_window_s": found.window_s,
        "engine_s": found.value_s,
        "engine_default_layers_s": found.own_value_s,
        "loss": found.loss,
    }
