"""The roofline, term by term, on dies of 1 FLOP/s or 1 byte/s."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.catalogue import load_hardware, load_model
from instances.costs import RooflineSpec, StageCost, make_costs
from instances.costs.roofline import chunked_pairs, touched_experts, window_pairs
from instances.errors import InputError
from instances.hardware import Die
from instances.model import Model
from tests.instances.model_builders import (
    DENSE,
    GQA,
    MLA,
    MOE,
    SLIDING,
    compute_bound,
    memory_bound,
    mixed,
    one_kind,
    slow_die,
)


def roofline(model: Model) -> StageCost:
    return make_costs(model, RooflineSpec())


def layer(model: Model, die: Die, batch: int, chunk: Any, prefix: Any) -> tuple[Any, Any, Any]:
    parts = roofline(model).layer_seconds(die, "layer", batch, chunk, prefix)
    return parts.gemm, parts.vector, parts.attention


def test_multi_head_flops() -> None:
    gemm, _, attention = layer(one_kind({**GQA, "kv_heads": 4}, DENSE), compute_bound(), 3, 2, 5)
    # 2*B*c*P = 2*3*2*(192 + 72).
    assert gemm == pytest.approx(2 * 3 * 2 * 264)
    # 4*B*heads*head_dim*pairs, pairs = 2*5 + 2*3/2 = 13: the first token meets 6 keys, the second 7.
    assert attention == pytest.approx(4 * 3 * 12 * 13)


def test_multi_query_bytes() -> None:
    gemm, vector, attention = layer(one_kind({**GQA, "kv_heads": 1}, DENSE), memory_bound(), 3, 2, 5)
    # Weights 120*2 and 72*2 bytes, and twice (for two groups) 2*B*c*hidden*2 = 96 bytes of activations.
    assert gemm == pytest.approx(240 + 144 + 2 * 96)
    # B*c*(3*6 + 8*4)*2.
    assert vector == pytest.approx(3 * 2 * 50 * 2)
    # B*(p+c)*12 bytes of KV.
    assert attention == pytest.approx(3 * 7 * 12)


def test_each_group_has_its_own_roofline() -> None:
    # Attention has 144 weights, the feed-forward 72. With 1 FLOP/s, 1.5 byte/s and B*c = 2: projections
    # max(576, (288 + 32)/1.5) = 576 and max(288, (144 + 32)/1.5) = 288: both compute-bound. With weights of 8 bytes the
    # projections take (1152 + 32)/1.5 = 789.3 and the feed-forward (576 + 32)/1.5 = 405.3.
    die = slow_die(hbm_bytes_per_s=1.5)
    assert layer(one_kind(GQA, DENSE), die, 1, 2, 0)[0] == pytest.approx(576 + 288)
    wide = one_kind(GQA, DENSE, weight_bytes=8)
    assert layer(wide, die, 1, 2, 0)[0] == pytest.approx((1184 + 608) / 1.5)
    # One wide group alone is memory-bound, the other stays compute-bound.
    mixed_widths = wide.with_bytes(weight_bytes={"dense": 2})
    assert layer(mixed_widths, die, 1, 2, 0)[0] == pytest.approx(1184 / 1.5 + 288)


def test_efficiencies_and_overheads() -> None:
    model = one_kind(GQA, DENSE, layers=3)
    die = compute_bound(gemm_efficiency=0.5, attention_efficiency=0.25, layer_overhead_s=7, chunk_overhead_s=11)
    # One token after none: gemm 2*216/0.5 = 864, attention 4*12*1/0.25 = 192, overhead 7 a layer and 11 a chunk.
    assert roofline(model).stage_seconds(die, 0, 3, 1, 1, 0) == pytest.approx(3 * (864 + 192 + 7) + 11)
    assert roofline(model).stage_seconds(die, 1, 2, 1, 1, 0) == pytest.approx(864 + 192 + 7 + 11)
    slow = memory_bound(hbm_efficiency=0.5)
    assert layer(model, slow, 1, 1, 0)[1] == pytest.approx(100 / 0.5)


def test_the_head_comes_once_and_only_where_asked() -> None:
    cost = roofline(one_kind(GQA, DENSE, layers=1))
    without = cost.stage_seconds(compute_bound(), 0, 1, 3, 2, 0)
    # 2*B*hidden*vocab = 2*3*4*10; on the memory side 4*10*2 bytes.
    assert cost.stage_seconds(compute_bound(), 0, 1, 3, 2, 0, head=True) - without == pytest.approx(240)
    assert cost.head_seconds(memory_bound(), 3) == pytest.approx(80)
    last = cost.stage_seconds(compute_bound(), 0, 1, 3, [2, 2], [0, 0], head=[False, True])
    assert (last - without).tolist() == pytest.approx([0, 240])


def test_touched_experts_in_the_memory_term() -> None:
    model = one_kind(GQA, MOE)
    # Two tokens: 8*(1 - (1 - 2/8)^2) = 3.5 experts of 36 weights; router 32, shared 48; 2 bytes each; activations 32.
    gemm = layer(model, memory_bound(), 1, 2, 0)[0]
    assert gemm == pytest.approx((144 * 2 + 32) + (32 + 48 + 3.5 * 36) * 2 + 32)
    # FLOPs count top_k experts, whatever was read: 2*2*(144 + 32 + 48 + 72).
    assert layer(model, compute_bound(), 1, 2, 0)[0] == pytest.approx(4 * 296)
    # The batch touches experts together: 2 sequences of 1 token as one of 2.
    assert layer(model, memory_bound(), 2, 1, 0)[0] == pytest.approx(float(gemm))


def test_touched_experts_is_the_expected_number() -> None:
    # E = 3, k = 1, two tokens: of 9 equally likely choices 3 touch one expert and 6 touch two: 15/9.
    assert touched_experts(3, 1, np.array([2.0])).tolist() == pytest.approx([15 / 9])
    assert touched_experts(4, 4, np.array([0.0, 1.0, 5.0])).tolist() == [0, 4, 4]
    # DeepSeek-V3: after 4096 tokens practically all 256.
    assert touched_experts(256, 8, np.array([1.0, 4096.0])).tolist() == pytest.approx([8, 256])


@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 50))
def test_chunked_pairs_against_the_sum(chunk: int, prefix: int, size: int) -> None:
    expected = sum((prefix + j - 1) % size + 1 for j in range(1, chunk + 1))
    assert chunked_pairs(np.array(float(chunk)), np.array(float(prefix)), size) == expected


def test_chunked_attention_by_hand() -> None:
    # Chunks of 5: tokens 4..7 (counted from 0) meet 5, 1, 2, 3 tokens: 11 pairs of 4 * 4 heads * 3 FLOPs.
    model = one_kind({**SLIDING, "chunked": True}, DENSE)
    assert layer(model, compute_bound(), 1, 4, 4)[2] == pytest.approx(4 * 4 * 3 * 11)
    # Read are the tokens from the start of the first one's chunk: 4 before and 4 new ones, 2 * 2 heads * 3 * 2 bytes.
    assert layer(model, memory_bound(), 1, 4, 4)[2] == pytest.approx(8 * 24)
    assert layer(model, memory_bound(), 1, 4, 5)[2] == pytest.approx(4 * 24)


def test_the_matrix_of_a_prediction_layer_is_timed() -> None:
    kind = {"attention": GQA, "feed_forward": DENSE}
    plain = one_kind(GQA, DENSE)
    extra = one_kind(GQA, DENSE, kinds={"layer": {**kind, "joins_embedding": True}})
    # 2 * 3 tokens * (2 * 4 * 4 weights) FLOPs more.
    more = layer(extra, compute_bound(), 1, 3, 0)[0] - layer(plain, compute_bound(), 1, 3, 0)[0]
    assert more == pytest.approx(2 * 3 * 2 * 4 * 4)


@given(st.integers(1, 40), st.integers(0, 60), st.integers(1, 30))
def test_window_pairs_against_the_sum(chunk: int, prefix: int, window: int) -> None:
    expected = sum(min(prefix + j, window) for j in range(1, chunk + 1))
    assert window_pairs(np.array(float(chunk)), np.array(float(prefix)), window) == expected


def test_sliding_attention_by_hand() -> None:
    model = one_kind(SLIDING, DENSE)
    # Window 5, tokens 4, 5, 6 after 3: 4 + 5 + 5 pairs.
    assert layer(model, compute_bound(), 1, 3, 3)[2] == pytest.approx(4 * 12 * 14)
    # Bytes of min(p+c, window+c) tokens: 6 of 24 bytes; with p = 9 it is 5 + 3 = 8.
    assert layer(model, memory_bound(), 1, 3, 3)[2] == pytest.approx(6 * 24)
    assert layer(model, memory_bound(), 1, 3, 9)[2] == pytest.approx(8 * 24)


def test_latent_attention_by_hand() -> None:
    gemm, _, attention = layer(one_kind(MLA, DENSE), compute_bound(), 2, 2, 5)
    assert gemm == pytest.approx(2 * 2 * 2 * (164 + 72))
    # Scores 2*B*heads*(nope+rope+v)*pairs = 2*2*2*6*13; expansion 2*B*p*kv_lora*heads*(nope+v) = 2*2*5*60.
    assert attention == pytest.approx(624 + 1200)
    # B*(p+c)*(6+1)*2 bytes.
    assert layer(one_kind(MLA, DENSE), memory_bound(), 2, 2, 5)[2] == pytest.approx(2 * 7 * 14)


def test_sparse_attention_by_hand() -> None:
    index = {"heads": 2, "dim": 4, "top_k": 6}
    own = one_kind({**MLA, "sparse": index}, DENSE)
    # Tokens meet min(6, 6) and min(7, 6) keys: 12 pairs of 24 FLOPs; indexer 2*2*4 over all 13 pairs; expansion 600.
    assert layer(own, compute_bound(), 1, 2, 5)[2] == pytest.approx(24 * 12 + 16 * 13 + 600)
    shared = one_kind({**MLA, "sparse": {**index, "shared": True}}, DENSE)
    assert layer(shared, compute_bound(), 1, 2, 5)[2] == pytest.approx(24 * 12 + 600)
    # All KV is kept and read.
    assert layer(own, memory_bound(), 1, 2, 5)[2] == pytest.approx(7 * 14)


@pytest.mark.parametrize(("chunks", "share"), [(16, 0.05), (64, 0.20)])
def test_latent_expansion_of_deepseek(chunks: int, share: float) -> None:
    """Specification, section 5: 5 % of the score FLOPs at 16 chunks of 128K, 20 % at 64."""
    model, total = load_model("deepseek-v3"), 128 * 1024
    size = total // chunks
    seconds = roofline(model).layer_seconds(compute_bound(), "mla-moe", 1, size, np.arange(chunks) * size)
    # Scores: 2*128 heads*(128+64+128) FLOPs for total*(total+1)/2 pairs, however they are cut.
    scores = 2 * 128 * 320 * total * (total + 1) / 2
    assert seconds.attention.sum() / scores - 1 == pytest.approx(share, abs=0.004)


def test_layers_without_mixer_or_feed_forward_cost_what_they_have() -> None:
    mixer = one_kind(GQA, {"kind": "none"}, layers=1)
    gemm, vector, _ = layer(mixer, memory_bound(), 1, 1, 0)
    # 144*2 bytes and 16 of activations; 8*4*2 bytes of vectors.
    assert (float(gemm), float(vector)) == pytest.approx((304, 64))
    network = one_kind({"kind": "none"}, DENSE, layers=1)
    gemm, _, attention = layer(network, memory_bound(), 1, 1, 0)
    assert (float(gemm), float(attention)) == pytest.approx((72 * 2 + 16, 0))


def test_linear_layers_are_refused_by_name() -> None:
    model = one_kind({"kind": "linear", "name": "gated-delta-net", "parameters": 9}, DENSE)
    with pytest.raises(InputError, match=r"'gated-delta-net'.*fitted or table"):
        roofline(model)


def test_a_stage_is_the_sum_of_its_layers() -> None:
    model, die = mixed(), slow_die(layer_overhead_s=3, chunk_overhead_s=11)
    cost = roofline(model)
    single = [cost.layer_seconds(die, kind, 2, 3, 4).total for kind in model.layer_kinds]
    assert cost.stage_seconds(die, 0, 5, 2, 3, 4) == pytest.approx(float(sum(single)) + 11)
    assert cost.stage_seconds(die, 1, 3, 2, 3, 4) == pytest.approx(float(single[1] + single[2]) + 11)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_cuts_do_not_change_compute_bound_totals(sizes: list[int]) -> None:
    """Specification, section 5: apart from overheads, floors and MLA's expansion."""
    cost, die = roofline(one_kind(GQA, DENSE)), compute_bound()
    prefixes = np.cumsum([0, *sizes[:-1]])
    cut = cost.stage_seconds(die, 0, 2, 1, sizes, prefixes).sum()
    assert cut == pytest.approx(float(cost.stage_seconds(die, 0, 2, 1, sum(sizes), 0)))


