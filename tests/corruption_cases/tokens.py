"""Corruptions of batch and chunks."""

from __future__ import annotations

from tests.corruption_cases.case import TWO_SHAPES, TWO_STAGES, V_DIES, Corruption, V

TOKENS: tuple[Corruption, ...] = (
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
    # The first of two dies starts 2*2 - 2 = 2 chunks before the first tail, and 1 may be in flight. One chunk runs.
    Corruption(
        "v_window",
        "vpp",
        (1,),
        "chunks",
        V,
        {**V, "chunks": {"2048": [2048]}},
        {**TWO_STAGES, "pipeline__max_in_flight": 1},
    ),
    # The longest list counts: two chunks, one too many.
    Corruption(
        "v_window",
        "the longer list",
        (1,),
        "chunks",
        {**V, "chunks": {"2048": [1024, 1024], "1024": [1024]}},
        {**V, "chunks": {"2048": [2048], "1024": [1024]}},
        {
            "workload": {"trace": [{"tokens": 2048}, {"tokens": 1024}]},
            **TWO_STAGES,
            "pipeline__max_in_flight": 1,
        },
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
)
