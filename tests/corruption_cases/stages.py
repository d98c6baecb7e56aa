"""Corruptions of the pipeline: numbers of stages, placement, layers."""

from __future__ import annotations

from tests.corruption_cases.case import FIVE_LAYERS, FREE, TWO_STAGES, Corruption, V, row

STAGES: tuple[Corruption, ...] = (
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
    # Stages 0 and 2, and 1 and 3, share dies instead of 0 and 3, and 1 and 2: two wrong tails, no fold at either die.
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
    # Whether a stage without layers, or beyond the last layer, may spill is nobody's question.
    Corruption(
        "stage_nonempty",
        "no layer, and spill",
        (1,),
        "layers",
        {"layers": [1, 0, 2, 1], "spill": [row(1, 0, 0, 256)]},
        {"spill": [row(1, 0, 0, 256)]},
        FREE,
    ),
    Corruption(
        "layers_cover",
        "a layer too many, and spill",
        (2,),
        "layers",
        {"layers": [1, 1, 2, 2], "spill": [row(3, 0, 0, 256)]},
        {"spill": [row(3, 0, 0, 256)]},
        FREE,
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
    # Layers given for 2 stages say nothing about 4: the 1 + 1 layers of stages 2 and 3 have no place.
    Corruption(
        "layers_given",
        "a V where a pipeline is given",
        (2,),
        "layers",
        {**V, "layers": [2, 1, 1, 1]},
        {"layers": [2, 3], "placement": [[0, 0], [0, 1]]},
        {**FIVE_LAYERS, **TWO_STAGES, "pipeline__layers": [2, 3]},
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
)