@given(st.integers(1, 3), st.integers(1, 64), st.integers(0, 200), st.booleans())
def test_a_grid_holds_the_same_numbers_as_single_calls(batch: int, chunk: int, prefix: int, head: bool) -> None:
    cost, die = roofline(mixed()), load_hardware("mocap-4x4").die
    chunks, prefixes = np.array([chunk, 7])[:, None], np.array([3, prefix, 0])[None, :]
    grid = cost.stage_seconds(die, 0, 5, batch, chunks, prefixes, head=head)
    assert grid.shape == (2, 3)
    assert grid[0, 1] == cost.stage_seconds(die, 0, 5, batch, chunk, prefix, head=head)


@pytest.mark.parametrize(
    ("batch", "chunk", "prefix"),
    [
        (0, 1, 0),
        (1.5, 1, 0),
        (True, 1, 0),
        (1, -1, 0),
        (1, 1, -1),
        (1, float("nan"), 0),
        (1, [1, np.inf], 0),
        (1, "4", 0),
    ],
)
def test_impossible_amounts_are_refused(batch: Any, chunk: Any, prefix: Any) -> None:
    with pytest.raises(InputError):
        roofline(mixed()).stage_seconds(slow_die(), 0, 5, batch, chunk, prefix)


def test_unknown_kinds_and_empty_stages_are_refused() -> None:
    cost = roofline(mixed())
    with pytest.raises(InputError, match="one of local, global, latent"):
        cost.layer_seconds(slow_die(), "other", 1, 1, 0)
    with pytest.raises(InputError, match="layers"):
        cost.stage_seconds(slow_die(), 2, 2, 1, 1, 0)


