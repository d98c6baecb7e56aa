"""Real config.json files: sizes as published, or a refusal that names the key."""

from __future__ import annotations

from typing import Any

import pytest

from instances.costs import RooflineSpec, make_costs
from instances.errors import InputError
from instances.huggingface import read_config
from instances.parameters import summary
from tests.shared_data import shared_path

# Total and active parameters in billions, KV bytes a token, layers by kind.
READ: dict[str, tuple[float, float, int, dict[str, int]]] = {
    "Qwen--Qwen3-235B-A22B": (235.09, 21.57, 192_512, {"full-moe": 94}),
    "Qwen--Qwen3-235B-A22B-FP8": (235.09, 21.57, 192_512, {"full-moe": 94}),
    "Qwen--Qwen3-30B-A3B": (30.53, 3.04, 98_304, {"full-moe": 48}),
    "Qwen--Qwen3-32B": (32.76, 31.98, 262_144, {"full-dense": 64}),
    "Qwen--Qwen3.5-35B-A3B": (34.66, 2.95, 20_480, {"gated-delta-net-moe": 30, "full-moe": 10}),
    "deepseek-ai--DeepSeek-V3": (671.03, 36.63, 70_272, {"mla-dense": 3, "mla-moe": 58}),
    "google--gemma-4-26B-A4B": (25.23, 3.82, 20_480, {"sliding-moe": 25, "full-moe": 5}),
    "meta-llama--Meta-Llama-3.1-405B": (405.85, 403.75, 516_096, {"full-dense": 126}),
    "meta-llama--Meta-Llama-3.1-70B": (70.55, 69.50, 327_680, {"full-dense": 80}),
    "meta-llama--Meta-Llama-3.1-8B": (8.03, 7.50, 131_072, {"full-dense": 32}),
    "microsoft--phi-4": (14.66, 14.15, 204_800, {"full-dense": 40}),
    "mistralai--Devstral-2-123B-Instruct": (125.03, 123.42, 360_448, {"full-dense": 88}),
    "mistralai--Mixtral-8x22B-v0.1": (140.62, 38.96, 229_376, {"full-moe": 56}),
    "moonshotai--Kimi-K2-Instruct": (1026.41, 31.69, 70_272, {"mla-dense": 1, "mla-moe": 60}),
    "nvidia--DeepSeek-V3.1-NVFP4": (671.03, 36.63, 70_272, {"mla-dense": 3, "mla-moe": 58}),
    "nvidia--Llama-3.1-70B-Instruct-FP8": (70.55, 69.50, 327_680, {"full-dense": 80}),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": (31.58, 3.23, 6_144, {"mamba2": 23, "moe": 23, "full": 6}),
    "openai--gpt-oss-120b": (116.83, 5.13, 36_864, {"sliding-moe": 18, "full-moe": 18}),
    "MiniMaxAI--MiniMax-M2.7": (228.69, 10.42, 253_952, {"full-moe": 62}),
    "zai-org--GLM-5.2": (
        743.38,
        40.30,
        89_856,
        {"mla-index-dense": 3, "mla-shared-index-moe": 57, "mla-index-moe": 18},
    ),
}
REFUSED = {
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": "text_config.attention_chunk_size",
    "moonshotai--Kimi-K3": "text_config.model_type",
}


def config(name: str) -> Any:
    return shared_path(f"data/hf_configs/{name}.json")


@pytest.mark.parametrize("name", READ)
def test_sizes(name: str) -> None:
    total, active, kv_bytes, layers = READ[name]
    shown = summary(read_config(config(name)))
    assert shown["parameters_total"] / 1e9 == pytest.approx(total, abs=0.006)
    assert shown["parameters_active"] / 1e9 == pytest.approx(active, abs=0.006)
    assert shown["kv_bytes_per_token"] == kv_bytes
    assert shown["layers"] == layers


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_file_and_key(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config(name))
    assert caught.value.field == REFUSED[name]
    assert name in str(caught.value)


def test_every_file_is_known() -> None:
    found = {path.stem for path in shared_path("data/hf_configs").glob("*.json")}
    assert found == READ.keys() | REFUSED.keys()


@pytest.mark.parametrize(
    ("name", "mixer"),
    [
        ("Qwen--Qwen3.5-35B-A3B", "gated-delta-net"),
        ("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "mamba2"),
    ],
)
def test_hybrids_are_sized_and_their_time_refused(name: str, mixer: str) -> None:
    with pytest.raises(InputError, match=mixer):
        make_costs(read_config(config(name)), RooflineSpec())


def test_states_of_hybrids_by_hand() -> None:
    qwen = summary(read_config(config("Qwen--Qwen3.5-35B-A3B")))
    # 30 layers: 32 heads * 128 * 128 in float32, and 3 inputs of 2*16*128 + 32*128 convolution channels in bfloat16.
    assert qwen["kv_window_bytes"] == 30 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)
    nemotron = summary(read_config(config("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")))
    # 23 layers: 64 heads * 64 * 128 in float32, and 3 inputs of 4096 + 2*8*128 channels.
    assert nemotron["kv_window_bytes"] == 23 * (64 * 64 * 128 * 4 + 3 * 6144 * 2)


def test_gemma_4_has_other_heads_in_full_layers() -> None:
    model = read_config(config("google--gemma-4-26B-A4B"))
    full, sliding = model.kinds["full-moe"].attention, model.kinds["sliding-moe"].attention
    assert full.kind == "full" and (full.kv_heads, full.head_dim, full.keys_as_values) == (2, 512, True)
    assert sliding.kind == "sliding" and (sliding.kv_heads, sliding.head_dim, sliding.window) == (8, 256, 1024)
    # Five sliding layers to a full one.
    assert model.layer_kinds[4:7] == ("sliding-moe", "full-moe", "sliding-moe")
    assert model.tied_embeddings


def test_shapes_from_public_code_need_a_model_type() -> None:
    with pytest.raises(InputError) as caught:
        read_config(shared_path("data/model_shapes/zai-org--GLM-4.5.json"))
    assert caught.value.field == "model_type"


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        # Experts only: everything else is excepted.
        ("openai--gpt-oss-120b", {"experts": 17 / 32, "attention": 2, "router": 2, "embedding": 2, "head": 2}),
        # fp8 with a 4-byte scale for 128*128 weights; the routers and norms are excepted layer by layer.
        ("Qwen--Qwen3-235B-A22B-FP8", {"experts": 1 + 4 / 16384, "attention": 1 + 4 / 16384, "router": 2, "norms": 2}),
        # The entry "gate" is the router, not gate_proj.
        ("MiniMaxAI--MiniMax-M2.7", {"experts": 1 + 4 / 16384, "router": 2, "head": 2}),
        # One scale a tensor.
        ("mistralai--Devstral-2-123B-Instruct", {"dense": 1, "attention": 1, "embedding": 2}),
        ("deepseek-ai--DeepSeek-V3", {"dense": 1 + 4 / 16384, "experts": 1 + 4 / 16384, "head": 2}),
    ],
)
def test_quantised_widths(name: str, widths: dict[str, float]) -> None:
    model = read_config(config(name))
    assert {group: getattr(model.widths, group) for group in widths} == widths
    assert (model.kv_bytes, model.activation_bytes) == (2, 2)
