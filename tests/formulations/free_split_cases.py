"""Random instances with free layers, and every split and every chunk list of them under the replay."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator
from tests.brute_force import cut_lists, splits
from tests.tiny import Recipe

MOST_PLANS = 700


def random_instance(recipe: Recipe) -> Instance:
    """Two to five stages on a row of dies, up to nine layers of one or two kinds, some cuts forbidden."""
    columns = recipe.integer(2, 5)
    hardware = {**recipe.hardware(), "rows": 1, "columns": columns, "wafers": [1, 1], "disabled_dies": [], "dies": []}
    model = recipe.model()
    if recipe.chance(50):
        model["layers"] = [{"pattern": [recipe.choice(("one", "two"))], "repeat": recipe.integer(columns, columns + 4)}]
    else:
        mixed = recipe.choice((["one", "two"], ["two", "one", "one"]))
        model["layers"] = [{"pattern": mixed, "repeat": recipe.integer(1, 3)}, {"pattern": ["one"], "repeat": 2}]
    layers = sum(len(run["pattern"]) * run["repeat"] for run in model["layers"])
    stages = recipe.integer(2, min(columns, layers))
    forbidden = [cut for cut in range(1, layers) if recipe.chance(15)]
    pipeline = {
        "stages": stages,
        "chunk_quantum": recipe.choice((2, 3)),
        "max_chunks": recipe.choice((1, 2, 3, 4, 6)),
        "max_batch": recipe.integer(1, 2),
        "layers": "free",
        "forbidden_cuts": forbidden if layers - 1 - len(forbidden) >= stages - 1 else [],
    }
    equal = {"requests": recipe.integer(1, 3), "tokens": recipe.integer(4, 10)}
    return Instance.read(
        {
            "name": "free",
            "hardware": hardware,
            "model": model,
            "workload": equal if recipe.chance(70) else recipe.workload(),
            "pipeline": pipeline,
            "costs": recipe.costs(),
            "objective": recipe.choice(("mean_latency", "makespan", "p95_latency")),
        }
    )


def every_split_and_cut(instance: Instance, batch: int) -> Iterator[Plan]:
    """All splits and chunk lists of one batch, stages along the row: a bound holds for every placement."""
    counts = instance.workload.uncached_counts
    placement = tuple((0, stage) for stage in range(instance.pipeline.stages))
    lists = [cut_lists(instance, count) for count in counts]
    for split, chunks in product(splits(instance), product(*lists)):
        named = dict(zip(map(str, counts), chunks, strict=True))
        yield Plan(instance=instance.fingerprint, batch=batch, layers=split, placement=placement, chunks=named)


def plans_of(instance: Instance) -> int:
    """How many plans `every_split_and_cut` yields."""
    count = len(splits(instance))
    for tokens in instance.workload.uncached_counts:
        count *= len(cut_lists(instance, tokens))
    return count


def best_value(instance: Instance, batch: int) -> float | None:
    """Best replayed value over all splits and chunk lists of a batch."""
    values = Evaluator(instance).values(list(every_split_and_cut(instance, batch)))
    return min((value for value in values if value is not None), default=None)
