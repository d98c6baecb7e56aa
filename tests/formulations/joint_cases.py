"""Random instances of two or three stages, small enough to replay every plan, whose times are round numbers."""

from __future__ import annotations

from typing import Any

from instances.instance import Instance
from solver.evaluate import Evaluator
from tests.brute_force import every_plan
from tests.tiny import Data, Recipe

FAST, SLOW = 10**6, 20_000
"""Bytes a second: transfers that never wait for each other, and ones that may."""


def small_instance(seed: int, *, tight: bool = False, **pipeline: Any) -> Instance:
    """At most 400 plans; ``tight``: with memory for less than a wave on some stage, and whole chunks as spill.

    Without it links are fast, so that no transfer waits for another one.
    """
    recipe = Recipe.seeded(31, seed)
    stages = recipe.choice((1, 2, 2, 2, 2, 3))
    quanta = recipe.choice((2, 3)) if not tight else 3 if stages < 3 else 2
    host = tight and stages == 2 and recipe.chance(25)
    quantum = recipe.choice((2, 4))
    rest = recipe.integer(1, quantum)
    layers = recipe.choice((stages, stages + 1)) if stages > 1 else 2
    free = not tight and recipe.chance(50)
    data: Data = {
        "name": "small",
        "hardware": _hardware(recipe, stages, tight=tight, host=host),
        "model": _model(recipe, layers),
        "workload": _workload(recipe, (quanta - 1) * quantum + rest, trace=not tight and recipe.chance(30)),
        "pipeline": {
            "stages": stages,
            "chunk_quantum": quantum,
            "max_chunks": recipe.choice((2, 3, 3)),
            "max_batch": 1 if tight and stages == 3 else recipe.choice((1, 2)),
            "max_in_flight": recipe.integer(1, 3) if recipe.chance(25) else None,
            "overlap": not recipe.chance(30),
            "serve_fraction": recipe.choice((1, 1, 0.5)),
            "layers": "free" if free else "balanced",
            **pipeline,
        },
        "objective": recipe.choice(("mean_latency", "mean_latency", "makespan", "p95_latency")),
    }
    instance = Instance.read(data)
    return recipe.with_memory(instance) if tight else instance


def equal_requests(seed: int, *, tight: bool) -> Instance:
    """The same without a trace, and mostly of batch 1."""
    instance = small_instance(seed, tight=tight, **({"max_batch": 1} if seed % 3 else {}))
    tokens, cached = instance.workload.shapes[0]
    workload = {"requests": instance.workload.count, "tokens": tokens, "cached_tokens": cached}
    return Instance.read({**instance.canonical(), "workload": workload})


def best_values(instance: Instance, *, spill: bool) -> dict[int, float]:
    """Best replayed value of each batch that has a plan; ``spill``: whole chunks at every creditor too."""
    evaluator, best = Evaluator(instance), dict[int, float]()
    plans = list(every_plan(instance, spill=spill))
    for plan, value in zip(plans, evaluator.values(plans), strict=True):
        if value is not None:
            best[plan.batch] = min(value, best.get(plan.batch, value))
    return best


def _hardware(recipe: Recipe, stages: int, *, tight: bool, host: bool) -> Data:
    hardware: Data = {
        "rows": 1,
        "columns": stages,
        "link_bytes_per_s": recipe.choice((FAST, SLOW)) if tight else FAST,
        "hop_latency_s": recipe.choice((0, 0.001)),
        "die": {
            "peak_flops": recipe.choice((5000, 20_000)),
            "hbm_bytes": 10**9,
            "hbm_bytes_per_s": recipe.choice((10_000, 10**6)),
            "layer_overhead_s": recipe.choice((0, 0.01)),
            "chunk_overhead_s": recipe.choice((0, 0.02)),
        },
    }
    if recipe.chance(30):
        hardware["dies"] = [{"at": [0, recipe.integer(0, stages - 1)], "peak_flops": 2500}]
    if host:
        hardware["host"] = {"host_bytes": recipe.choice((32, 10**6)), "host_bytes_per_s": 10**5}
    return hardware


def _model(recipe: Recipe, layers: int) -> Data:
    heads = recipe.choice((1, 2))
    attention: Data = {"kind": "full", "heads": heads, "kv_heads": 1, "head_dim": 2}
    if recipe.chance(20):
        attention = {"kind": "sliding", "heads": heads, "kv_heads": 1, "head_dim": 2, "window": 3}
    full: Data = {"kind": "full", "heads": heads, "kv_heads": heads, "head_dim": 2}
    dense: Data = {"kind": "dense", "width": recipe.choice((4, 10))}
    return {
        "name": "small",
        "hidden": 4,
        "vocab": recipe.choice((5, 40)),
        "kinds": {
            "one": {"attention": attention, "feed_forward": dense},
            "two": {"attention": full, "feed_forward": dense},
        },
        "layers": [{"pattern": ["one"], "repeat": layers - 1}, {"pattern": ["two"], "repeat": 1}],
        "weight_bytes": 1,
        "kv_bytes": recipe.choice((1, 2)),
        "activation_bytes": 1,
    }


def _workload(recipe: Recipe, uncached: int, *, trace: bool) -> Data:
    cached = recipe.choice((0, 0, 3))
    if not trace:
        return {"requests": recipe.integer(1, 3), "tokens": uncached + cached, "cached_tokens": cached}
    arrivals = [0.0, recipe.choice((0.0, 0.125)), recipe.choice((0.25, 2.0))][: recipe.integer(2, 3)]
    return {"trace": [{"arrival_s": at, "tokens": uncached + cached, "cached_tokens": cached} for at in arrivals]}
