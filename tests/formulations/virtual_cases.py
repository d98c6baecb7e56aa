"""Every V-shaped plan of a tiny instance on one placement, and its neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product

from formulations.virtual.split import fixed_parts
from instances.check import check
from instances.instance import Instance
from instances.plan import Plan, Schedule
from solver.evaluate import Evaluator
from tests.brute_force import batches, cut_lists, neighbours
from tests.solver.simulation.v_plans import SCHEDULES

LARGEST_SPACE = 300


def splits(instance: Instance) -> list[tuple[int, ...]]:
    """The 2N-part split, or all of them where it is free."""
    fixed, layers, parts = fixed_parts(instance), instance.model.layer_count, 2 * instance.pipeline.stages
    if fixed is not None:
        return [fixed]
    inner = [cut for cut in range(1, layers) if cut not in instance.pipeline.forbidden_cuts]
    return [tuple(b - a for a, b in pairwise((0, *ends, layers))) for ends in combinations(inner, parts - 1)]


def every_v_plan(
    instance: Instance, schedules: tuple[Schedule, ...] = SCHEDULES, only_batches: list[int] | None = None
) -> Iterator[Plan]:
    """All schedules, batches, 2N-part splits and chunk lists, on the first live dies; whatever the window says."""
    counts = instance.workload.uncached_counts
    lists = [cut_lists(instance, count) for count in counts]
    dies = tuple(instance.hardware.live_dies[: instance.pipeline.stages])
    all_batches = list(batches(instance)) if only_batches is None else only_batches
    for schedule, batch, split, chunks in product(schedules, all_batches, splits(instance), product(*lists)):
        yield Plan(
            instance=instance.fingerprint,
            batch=batch,
            layers=split,
            placement=dies + dies[::-1],
            chunks=dict(zip(map(str, counts), chunks, strict=True)),
            schedule=schedule,
        )


def plans_of(instance: Instance) -> int:
    """How many plans `every_v_plan` yields."""
    count = 3 * len(batches(instance)) * len(splits(instance))
    for tokens in instance.workload.uncached_counts:
        count *= len(cut_lists(instance, tokens))
    return count


def runs_of(instance: Instance, plans: list[Plan]) -> list[tuple[Plan, float]]:
    """The plans that run, with their values."""
    values = zip(plans, Evaluator(instance).values(plans), strict=True)
    return [(plan, value) for plan, value in values if value is not None]


def keeps_rules(instance: Instance, plan: Plan) -> bool:
    """Whether no static rule is broken."""
    return all(finding.ok for finding in check(instance, plan))


def v_neighbours(instance: Instance, plan: Plan) -> Iterator[Plan]:
    """Plans that differ in one boundary, the batch, the schedule, the split, or two dies."""
    yield from neighbours(instance.with_pipeline(layers=plan.layers), plan)
    yield from (plan.model_copy(update={"schedule": name}) for name in SCHEDULES if name != plan.schedule)
    for split in splits(instance):
        if split != plan.layers:
            yield plan.model_copy(update={"layers": split, "spill": ()})


def v_descend(
    evaluator: Evaluator, plan: Plan, promised: dict[int, float | None], replays: int
) -> Iterator[tuple[Plan, float]]:
    """Local search that minimises value - bound of the plan's batch; every plan that runs is handed out."""
    best: float | None = None
    queue = [plan]
    while queue and replays > 0:
        here, replays = queue.pop(0), replays - 1
        value = evaluator.value(here)
        if value is None:
            continue
        yield here, value
        slack = value - (promised[here.batch] or 0.0)
        if best is None or slack < best:
            best, queue = slack, list(v_neighbours(evaluator.instance, here))
