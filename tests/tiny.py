"""Random tiny instances and plans: every feature now and then, numbers whose transfers take whole picoseconds.

One recipe, two sources of choices, as in ``tests.strategies``: Hypothesis and a numpy Generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from instances.instance import Instance
from instances.plan import Plan, SpillRow
from tests.strategies import Integer

T = TypeVar("T")
Data = dict[str, Any]

GRIDS = ((1, 2, 1, 1), (1, 3, 1, 1), (2, 2, 1, 1), (1, 2, 2, 1), (2, 1, 1, 2))
"""Rows and columns of a wafer, rows and columns of wafers."""
OBJECTIVES = ("mean_latency", "makespan", "p95_latency")
ATTENTIONS: tuple[Data, ...] = (
    {"kind": "full", "heads": 2, "kv_heads": 1, "head_dim": 2},
    {"kind": "full", "heads": 4, "kv_heads": 4, "head_dim": 3},
    {"kind": "sliding", "heads": 2, "kv_heads": 2, "head_dim": 2, "window": 3},
    {
        "kind": "mla",
        "heads": 2,
        "q_lora_rank": None,
        "kv_lora_rank": 3,
        "qk_nope_head_dim": 2,
        "qk_rope_head_dim": 1,
        "v_head_dim": 2,
    },
)
FEED_FORWARDS: tuple[Data, ...] = (
    {"kind": "dense", "width": 4},
    {"kind": "dense", "width": 9, "gated": False},
    {"kind": "moe", "experts": 4, "top_k": 1, "expert_width": 3, "shared_width": 2},
)


class Recipe:
    """How instances and plans are put together from inclusive random integers."""

    def __init__(self, integer: Integer) -> None:
        self.integer = integer

    @classmethod
    def seeded(cls, *seed: int) -> Recipe:
        """Choices from a numpy Generator."""
        rng = np.random.default_rng(seed)
        return cls(lambda low, high: int(rng.integers(low, high, endpoint=True)))

    def choice(self, items: Sequence[T]) -> T:
        """One of the items, each as likely."""
        return items[self.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """Yes in so many of a hundred cases; small values say no, so that shrinking takes features away."""
        return self.integer(0, 99) >= 100 - percent

    def instance(self, *, tight: bool = False, options: bool = False, **changes: Any) -> Instance:
        """An instance of at most three stages; ``tight``: little memory; ``options``: those for other simulators too.

        ``changes`` replaces whole parts (hardware, model, workload, pipeline, costs, objective).
        """
        data = {"hardware": self.hardware(), "model": self.model(), "workload": self.workload(), **changes}
        hardware, layers = data["hardware"], sum(len(run["pattern"]) * run["repeat"] for run in data["model"]["layers"])
        live = hardware["rows"] * hardware["columns"] * hardware["wafers"][0] * hardware["wafers"][1]
        live -= len(hardware["disabled_dies"])
        stages = self.integer(1, min(3, live, layers))
        rest = {
            "name": "tiny",
            "pipeline": self.pipeline(stages, layers, host=bool(hardware["host"]), options=options),
            "costs": self.costs(),
            "objective": self.choice(OBJECTIVES),
        }
        instance = Instance.read({**rest, **data})
        return self.with_memory(instance) if tight else instance

    def hardware(self) -> Data:
        """Fast and slow links, seams, a dead die or one that differs, a host."""
        rows, columns, wafer_rows, wafer_columns = self.choice(GRIDS)
        cells = [(r, c) for r in range(rows * wafer_rows) for c in range(columns * wafer_columns)]
        hardware: Data = {
            "rows": rows,
            "columns": columns,
            "wafers": [wafer_rows, wafer_columns],
            "link_bytes_per_s": self.choice((1000, 5000, 20_000, 10**6)),
            "hop_latency_s": self.choice((0, 0, 0.001, 0.02)),
            "die": {
                "peak_flops": self.choice((5000, 20_000, 10**6)),
                "hbm_bytes": 10**9,
                "hbm_bytes_per_s": self.choice((2000, 10_000, 10**6)),
                "gemm_efficiency": self.choice((1, 0.7)),
                "attention_efficiency": self.choice((1, 0.5)),
                "hbm_efficiency": self.choice((1, 0.8)),
                "layer_overhead_s": self.choice((0, 0, 0.003)),
                "chunk_overhead_s": self.choice((0, 0, 0.01)),
            },
            "disabled_dies": [list(cells[-1])] if len(cells) > 2 and self.chance(25) else [],
            "dies": [],
            "host": None,
        }
        if self.chance(40):
            hardware["wafer_link_bytes_per_s"] = self.choice((500, 100_000))
        if self.chance(30):
            key, value = self.choice((("peak_flops", 2500), ("hbm_bytes_per_s", 10**7), ("chunk_overhead_s", 0.1)))
            hardware["dies"] = [{"at": list(self.choice(cells)), key: value}]
        if self.chance(25):
            hardware["host"] = {"host_bytes": self.choice((64, 10**6)), "host_bytes_per_s": self.choice((2000, 10**5))}
        return hardware

    def model(self) -> Data:
        """One or two kinds of layers, two to five layers."""
        kinds = {
            name: {"attention": self.choice(ATTENTIONS), "feed_forward": self.choice(FEED_FORWARDS)}
            for name in ("one", "two")
        }
        patterns = (["one"], ["one"], ["one", "two"], ["two", "one", "one"])
        count = self.integer(1, 2)
        last = {"pattern": [self.choice(["one", "two"])], "repeat": 1}
        layers: list[Data] = [{"pattern": self.choice(patterns), "repeat": count}, last]
        return {
            "name": "tiny",
            "hidden": self.choice((2, 4)),
            "vocab": self.choice((5, 40)),
            "tied_embeddings": self.chance(20),
            "kinds": kinds,
            "layers": layers,
            "weight_bytes": self.choice((2, 1, 0.5, 17 / 32)),
            "kv_bytes": self.choice((2, 1, 0.5)),
            "activation_bytes": self.choice((2, 1)),
        }

    def workload(self) -> Data:
        """Equal requests, some with a cached prefix, or a trace of two shapes with arrivals."""
        if self.chance(60):
            cached = self.choice((0, 0, 3))
            return {"requests": self.integer(1, 4), "tokens": cached + self.integer(4, 13), "cached_tokens": cached}
        shapes = [(self.integer(4, 13), 0), (self.integer(8, 13), self.choice((0, 4)))]
        trace, arrival = [], 0.0
        for _ in range(self.integer(2, 4)):
            tokens, cached = self.choice(shapes)
            arrival += self.choice((0, 0, 0.05, 1, 7))
            trace.append({"arrival_s": arrival, "tokens": tokens, "cached_tokens": cached})
        return {"trace": trace}

    def pipeline(self, stages: int, layers: int, *, host: bool, options: bool) -> Data:
        """At most four or five quanta a request."""
        split: Any = self.choice(("balanced", "balanced", "free", "given"))
        if split == "given":
            ends = sorted(_drawn(self, range(1, layers), stages - 1))
            split = [stop - start for start, stop in pairwise([0, *ends, layers])]
        pipeline: Data = {
            "stages": stages,
            "chunk_quantum": self.choice((3, 4)),
            "max_chunks": self.choice((1, 2, 3, 4, 4, 8)),
            "max_batch": self.integer(1, 3),
            "max_in_flight": self.integer(1, stages + 1) if self.chance(25) else None,
            "overlap": not self.chance(30),
            "serve_fraction": self.choice((1, 1, 0.5, 0)),
            "layers": split,
        }
        if options:
            pipeline["switching"] = self.choice(("cut_through", "cut_through", "store_and_forward"))
            pipeline["routing"] = self.choice(("xy", "yx"))
            # The page does not say whether a transfer to the host counts as a send of its die.
            pipeline["one_send_per_die"] = not host and self.chance(20)
        return pipeline

    def costs(self) -> Data:
        """Roofline, or a quadratic."""
        if self.chance(75):
            return {"kind": "roofline"}
        return {
            "kind": "fitted",
            "chunk_s": self.choice((0, 0.01, 0.5)),
            "prefix_s": self.choice((0, 0.001)),
            "token_s": self.choice((0.01, 0.125)),
            "pair_s": self.choice((0, 0.004)),
        }

    def with_memory(self, instance: Instance) -> Instance:
        """The instance with memory for about one wave of the fullest stage, so that plans wait, spill or lock up."""
        plan = self.plan(instance, spill_percent=0)
        wave = min(plan.batch, len(instance.workload.all_requests()))
        needs = []
        for start, count in zip(plan.layer_starts, plan.layers, strict=True):
            cost, stop = instance.stage_cost, start + count
            for tokens, cached in instance.workload.shapes:
                largest = max(plan.chunk_sizes(tokens - cached))
                static = cost.weight_bytes(start, stop, start == 0, stop == instance.model.layer_count)
                static += cost.workspace_bytes(start, stop, wave, largest)
                held = float(cost.kv_held_bytes(start, stop, wave, tokens, largest))
                needs.append((static, held))
        share = self.choice((0.3, 0.5, 0.7, 0.85, 1.0))
        size = round(max(static + share * held for static, held in needs))
        hardware = instance.hardware
        die = hardware.die.model_copy(update={"hbm_bytes": float(max(1, size))})
        return instance.model_copy(update={"hardware": hardware.model_copy(update={"die": die})})

    def plan(self, instance: Instance, *, spill_percent: int = 50) -> Plan:
        """A plan that keeps every static rule but memory's."""
        pipeline, layers = instance.pipeline, instance.model.layer_count
        split = instance.fixed_layers
        if split is None:
            ends = sorted(_drawn(self, range(1, layers), pipeline.stages - 1))
            split = tuple(stop - start for start, stop in pairwise([0, *ends, layers]))
        placement = tuple(_drawn(self, instance.hardware.live_dies, pipeline.stages))
        chunks = {str(count): self.chunks(instance, count) for count in instance.workload.uncached_counts}
        plan = Plan(
            instance=instance.fingerprint,
            batch=self.integer(1, pipeline.max_batch),
            layers=split,
            placement=placement,
            chunks=chunks,
        )
        return plan.model_copy(update={"spill": tuple(self.spill(instance, plan, spill_percent))})

    def chunks(self, instance: Instance, uncached: int) -> tuple[int, ...]:
        """Chunk sizes of a request."""
        quantum = instance.pipeline.chunk_quantum
        inner = list(range(quantum, uncached, quantum))
        ends = sorted(_drawn(self, inner, self.integer(0, min(len(inner), instance.pipeline.max_chunks - 1))))
        return tuple(stop - start for start, stop in pairwise([0, *ends, uncached]))

    def spill(self, instance: Instance, plan: Plan, percent: int) -> list[SpillRow]:
        """Part of some chunks at other stages and at the host."""
        rows, shapes = [], instance.workload.shapes
        creditors: list[Any] = [*range(len(plan.layers)), *(["host"] if instance.hardware.host else [])]
        for tokens, cached in shapes:
            sizes = plan.chunk_sizes(tokens - cached)
            for stage, stop in enumerate(accumulate(plan.layers)):
                each = instance.stage_cost.spillable_bytes_per_token(stop - plan.layers[stage], stop)
                for chunk in range(len(sizes) - 1 if each else 0):
                    left = sizes[chunk]
                    for creditor in creditors:
                        amount = self.integer(0, left) if creditor != stage and self.chance(percent) else 0
                        left -= amount
                        if amount:
                            shape = (tokens, cached) if len(shapes) > 1 else None
                            row = {"stage": stage, "chunk": chunk, "creditor": creditor, "tokens": amount}
                            rows.append(SpillRow.model_validate({**row, "shape": shape}))
        return rows


