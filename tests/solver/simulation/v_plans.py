"""Random tiny instances with V-shaped plans: other cuts, splits, placements, spill, memory and topologies each time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from instances.instance import Instance
from instances.pipeline import balanced_layers
from instances.plan import Plan, Schedule, SpillRow
from tests.reference.plan_to_program import lower
from tests.tiny import Recipe

SCHEDULES: tuple[Schedule, ...] = ("vpp", "vpp-async", "vpp-packed")


def v_instance(recipe: Recipe) -> Instance:
    """An instance with at least two layers a stage, layers balanced or free."""
    topology = recipe.choice(("mesh", "mesh", "torus", "switch"))
    hardware = recipe.hardware() | {"topology": topology}
    if topology == "switch":
        hardware.pop("wafer_link_bytes_per_s", None)
    instance = recipe.instance(options=recipe.chance(30), hardware=hardware)
    stages = min(instance.pipeline.stages, instance.model.layer_count // 2)
    window = recipe.integer(1, 2 * stages + 1) if recipe.chance(40) else None
    return instance.with_pipeline(stages=stages, layers=recipe.choice(("balanced", "free")), max_in_flight=window)


def v_plan(recipe: Recipe, instance: Instance, *, spill_percent: int = 40) -> Plan:
    """A plan that keeps every static rule but memory's and the window's."""
    stages, layers = 2 * instance.pipeline.stages, instance.model.layer_count
    split = balanced_layers(layers, stages)
    if instance.pipeline.layers == "free":
        ends = sorted(_drawn(recipe, list(range(1, layers)), stages - 1))
        split = tuple(stop - start for start, stop in pairwise([0, *ends, layers]))
    dies = tuple(_drawn(recipe, instance.hardware.live_dies, stages // 2))
    plan = Plan(
        instance=instance.fingerprint,
        batch=recipe.integer(1, instance.pipeline.max_batch),
        layers=split,
        placement=dies + dies[::-1],
        chunks={str(count): recipe.chunks(instance, count) for count in instance.workload.uncached_counts},
        schedule=recipe.choice(SCHEDULES),
    )
    return plan.model_copy(update={"spill": _spill(recipe, instance, plan, spill_percent)})


def with_memory(recipe: Recipe, instance: Instance, plan: Plan) -> tuple[Instance, Plan]:
    """Both with memory for a part of what the fullest die holds, so that plans wait, spill or lock up."""
    program = lower(instance.canonical(), plan.model_dump(mode="json"))
    needs: dict[Any, Any] = {}
    for stage, position in enumerate(plan.placement):
        held = max(sum(wave["kv_bytes"][stage], start=0) for wave in program["waves"])
        share = recipe.choice((0.5, 0.75, 0.9, 1))
        needs[position] = needs.get(position, program["static_bytes"][stage]) + held * share
    die = instance.hardware.die.model_copy(update={"hbm_bytes": float(max(1, round(max(needs.values()))))})
    smaller = instance.model_copy(update={"hardware": instance.hardware.model_copy(update={"die": die})})
    return smaller, plan.model_copy(update={"instance": smaller.fingerprint})


def _spill(recipe: Recipe, instance: Instance, plan: Plan, percent: int) -> tuple[SpillRow, ...]:
    """As in plain plans, without rows to the stage's own die, and each memory once for a chunk."""
    kept: dict[tuple[Any, ...], SpillRow] = {}
    for row in recipe.spill(instance, plan, percent):
        home = plan.placement[row.stage]
        memory = row.creditor if row.creditor == "host" else plan.placement[row.creditor]
        if memory != home:
            kept.setdefault((row.stage, row.chunk, row.shape, memory), row)
    return tuple(kept.values())


def _drawn(recipe: Recipe, items: list[Any], count: int) -> list[Any]:
    left = list(items)
    return [left.pop(recipe.integer(0, len(left) - 1)) for _ in range(count)]
