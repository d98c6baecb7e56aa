"""Corruptions of spill, and of what a die holds at rest."""

from __future__ import annotations

from tests.corruption_cases.case import ALTERNATING, FREE, HOST, TWO_SHAPES, TWO_STAGES, Corruption, V, row

# A layer has 64*16*(2*4 + 2*2) = 12,288 weights of projections, 3*64*128 = 24,576 of the feed-forward and 2*64 = 128 of
# norms: 36,992, at 2 bytes 73,984 bytes. Embedding and head have 1000*64*2 = 128,000 bytes each, the final norm 64*2 =
# 128. The workspace of one request is 1024*(2*64 + 128)*2 = 524,288 bytes.
LAYER_BYTES = 73_984
TABLE_BYTES = 128_000
FINAL_NORM_BYTES = 128
WORKSPACE_BYTES = 524_288
FIRST_BYTES = LAYER_BYTES + TABLE_BYTES + WORKSPACE_BYTES  # 726,272
MIDDLE_BYTES = LAYER_BYTES + WORKSPACE_BYTES  # 598,272
LAST_BYTES = LAYER_BYTES + TABLE_BYTES + FINAL_NORM_BYTES + WORKSPACE_BYTES  # 726,400

MEMORY: tuple[Corruption, ...] = (
    # Stages are 0..3, chunks 0..1, the only shape is (2048, 0).
    Corruption(
        "spill_stage", "no such stage", (1,), "rows", {"spill": [row(4, 0, 1, 256)]}, {"spill": [row(3, 0, 1, 256)]}
    ),
    Corruption(
        "spill_stage", "no such chunk", (1,), "rows", {"spill": [row(0, 2, 1, 256)]}, {"spill": [row(0, 0, 1, 256)]}
    ),
    Corruption(
        "spill_stage",
        "no such shape",
        (1,),
        "rows",
        {"spill": [row(0, 0, 1, 256, [2048, 256])]},
        {"spill": [row(0, 0, 1, 256, [2048, 0])]},
    ),
    # There are two shapes, and two of the three rows name neither.
    Corruption(
        "spill_stage",
        "which shape",
        (1, 1),
        "rows",
        {"spill": [row(0, 0, 1, 256), row(0, 0, 2, 256), row(0, 0, 1, 256, [2304, 256])]},
        {"spill": [row(0, 0, 1, 256, [2048, 0]), row(0, 0, 1, 256, [2304, 256])]},
        TWO_SHAPES,
    ),
    # Chunk 1 of 2 is the last: all its tokens are too many. A row of no tokens counts as 1.
    Corruption(
        "spill_last_chunk",
        "spilled",
        (256,),
        "tokens",
        {"spill": [row(0, 1, 1, 256)]},
        {"spill": [row(0, 0, 1, 256)]},
    ),
    Corruption(
        "spill_last_chunk",
        "nothing of it",
        (1,),
        "tokens",
        {"spill": [row(0, 1, 1, 0)]},
        {"spill": [row(0, 0, 1, 0)]},
    ),
    Corruption(
        "spill_creditor",
        "no such stage",
        (256,),
        "tokens",
        {"spill": [row(0, 0, 4, 256)]},
        {"spill": [row(0, 0, 3, 256)]},
    ),
    Corruption(
        "spill_creditor", "itself", (256,), "tokens", {"spill": [row(1, 0, 1, 256)]}, {"spill": [row(1, 0, 0, 256)]}
    ),
    Corruption("spill_creditor", "no host", (256,), "tokens", {"spill": [row(1, 0, "host", 256)]}),
    # Two stages on one die break placement_injective as well.
    Corruption(
        "spill_creditor",
        "its own die",
        (256,),
        "tokens",
        {"spill": [row(2, 0, 3, 256)], "placement": [[0, 0], [0, 1], [1, 1], [1, 1]]},
        {"spill": [row(2, 0, 3, 256)]},
        also=frozenset({"placement_injective"}),
    ),
    # Stages 0 and 3 of a V share a die.
    Corruption(
        "spill_creditor",
        "its own die in a V",
        (256,),
        "tokens",
        {**V, "spill": [row(0, 0, 3, 256)]},
        {**V, "spill": [row(0, 0, 2, 256)]},
        TWO_STAGES,
    ),
    # Creditors 1 and 2 of a V are one memory.
    Corruption(
        "spill_once",
        "one die by two names",
        (1,),
        "rows",
        {**V, "spill": [row(0, 0, 1, 128), row(0, 0, 2, 128)]},
        {**V, "spill": [row(0, 0, 1, 128), row(3, 0, 2, 128)]},
        TWO_STAGES,
    ),
    # Of two or three rows for one place one may stay. A row that names the only shape is as one that names none.
    Corruption(
        "spill_once",
        "doubled",
        (1,),
        "rows",
        {"spill": [row(0, 0, 1, 128), row(0, 0, 1, 256)]},
        {"spill": [row(0, 0, 1, 128), row(0, 0, 2, 256)]},
    ),
    Corruption(
        "spill_once",
        "thrice",
        (2,),
        "rows",
        {"spill": [row(0, 0, "host", 128), row(0, 0, "host", 256, [2048, 0]), row(0, 0, "host", 128)]},
        {"spill": [row(0, 0, "host", 128), row(1, 0, "host", 256, [2048, 0]), row(0, 0, 1, 128)]},
        HOST,
    ),
    # 1025 of 1024 tokens; 512 + 513 of 1024 with two creditors.
    Corruption(
        "spill_within_chunk",
        "one creditor",
        (1,),
        "tokens",
        {"spill": [row(0, 0, 1, 1025)]},
        {"spill": [row(0, 0, 1, 1024)]},
    ),
    Corruption(
        "spill_within_chunk",
        "two creditors",
        (1,),
        "tokens",
        {"spill": [row(0, 0, 1, 512), row(0, 0, "host", 513)]},
        {"spill": [row(0, 0, 1, 512), row(0, 0, "host", 512)]},
        HOST,
    ),
    # Stages 1 and 3 hold a sliding layer each, stages 0 and 2 a full one.
    Corruption(
        "spill_kind",
        "only a window",
        (256, 1),
        "tokens",
        {"spill": [row(1, 0, 0, 256), row(3, 0, 0, 1)]},
        {"spill": [row(0, 0, 1, 256), row(2, 0, 1, 1)]},
        ALTERNATING,
    ),
    # With two layers a stage each stage holds a full one: stage 1 may spill. With 3 + 1 it may not.
    Corruption(
        "spill_kind",
        "no full layer left",
        (256,),
        "tokens",
        {"layers": [3, 1], "placement": [[0, 0], [0, 1]], "spill": [row(1, 0, 0, 256)]},
        {"layers": [2, 2], "placement": [[0, 0], [0, 1]], "spill": [row(1, 0, 0, 256)]},
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
        (928_384 - 800_385,),
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