def test_memory_of_a_stage_by_hand() -> None:
    cost = roofline(mixed())
    # Two sliding layers min(12, 5+4)*24, two full ones 12*24, one latent 12*14 bytes, for 2 sequences.
    held = cost.kv_held_bytes(0, 5, 2, [4, 8, 12], [4, 4, 4])
    assert held.tolist() == [2 * n for n in (4 * 110, 8 * 110, 2 * 9 * 24 + 12 * 62)]
    assert cost.spillable_bytes_per_token(0, 5) == 62
    # Largest active width: experts 4 + 2*3 = 10 against 6; B*c*(2*4 + width)*2.
    assert cost.workspace_bytes(0, 5, 2, 4) == 2 * 4 * (8 + 10) * 2
    assert cost.workspace_bytes(0, 4, 2, 4) == 2 * 4 * (8 + 6) * 2
    assert cost.activation_bytes(2, [4, 1]).tolist() == [2 * 4 * 4 * 2, 2 * 4 * 2]
    assert cost.weight_bytes(0, 1, True, False) == (144 + 72 + 8) * 2 + 80
    assert cost.die_weight_bytes([(0, 1), (1, 2)], False, False) == 2 * 448


def test_releases_show_as_negative_differences() -> None:
    cost = roofline(one_kind(SLIDING, DENSE, layers=1))
    # Chunks 8, 1: min(8, 13) = 8 tokens, then min(9, 6) = 6: a release of 2 tokens.
    held = cost.kv_held_bytes(0, 1, 1, [8, 9], [8, 1])
    assert np.diff(held).tolist() == [-2 * 24]
