"""For every static rule plans that break it by a known amount, and beside each a plan just inside the limit.

The plans are `tests.builders.small_plan` with changes: a 2x2 mesh, 4 layers, 4 requests of 2048 tokens, quantum 256, at
most 8 chunks and batch 2; the plan has one layer a stage, stages on (0,0) (0,1) (1,1) (1,0), chunks of 1024 and 1024.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Corruption:
    """A plan that breaks one rule.

    ``amounts`` are those of the findings of that rule, in order, in ``unit``. ``plan`` and ``instance`` are changes as
    in `tests.builders`; ``inside`` changes the plan so that on the same instance every rule holds. ``also`` names rules
    that cannot but break too.
    """

    rule: str
    title: str
    amounts: tuple[float, ...]
    unit: str
    plan: Changes
    inside: Changes = field(default_factory=dict)
    instance: Changes = field(default_factory=dict)
    also: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.rule}: {self.title}"


def _row(stage: int, chunk: int, creditor: int | str, tokens: int, shape: list[int] | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {"stage": stage, "chunk": chunk, "creditor": creditor, "tokens": tokens}
    return row if shape is None else {**row, "shape": shape}


FREE: Changes = {"pipeline__layers": "free"}
FIVE_LAYERS: Changes = {"model__layers": [{"pattern": ["layer"], "repeat": 5}]}
HOST: Changes = {"hardware__host": {"host_bytes": "1 GB", "host_bytes_per_s": "1 GB/s"}}
TWO_SHAPES: Changes = {"workload": {"trace": [{"tokens": 2048}, {"tokens": 2304, "cached_tokens": 256}]}}

# Layers 0 and 2 keep full-attention KV, layers 1 and 3 a window of 64 tokens.
_FEED_FORWARD = {"kind": "dense", "width": 128}
ALTERNATING: Changes = {
    "model__kinds": {
        kind: {"attention": {"heads": 4, "kv_heads": 2, "head_dim": 16, **form}, "feed_forward": _FEED_FORWARD}
        for kind, form in (("global", {"kind": "full"}), ("local", {"kind": "sliding", "window": 64}))
    },
    "model__layers": [{"pattern": ["global", "local"], "repeat": 2}],
}

# A layer has 64*16*(2*4 + 2*2) = 12,288 weights of projections, 3*64*128 = 24,576 of the feed-forward and 2*64 = 128 of
# norms: 36,992, at 2 bytes 73,984 bytes. Embedding and head have 1000*64*2 = 128,000 bytes each, the final norm 64*2 =
# 128. The workspace of one request is 1024*(2*64 + 128)*2 = 524,288 bytes.
# A V over two dies has stages 0 and 3 on the first, stages 1 and 2 on the second.
V_DIES = [[0, 0], [0, 1], [0, 1], [0, 0]]
V: Changes = {"schedule": "vpp", "placement": V_DIES}
TWO_STAGES: Changes = {"pipeline__stages": 2}

LAYER_BYTES = 73_984
TABLE_BYTES = 128_000
FINAL_NORM_BYTES = 128
WORKSPACE_BYTES = 524_288
FIRST_BYTES = LAYER_BYTES + TABLE_BYTES + WORKSPACE_BYTES  # 726,272
MIDDLE_BYTES = LAYER_BYTES + WORKSPACE_BYTES  # 598,272
LAST_BYTES = LAYER_BYTES + TABLE_BYTES + FINAL_NORM_BYTES + WORKSPACE_BYTES  # 726,400

CORRUPTIONS: tuple[Corruption, ...] = (
    # 3 entries for 4 stages.
    Corruption("stage_count", "a die too few", (1,), "stages", {"placement": [[0, 0], [0, 1], [1, 1]]}),
    # 3 dies and 5 layer counts for 4 stages.
    Corruption(
        "stage_count",
        "a die too few, a layer count too many",
        (1, 1),
        "stages",
        {"placement": [[0, 0], [0, 1], [1, 1]], "layers": [1, 1, 1, 1, 1]},
        {"layers": [1, 1, 1, 2]},
        {**FREE, **FIVE_LAYERS},
    ),
    Corruption(
        "stage_count",
        "two stages of two layers instead of four",
        (2, 2),
        "stages",
        {"placement": [[0, 0], [0, 1]], "layers": [2, 2]},
        instance=FREE,
    ),
    # A V has two stages a die: 4, not 2.
    Corruption(
        "stage_count",
        "half a V",
        (2, 2),
        "stages",
        {"schedule": "vpp", "placement": [[0, 0], [0, 1]], "layers": [2, 2]},
        V,
        {**FREE, **TWO_STAGES},
    ),
    # Rows 0 and 1 exist, row 2 does not.
    Corruption("placement_live", "outside", (1,), "dies", {"placement": [[0, 0], [0, 1], [1, 1], [2, 0]]}),
    Corruption(
        "placement_live",
        "disabled",
        (1,),
        "dies",
        {"placement": [[0, 1], [0, 0], [1, 0]], "layers": [1, 1, 2]},
        {"placement": [[1, 1], [0, 1], [0, 0]], "layers": [1, 1, 2]},
        {"pipeline__stages": 3, "hardware__disabled_dies": [[1, 0]]},
    ),
    # 2 stages on one die, 1 too many.
    Corruption("placement_injective", "two", (1,), "stages", {"placement": [[0, 0], [0, 1], [1, 1], [1, 1]]}),
    # 3 stages on one die, 2 too many; then two dies with 1 too many each.
    Corruption("placement_injective", "three", (2,), "stages", {"placement": [[0, 0], [1, 1], [1, 1], [1, 1]]}),
    Corruption("placement_injective", "pairs", (1, 1), "stages", {"placement": [[0, 0], [0, 0], [1, 1], [1, 1]]}),
    # In a V a die may hold two stages, these four are 2 too many; then stage 1 is too many beside stages 0 and 3.
    Corruption(
        "placement_injective",
        "two folds",
        (2,),
        "stages",
        {"schedule": "vpp", "placement": [[0, 0]] * 4},
        V,
        TWO_STAGES,
    ),
    Corruption(
        "placement_injective",
        "a fold and a half",
        (1,),
        "stages",
        {"schedule": "vpp-async", "placement": [[0, 0], [0, 0], [0, 1], [0, 0]]},
        {**V, "schedule": "vpp-async"},
        TWO_STAGES,
        also=frozenset({"v_fold"}),
    ),
    # Stage 3 belongs to the die of stage 0.
    Corruption(
        "v_fold",
        "a tail elsewhere",
        (1,),
        "dies",
        {"schedule": "vpp", "placement": [[0, 0], [0, 1], [0, 1], [1, 0]]},
        V,
        TWO_STAGES,
    ),
    # Stages 0 and 2, and 1 and 3, share dies instead of 0 and 3, and 1 and 2: two wrong tails, and no fold at either die.
    Corruption(
        "v_fold",
        "round and round",
        (1, 1),
        "dies",
        {"schedule": "vpp-packed", "placement": [[0, 0], [0, 1], [0, 0], [0, 1]]},
        {**V, "schedule": "vpp-packed"},
        TWO_STAGES,
        also=frozenset({"placement_injective"}),
    ),
    # (0,1) has lost both its links; it holds stage 1, and the other two are reached from stage 0.
    Corruption(
        "placement_connected",
        "a die without links",
        (1,),
        "dies",
        {"placement": [[0, 0], [0, 1], [1, 1]], "layers": [1, 1, 2]},
        {"placement": [[0, 0], [1, 0], [1, 1]], "layers": [1, 1, 2]},
        {"pipeline__stages": 3, "hardware__disabled_links": [[[0, 0], [0, 1]], [[1, 1], [0, 1]]]},
    ),
    # Seen from stage 0 on that die, the other two are out of reach.
    Corruption(
        "placement_connected",
        "the first die without links",
        (1, 1),
        "dies",
        {"placement": [[0, 1], [0, 0], [1, 0]], "layers": [1, 1, 2]},
        {"placement": [[1, 1], [0, 0], [1, 0]], "layers": [1, 1, 2]},
        {"pipeline__stages": 3, "hardware__disabled_links": [[[0, 0], [0, 1]], [[1, 1], [0, 1]]]},
    ),
    # On a row of three the middle die is dead, and nothing routes through it.
    Corruption(
        "placement_connected",
        "a dead die between",
        (1,),
        "dies",
        {"placement": [[0, 0], [0, 2]], "layers": [2, 2]},
        {"placement": [[0, 2], [0, 3]], "layers": [2, 2]},
        {"pipeline__stages": 2, "hardware__rows": 1, "hardware__columns": 4, "hardware__disabled_dies": [[0, 1]]},
    ),
    # On a ring of five dies 1 and 3 are dead: 4 and 0 are still joined round the back, 2 is alone.
    Corruption(
        "placement_connected",
        "a broken ring",
        (1,),
        "dies",
        {"placement": [[0, 0], [0, 2]], "layers": [2, 2]},
        {"placement": [[0, 0], [0, 4]], "layers": [2, 2]},
        {
            **TWO_STAGES,
            "hardware__rows": 1,
            "hardware__columns": 5,
            "hardware__topology": "torus",
            "hardware__disabled_dies": [[0, 1], [0, 3]],
        },
    ),
    # 1 - 0, and 1 - (-1).
    Corruption("stage_nonempty", "no layer", (1,), "layers", {"layers": [1, 0, 2, 1]}, instance=FREE),
    Corruption("stage_nonempty", "less than no layer", (2,), "layers", {"layers": [1, -1, 3, 1]}, instance=FREE),
    # 1 + 1 + 1 + 2 = 5 of 4 layers; 1 + 1 + 1 = 3 of 4.
    Corruption("layers_cover", "a layer too many", (1,), "layers", {"layers": [1, 1, 1, 2]}, instance=FREE),
    Corruption(
        "layers_cover",
        "a layer too few",
        (1,),
        "layers",
        {"layers": [1, 1, 1], "placement": [[0, 0], [0, 1], [1, 1]]},
        {"layers": [1, 2, 1], "placement": [[0, 0], [0, 1], [1, 1]]},
        {**FREE, "pipeline__stages": 3},
    ),
    # Balanced is 1, 1, 2: |2 - 1|, then |1 - 2|.
    Corruption(
        "layers_given",
        "the larger stage first",
        (1, 1),
        "layers",
        {"layers": [2, 1, 1], "placement": [[0, 0], [0, 1], [1, 1]]},
        {"layers": [1, 1, 2], "placement": [[0, 0], [0, 1], [1, 1]]},
        {"pipeline__stages": 3},
    ),
    # |1 - 3|, then |3 - 1|.
    Corruption(
        "layers_given",
        "not the given list",
        (2, 2),
        "layers",
        {"layers": [1, 3], "placement": [[0, 0], [0, 1]]},
        {"layers": [3, 1], "placement": [[0, 0], [0, 1]]},
        {"pipeline__stages": 2, "pipeline__layers": [3, 1]},
    ),
    # Over the 4 stages of a V the 5 layers are balanced as 1, 1, 1, 2: |2 - 1|, then |1 - 2|.
    Corruption(
        "layers_given",
        "an unbalanced V",
        (1, 1),
        "layers",
        {**V, "layers": [2, 1, 1, 1]},
        {**V, "layers": [1, 1, 1, 2]},
        {**FIVE_LAYERS, **TWO_STAGES},
    ),
    # Layers given for 2 stages say nothing about 4: the 2 layers of stages 2 and 3 have no place.
    Corruption(
        "layers_given",
        "a V where a pipeline is given",
        (2,),
        "layers",
        V,
        {"layers": [2, 2], "placement": [[0, 0], [0, 1]]},
        {**TWO_STAGES, "pipeline__layers": [2, 2]},
    ),
    # Stage 1 starts at layer 2; after 3 layers in stage 0 it starts at layer 3.
    Corruption(
        "forbidden_cuts",
        "one",
        (1,),
        "stages",
        {"layers": [2, 2], "placement": [[0, 0], [0, 1]]},
        {"layers": [3, 1], "placement": [[0, 0], [0, 1]]},
        {**FREE, "pipeline__stages": 2, "pipeline__forbidden_cuts": [1, 2]},
    ),
    # Stages start at 0, 1, 3, two of them where none may; then at 0, 2, 4.
    Corruption(
        "forbidden_cuts",
        "two",
        (1, 1),
        "stages",
        {"layers": [1, 2, 2], "placement": [[0, 0], [0, 1], [1, 1]]},
        {"layers": [2, 2, 1], "placement": [[0, 0], [0, 1], [1, 1]]},
        {**FREE, **FIVE_LAYERS, "pipeline__stages": 3, "pipeline__forbidden_cuts": [1, 3]},
    ),
    # 3 - 2.
    Corruption("batch_range", "one too many", (1,), "requests", {"batch": 3}, {"batch": 2}),
    # The list for 2048 is missing; the list for 1024 serves nobody; both.
    Corruption("chunk_lists", "missing", (1,), "lists", {"chunks": {}}),
    Corruption("chunk_lists", "superfluous", (1,), "lists", {"chunks": {"2048": [1024, 1024], "1024": [1024]}}),
    Corruption("chunk_lists", "another", (1, 1), "lists", {"chunks": {"1024": [1024]}}),
    # Requests of 2048 and of 2304 with 256 cached have 2048 tokens to compute: one list, none for 2304.
    Corruption(
        "chunk_lists",
        "cached tokens count",
        (1,),
        "lists",
        {"chunks": {"2048": [2048], "2304": [2304]}},
        {},
        TWO_SHAPES,
    ),
    # 1024 + 768 = 2048 - 256; 1024 + 1024 + 1 = 2048 + 1.
    Corruption("chunks_cover", "too little", (256,), "tokens", {"chunks": {"2048": [1024, 768]}}),
    Corruption("chunks_cover", "too much", (1,), "tokens", {"chunks": {"2048": [1024, 1024, 1]}}),
    # 1000 = 4*256 - 24; 1100 = 4*256 + 76. The last chunk takes what remains.
    Corruption("chunk_quantum", "below", (24,), "tokens", {"chunks": {"2048": [1000, 1048]}}),
    Corruption("chunk_quantum", "above", (76,), "tokens", {"chunks": {"2048": [1100, 948]}}),
    # 128 is as far from 0 as from 256; both first chunks are off.
    Corruption("chunk_quantum", "between", (128, 128), "tokens", {"chunks": {"2048": [128, 128, 1792]}}),
    # 1 - 0; 1 - (-256).
    Corruption("chunk_quantum", "empty", (1,), "tokens", {"chunks": {"2048": [1024, 0, 1024]}}),
    Corruption("chunk_quantum", "negative", (257,), "tokens", {"chunks": {"2048": [1024, -256, 1280]}}),
    Corruption(
        "chunk_quantum",
        "only the last one may be odd",
        (28,),
        "tokens",
        # 2000 - 1024 = 976 = 4*256 - 48; 740 = 3*256 - 28.
        {"chunks": {"2000": [740, 1260]}},
        {"chunks": {"2000": [1024, 976]}},
        {"workload__tokens": 2000},
    ),
    # 8 chunks of 256, at most 6; 6 chunks.
    Corruption(
        "chunk_count",
        "too many",
        (2,),
        "chunks",
        {"chunks": {"2048": [256] * 8}},
        {"chunks": {"2048": [256] * 5 + [768]}},
        {"pipeline__max_chunks": 6},
    ),
    # The first of two dies starts 2*2 - 2 = 2 chunks before the tail of the first, and 1 may be in flight. One chunk runs.
    Corruption(
        "v_window",
        "vpp",
        (1,),
        "chunks",
        V,
        {**V, "chunks": {"2048": [2048]}},
        {**TWO_STAGES, "pipeline__max_in_flight": 1},
    ),
    # Without waiting for tails it starts 2*2 - 1 = 3 chunks of 4, and 1 may be in flight.
    Corruption(
        "v_window",
        "vpp-async",
        (2,),
        "chunks",
        {"schedule": "vpp-async", "placement": V_DIES, "chunks": {"2048": [512] * 4}},
        {"schedule": "vpp-async", "placement": V_DIES, "chunks": {"2048": [2048]}},
        {**TWO_STAGES, "pipeline__max_in_flight": 1},
    ),
    # 2 may be in flight: enough for vpp, or for two chunks; 3 are not, nor packed waves of two chunks each.
    Corruption(
        "v_window",
        "three chunks",
        (1,),
        "chunks",
        {"schedule": "vpp-async", "placement": V_DIES, "chunks": {"2048": [512, 512, 1024]}},
        {"schedule": "vpp", "placement": V_DIES, "chunks": {"2048": [512, 512, 1024]}},
        {**TWO_STAGES, "pipeline__max_in_flight": 2},
    ),
    Corruption(
        "v_window",
        "packed waves",
        (1,),
        "chunks",
        {"schedule": "vpp-packed", "placement": V_DIES},
        {"schedule": "vpp-async", "placement": V_DIES},
        {**TWO_STAGES, "pipeline__max_in_flight": 2},
    ),
    # Stages are 0..3, chunks 0..1, the only shape is (2048, 0).
    Corruption(
        "spill_stage", "no such stage", (1,), "rows", {"spill": [_row(4, 0, 1, 256)]}, {"spill": [_row(3, 0, 1, 256)]}
    ),
    Corruption(
        "spill_stage", "no such chunk", (1,), "rows", {"spill": [_row(0, 2, 1, 256)]}, {"spill": [_row(0, 0, 1, 256)]}
    ),
    Corruption(
        "spill_stage",
        "no such shape",
        (1,),
        "rows",
        {"spill": [_row(0, 0, 1, 256, [2048, 256])]},
        {"spill": [_row(0, 0, 1, 256, [2048, 0])]},
    ),
    # Two shapes, and a row that names neither: of three such rows none is anybody's.
    Corruption(
        "spill_stage",
        "which shape",
        (1, 1),
        "rows",
        {"spill": [_row(0, 0, 1, 256), _row(0, 0, 2, 256), _row(0, 0, 1, 256, [2304, 256])]},
        {"spill": [_row(0, 0, 1, 256, [2048, 0]), _row(0, 0, 1, 256, [2304, 256])]},
        TWO_SHAPES,
    ),
    # Chunk 1 of 2 is the last: all its tokens are too many. A row of no tokens counts as 1.
    Corruption(
        "spill_last_chunk",
        "spilled",
        (256,),
        "tokens",
        {"spill": [_row(0, 1, 1, 256)]},
        {"spill": [_row(0, 0, 1, 256)]},
    ),
    Corruption(
        "spill_last_chunk",
        "nothing of it",
        (1,),
        "tokens",
        {"spill": [_row(0, 1, 1, 0)]},
        {"spill": [_row(0, 0, 1, 0)]},
    ),
    Corruption(
        "spill_creditor",
        "no such stage",
        (256,),
        "tokens",
        {"spill": [_row(0, 0, 4, 256)]},
        {"spill": [_row(0, 0, 3, 256)]},
    ),
    Corruption(
        "spill_creditor", "itself", (256,), "tokens", {"spill": [_row(1, 0, 1, 256)]}, {"spill": [_row(1, 0, 0, 256)]}
    ),
    Corruption("spill_creditor", "no host", (256,), "tokens", {"spill": [_row(1, 0, "host", 256)]}),
    # Two stages on one die break placement_injective as well.
    Corruption(
        "spill_creditor",
        "its own die",
        (256,),
        "tokens",
        {"spill": [_row(2, 0, 3, 256)], "placement": [[0, 0], [0, 1], [1, 1], [1, 1]]},
        {"spill": [_row(2, 0, 3, 256)]},
        also=frozenset({"placement_injective"}),
    ),
    # Stages 0 and 3 of a V share a die.
    Corruption(
        "spill_creditor",
        "its own die in a V",
        (256,),
        "tokens",
        {**V, "spill": [_row(0, 0, 3, 256)]},
        {**V, "spill": [_row(0, 0, 2, 256)]},
        TWO_STAGES,
    ),
    # Creditors 1 and 2 of a V are one memory.
    Corruption(
        "spill_once",
        "one die by two names",
        (1,),
        "rows",
        {**V, "spill": [_row(0, 0, 1, 128), _row(0, 0, 2, 128)]},
        {**V, "spill": [_row(0, 0, 1, 128), _row(3, 0, 2, 128)]},
        TWO_STAGES,
    ),
    # Of two or three rows for one place one may stay. A row that names the only shape is as one that names none.
    Corruption(
        "spill_once",
        "doubled",
        (1,),
        "rows",
        {"spill": [_row(0, 0, 1, 128), _row(0, 0, 1, 256)]},
        {"spill": [_row(0, 0, 1, 128), _row(0, 0, 2, 256)]},
    ),
    Corruption(
        "spill_once",
        "thrice",
        (2,),
        "rows",
        {"spill": [_row(0, 0, "host", 128), _row(0, 0, "host", 256, [2048, 0]), _row(0, 0, "host", 128)]},
        {"spill": [_row(0, 0, "host", 128), _row(1, 0, "host", 256, [2048, 0]), _row(0, 0, 1, 128)]},
        HOST,
    ),
    # 1025 of 1024 tokens; 512 + 513 of 1024 with two creditors.
    Corruption(
        "spill_within_chunk",
        "one creditor",
        (1,),
        "tokens",
        {"spill": [_row(0, 0, 1, 1025)]},
        {"spill": [_row(0, 0, 1, 1024)]},
    ),
    Corruption(
        "spill_within_chunk",
        "two creditors",
        (1,),
        "tokens",
        {"spill": [_row(0, 0, 1, 512), _row(0, 0, "host", 513)]},
        {"spill": [_row(0, 0, 1, 512), _row(0, 0, "host", 512)]},
        HOST,
    ),
    # Stages 1 and 3 hold a sliding layer each, stages 0 and 2 a full one.
    Corruption(
        "spill_kind",
        "only a window",
        (256, 1),
        "tokens",
        {"spill": [_row(1, 0, 0, 256), _row(3, 0, 0, 1)]},
        {"spill": [_row(0, 0, 1, 256), _row(2, 0, 1, 1)]},
        ALTERNATING,
    ),
    # With two layers a stage each stage holds a full one: stage 1 may spill. With 3 + 1 it may not.
    Corruption(
        "spill_kind",
        "no full layer left",
        (256,),
        "tokens",
        {"layers": [3, 1], "placement": [[0, 0], [0, 1]], "spill": [_row(1, 0, 0, 256)]},
        {"layers": [2, 2], "placement": [[0, 0], [0, 1]], "spill": [_row(1, 0, 0, 256)]},
        {**ALTERNATING, **FREE, "pipeline__stages": 2},
    ),
    # 1 byte less than the last stage needs on one die, which the first stage may have: it needs 128 less.
    Corruption(
        "capacity_at_rest",
        "the last stage",
        (1,),
        "bytes",
        {},
        {"placement": [[1, 0], [0, 1], [1, 1], [0, 0]]},
        {"hardware__dies": [{"at": [1, 0], "hbm_bytes": LAST_BYTES - 1}]},
    ),
    # All four dies 1000 bytes short of two requests' workspace in the middle, 2*524,288 + 73,984 = 1,122,560. The first
    # stage needs 128,000 more than that, the last 128,128.
    Corruption(
        "capacity_at_rest",
        "two requests at once",
        (129_000, 1000, 1000, 129_128),
        "bytes",
        {"batch": 2},
        {"batch": 1},
        {"hardware__die__hbm_bytes": 1_121_560},
    ),
    # Chunks of 2048 tokens take twice the workspace, on exactly the memory of the last stage: it is 524,288 short, the
    # first 128 less, the others 128,128 less.
    Corruption(
        "capacity_at_rest",
        "one chunk",
        (524_160, 396_160, 396_160, 524_288),
        "bytes",
        {"chunks": {"2048": [2048]}},
        {},
        {"hardware__die__hbm_bytes": LAST_BYTES},
    ),
    # Two stages on a die pay two weights and one workspace: 73,984 + 202,112 + 524,288 = 800,384.
    Corruption(
        "capacity_at_rest",
        "two stages on one die",
        (384,),
        "bytes",
        {"placement": [[0, 0], [0, 1], [1, 1], [1, 1]]},
        {},
        {"hardware__die__hbm_bytes": 800_000},
        also=frozenset({"placement_injective"}),
    ),
    # In a V the first die has layers 0 and 3, both tables and one workspace: 2*73,984 + 2*128,000 + 128 + 524,288 =
    # 928,384; the second has 2*73,984 + 524,288 = 672,256.
    Corruption(
        "capacity_at_rest",
        "both ends of a V",
        (928_384 - 800_000,),
        "bytes",
        V,
        {"layers": [2, 2], "placement": [[0, 0], [0, 1]]},
        {**TWO_STAGES, "hardware__die__hbm_bytes": 800_385},
    ),
    # The short last wave of one request does not count, nor the batch of 2 where no two requests are alike.
    Corruption(
        "capacity_at_rest",
        "the largest wave counts",
        (524_288 - 1000,),
        "bytes",
        {"batch": 2, "chunks": {"2048": [1024, 1024]}},
        {"batch": 1},
        {
            "workload": {"trace": [{"tokens": 2048}] * 3},
            "hardware__dies": [{"at": [1, 0], "hbm_bytes": LAST_BYTES + 1000}],
        },
    ),
)