def recipes() -> st.SearchStrategy[Recipe]:
    """A recipe whose choices Hypothesis makes and shrinks."""
    return st.builds(lambda data: Recipe(lambda low, high: int(data.draw(st.integers(low, high)))), st.data())


def _drawn(recipe: Recipe, items: Sequence[T], count: int) -> list[T]:
    """``count`` distinct items in random order."""
    left = list(items)
    return [left.pop(recipe.integer(0, len(left) - 1)) for _ in range(count)]


ONE_KIND: Data = {
    "attention": {"kind": "full", "heads": 1, "kv_heads": 1, "head_dim": 1},
    "feed_forward": {"kind": "dense", "width": 1},
}
"""With hidden 2 and widths of one byte: 8 + 6 weights and 4 of norms a layer, 2 bytes of KV a token."""


def line(layers: Sequence[int], *, fitted: Data | None = None, **parts: Data | str) -> Instance:
    """Stages of so many equal layers on a row of dies with links that take no time.

    ``fitted`` names the coefficients that are not 0; other parts are merged into hardware, model, workload, pipeline.
    """
    data: Data = {
        "name": "line",
        "hardware": {
            "rows": 1,
            "columns": len(layers),
            "link_bytes_per_s": 1e15,
            "die": {"peak_flops": 1e4, "hbm_bytes": 1e9, "hbm_bytes_per_s": 1e9},
        },
        "model": {
            "name": "line",
            "hidden": 2,
            "vocab": 2,
            "kinds": {"k": ONE_KIND},
            "layers": [{"pattern": ["k"], "repeat": sum(layers)}],
            "weight_bytes": 1,
            "kv_bytes": 1,
            "activation_bytes": 1,
        },
        "workload": {"requests": 1, "tokens": 4},
        "pipeline": {
            "stages": len(layers),
            "layers": list(layers),
            "chunk_quantum": 1,
            "max_chunks": 4,
            "max_batch": 1,
        },
        "objective": "makespan",
    }
    if fitted is not None:
        data["costs"] = {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 0, "pair_s": 0, **fitted}
    for name, part in parts.items():
        alone = isinstance(part, str) or name in ("workload", "costs")
        data[name] = part if alone else _merged(data[name], part)
    return Instance.read(data)


def _merged(old: Data, new: Any) -> Data:
    return {
        key: _merged(old[key], new[key]) if key == "die" and key in new else new.get(key, old.get(key))
        for key in {**old, **new}
    }
