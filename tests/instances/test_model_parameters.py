"""Parameters, weight bytes and KV bytes, against arithmetic by hand and published figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.catalogue import load_model
from instances.errors import InputError
from instances.parameters import (
    die_weight_bytes,
    growth_bytes_per_token,
    kv_bytes_per_token,
    kv_held_bytes,
    kv_window_bytes,
    layer_weights,
    parameters_active,
    parameters_total,
    stage_weight_bytes,
    summary,
)
from tests.instances.model_builders import DENSE, GQA, MLA, MOE, SLIDING, mixed, one_kind

GIB = 2**30


def test_multi_head_attention_by_hand() -> None:
    model = one_kind({**GQA, "kv_heads": 4}, DENSE)
    # hidden 4, 4 heads of 3: Q, K, V and output 4*12 each = 192; gated feed-forward 3*4*6 = 72; two norms of 4 = 8.
    count = layer_weights(model.kinds["layer"], 4)
    assert (count.attention, count.dense, count.norms, count.total) == (192, 72, 8, 272)
    # K and V of 4 heads of 3 in 2 bytes: 2*4*3*2 = 48.
    assert kv_bytes_per_token(model, "layer") == 48


def test_multi_query_attention_by_hand() -> None:
    model = one_kind({**GQA, "kv_heads": 1}, {**DENSE, "gated": False})
    # Q and output 4*12 each, K and V 4*3 each: 120; plain feed-forward 2*4*6 = 48; KV 2*1*3*2 = 12.
    count = layer_weights(model.kinds["layer"], 4)
    assert (count.attention, count.dense) == (120, 48)
    assert kv_bytes_per_token(model, "layer") == 12


def test_one_projection_for_keys_and_values_keeps_the_cache() -> None:
    model = one_kind({**GQA, "keys_as_values": True}, DENSE)
    # Q and output 4*12 each, one projection 4*6: 120; the cache holds both: 2*2*3*2 = 24.
    assert layer_weights(model.kinds["layer"], 4).attention == 120
    assert kv_bytes_per_token(model, "layer") == 24


def test_latent_attention_by_hand() -> None:
    model = one_kind(MLA, DENSE)
    # h*q_lora 4*5 + q_lora*heads*(nope+rope) 5*2*4 + h*(kv_lora+rope) 4*7 + kv_lora*heads*(nope+v) 6*2*5 + heads*v*h
    # 2*2*4 = 20 + 40 + 28 + 60 + 16 = 164; norms 2*4 + 5 + 6 = 19.
    count = layer_weights(model.kinds["layer"], 4)
    assert (count.attention, count.norms) == (164, 19)
    # (6 + 1) * 2, whatever the heads.
    assert kv_bytes_per_token(model, "layer") == 14
    # Without a query rank h*heads*(nope+rope) = 4*2*4 = 32 stands for the first two terms.
    direct = one_kind({**MLA, "q_lora_rank": None}, DENSE)
    assert layer_weights(direct.kinds["layer"], 4).attention == 32 + 28 + 60 + 16


def test_an_indexer_adds_its_own_weights_unless_it_is_shared() -> None:
    index = {"heads": 2, "dim": 4, "top_k": 3}
    own = one_kind({**MLA, "sparse": index}, DENSE)
    shared = one_kind({**MLA, "sparse": {**index, "shared": True}}, DENSE)
    # q_lora*heads*dim 5*2*4 + h*dim 4*4 + h*heads 4*2 = 64 beside the 164; key norm 2*4 = 8 beside the 19.
    assert layer_weights(own.kinds["layer"], 4).attention == 164 + 64
    assert layer_weights(own.kinds["layer"], 4).norms == 19 + 8
    assert layer_weights(shared.kinds["layer"], 4).total == layer_weights(one_kind(MLA, DENSE).kinds["layer"], 4).total


def test_experts_by_hand() -> None:
    moe = {**MOE, "bias": True, "router_bias": True, "shared_gate": True}
    count = layer_weights(one_kind(GQA, moe).kinds["layer"], 4)
    # One expert 3*4*3 = 36, 8 of them 288, 2 active 72; router 4*8; shared 3*4*4 + gate 4 = 52.
    assert (count.experts, count.active_experts, count.router, count.dense) == (288, 72, 32, 52)
    # Bias of an expert 3 + 3 + 4 = 10, of the router 8, two norms of 4; a token meets 2 experts' biases.
    assert (count.norms, count.active_norms) == (8 + 80 + 8, 8 + 20 + 8)
    assert count.total - count.active == (288 - 72) + (80 - 20)


def test_biases_sinks_gates_and_inner_norms_by_hand() -> None:
    flags = {"qkv_bias": True, "output_bias": True, "sinks": True, "output_gate": True, "qk_norm": "head"}
    count = layer_weights(one_kind({**GQA, **flags}, {**DENSE, "bias": True}).kinds["layer"], 4)
    # Q and output 4*12 each, K and V 4*6 each, gate 4*12: 192.
    assert count.attention == 192
    # Two norms of 4; bias 12 + 6 + 6 + 4; 4 sinks; norms of Q and K heads 3 + 3; feed-forward bias 6 + 6 + 4.
    assert count.norms == 8 + 28 + 4 + 6 + 16
    full = layer_weights(one_kind({**GQA, "qk_norm": "full"}, DENSE).kinds["layer"], 4)
    assert full.norms == 8 + 12 + 6


def test_totals_with_and_without_tied_embeddings() -> None:
    # Two layers: GQA 2*48 + 2*24 = 144, dense 72, norms 8 = 224 each; final norm 4; embedding and head 40 each.
    model = one_kind(GQA, DENSE)
    assert parameters_total(model) == 448 + 4 + 80
    assert parameters_active(model) == 448 + 4 + 40
    tied = one_kind(GQA, DENSE, tied_embeddings=True)
    assert parameters_total(tied) == 448 + 4 + 40
    assert parameters_active(tied) == 448 + 4 + 40


def test_stage_weights_tied_and_not() -> None:
    model, tied = one_kind(GQA, DENSE), one_kind(GQA, DENSE, tied_embeddings=True)
    # 224 weights a layer in 2 bytes = 448; a table of 40 weights = 80; final norm 8.
    assert stage_weight_bytes(model, 0, 1, True, False) == 448 + 80
    assert stage_weight_bytes(model, 1, 2, False, True) == 448 + 80 + 8
    assert stage_weight_bytes(model, 0, 2, True, True) == 896 + 160 + 8
    # Tied tables are stored once on a die that uses both, and once on each of two dies that use one.
    assert stage_weight_bytes(tied, 0, 2, True, True) == 896 + 80 + 8
    assert stage_weight_bytes(tied, 0, 1, True, False) + stage_weight_bytes(tied, 1, 2, False, True) == 896 + 160 + 8
    assert die_weight_bytes(tied, [(0, 1), (1, 2)], True, True) == 896 + 80 + 8


def test_widths_go_to_their_groups() -> None:
    widths = {"experts": 1, "attention": 2, "dense": 3, "router": 4, "embedding": 5, "head": 6, "norms": 7}
    model = one_kind(GQA, MOE, layers=1, weight_bytes=widths)
    # Experts 288*1, attention 144*2, shared 3*4*4*3, router 32*4, norms 8*7; embedding 40*5; head 40*6 and norm 4*7.
    layer = 288 + 288 + 144 + 128 + 56
    assert stage_weight_bytes(model, 0, 1, False, False) == layer
    assert stage_weight_bytes(model, 0, 1, True, True) == layer + 200 + 240 + 28


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (1, 1), (2, 1), (0, 6), (-1, 2)])
def test_empty_or_outside_ranges_are_refused(start: int, stop: int) -> None:
    with pytest.raises(InputError, match="layers"):
        stage_weight_bytes(mixed(), start, stop, False, False)


def test_a_sliding_layer_keeps_its_window_and_the_chunk() -> None:
    model = one_kind(SLIDING, DENSE)
    # 2*2*3*2 = 24 bytes a token, window 5. Chunks of 4: min(P, 9) tokens at P = 4, 8, 12. A last one of 1: min(13, 6).
    held = kv_held_bytes(model, "layer", np.array([4, 8, 12, 13]), np.array([4, 4, 4, 1]))
    assert held.tolist() == [4 * 24, 8 * 24, 9 * 24, 6 * 24]


@given(st.integers(1, 200), st.integers(1, 200))
def test_full_layers_keep_everything(tokens: int, chunk: int) -> None:
    model = mixed()
    assert float(kv_held_bytes(model, "global", tokens, min(chunk, tokens))) == tokens * 24
    assert float(kv_held_bytes(model, "latent", tokens, min(chunk, tokens))) == tokens * 14


def test_states_are_constant_and_may_be_unknown() -> None:
    linear = {"kind": "linear", "name": "mamba2", "parameters": 100, "state_bytes": 640}
    model = one_kind(linear, DENSE)
    assert kv_held_bytes(model, "layer", np.array([1, 1000]), 1).tolist() == [640, 640]
    assert kv_window_bytes(model) == 1280
    assert layer_weights(model.kinds["layer"], 4).attention == 100
    unknown = one_kind({**linear, "state_bytes": None}, DENSE)
    assert kv_window_bytes(unknown) is None
    with pytest.raises(InputError, match="state of mamba2"):
        kv_held_bytes(unknown, "layer", 1, 1)


def test_growth_counts_full_and_latent_layers_only() -> None:
    model = mixed()
    # Two full layers of 24 and one latent layer of 14; the window of the two sliding ones is 2*5*24.
    assert growth_bytes_per_token(model, 0, 5) == 2 * 24 + 14
    assert growth_bytes_per_token(model, 0, 1) == 0
    assert kv_window_bytes(model) == 240


@pytest.mark.parametrize(
    ("name", "billions", "active_billions", "kv_bytes"),
    [
        # Specification, section 2, "Widths".
        ("deepseek-v3", 671.0, 36.6, 70_272),
        ("gpt-oss-120b", 116.8, 5.1, 36_864),
        # 2*layers*kv_heads*head_dim*2, e.g. 2*80*8*128*2.
        ("llama3-70b", 70.6, 69.5, 327_680),
        ("mistral-123b", 122.6, 122.2, 360_448),
        ("qwen3-235b", 235.1, 21.6, 192_512),
        ("llama3-405b", 405.9, 403.8, 516_096),
        # Model cards: 27B, 14.7B, 743B with 39-40B active, 355B with 32B, 1T with 32B.
        ("gemma-3-27b", 27.0, 27.0, 81_920),
        ("phi-4", 14.7, 14.1, 204_800),
        ("glm-5.2", 743.4, 40.3, 89_856),
        ("glm-4.5", 352.8, 32.8, 376_832),
        ("kimi-k2", 1026.4, 31.7, 70_272),
    ],
)
def test_published_sizes(name: str, billions: float, active_billions: float, kv_bytes: int) -> None:
    shown = summary(load_model(name))
    assert shown["parameters_total"] / 1e9 == pytest.approx(billions, abs=0.06)
    assert shown["parameters_active"] / 1e9 == pytest.approx(active_billions, abs=0.06)
    assert shown["kv_bytes_per_token"] == kv_bytes


def test_gpt_oss_holds_its_windows_beside_the_growth() -> None:
    shown = summary(load_model("gpt-oss-120b"))
    # 18 sliding layers * 128 tokens * 2*8*64*2 bytes.
    assert shown["kv_window_bytes"] == 18 * 128 * 2048
    assert shown["layers"] == {"sliding-moe": 18, "full-moe": 18}
    # Experts in mxfp4: 128 experts * 3*2880*2880 * 36 layers * 17/32 bytes are 60.9e9 of the 65.2e9 bytes.
    assert shown["weight_bytes"] == pytest.approx(65.2e9, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "gib", "left_out"),
    [("llama3-70b", 131.414, 0), ("llama3-405b", 755.953, 0), ("qwen3-235b", 436.735, 151936 * 4096 * 2)],
)
def test_weights_of_the_peer_table(name: str, gib: float, left_out: int) -> None:
    """aiconfigurator's weights leave out the norms, and one of the two vocabulary tables of the MoE model."""
    weights: Any = summary(load_model(name))["weight_bytes"]
    assert (weights - left_out) / GIB == pytest.approx(gib, rel=2e-5)
