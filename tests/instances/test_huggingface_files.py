"""Real config.json files: sizes as published, or a refusal that names the key."""

from __future__ import annotations

from typing import Any

import pytest

from instances.costs import RooflineSpec, make_costs
from instances.errors import InputError
from instances.huggingface import read_config
from instances.parameters import parameters_total, summary
from tests.instances.published import PUBLISHED
from tests.performance.models import HEADER, row
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
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": (107.77, 16.14, 49_152, {"chunked-moe": 36, "full-moe": 12}),
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


@pytest.mark.parametrize("name", READ)
def test_sizes_are_the_published_ones(name: str) -> None:
    """Totals and KV within 1 %; the active parameters in the digits of the card, which may cut or round them."""
    model, known = read_config(config(name)), PUBLISHED[name]
    shown = summary(model)
    assert shown["parameters_total"] == pytest.approx(known.total, rel=0.01)
    assert shown["kv_bytes_per_token"] == pytest.approx(known.kv_bytes_per_token, rel=0.01)
    if known.active_billions is None:
        return
    # Some cards count the embedding, which one token does not meet as a matrix; ours leaves it out.
    counts = [shown["parameters_active"] / 1e9, (shown["parameters_active"] + model.vocab * model.hidden) / 1e9]
    digits = len(known.active_billions.partition(".")[2])
    step = 10.0**-digits
    said = {f"{value:.{digits}f}" for count in counts for value in (count, count // step * step)}
    assert known.active_billions in said


@pytest.mark.parametrize("name", READ)
def test_weights_are_what_their_widths_say(name: str) -> None:
    """Bytes a weight, averaged: 2 for bf16; embedding, head, router and norms keep that where others are narrower."""
    shown = summary(read_config(config(name)))
    quantised = {
        "openai--gpt-oss-120b": 0.558,  # 65.2 GB; the checkpoint has 65.25
        "moonshotai--Kimi-K2-Instruct": 1.0027,  # 1029.17 GB, as the checkpoint
        "deepseek-ai--DeepSeek-V3": 1.0032,
        "Qwen--Qwen3-235B-A22B-FP8": 1.0057,
        "MiniMaxAI--MiniMax-M2.7": 1.0058,
        "mistralai--Devstral-2-123B-Instruct": 1.0258,
    }
    each = shown["weight_bytes"] / shown["parameters_total"]
    assert each == pytest.approx(quantised.get(name, 2.0), rel=1e-3)


def test_the_table_of_the_readme_has_a_row_for_each_config() -> None:
    cells = row(config("openai--gpt-oss-120b"))
    assert cells[:8] == ["openai/gpt-oss-120b", "116.83", "116.829", "5.13", "5.71", "5.13", "36864", "36864"]
    assert len(cells) == len(row(config("moonshotai--Kimi-K3"))) == len(HEADER)
    assert "text_config.model_type is kimi_linear" in row(config("moonshotai--Kimi-K3"))[1]


def test_the_prediction_layer_of_glm_has_the_published_size() -> None:
    path = config("zai-org--GLM-5.2")
    extra = parameters_total(read_config(path, prediction_layers=1)) - parameters_total(read_config(path))
    # Counted from the headers of its checkpoint.
    assert extra == 9_952_920_576


def test_the_prediction_layer_of_deepseek_has_the_published_size() -> None:
    path = config("deepseek-ai--DeepSeek-V3")
    model = read_config(path, prediction_layers=1)
    # Hugging Face counts 684.5 B for the checkpoint, in which the extra layer has copies of embedding and head.
    assert parameters_total(model) + 2 * model.vocab * model.hidden == pytest.approx(684.5e9, rel=1e-3)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_file_and_key(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_config(config(name))
    assert caught.value.field == REFUSED[name]
    assert name in str(caught.value)


def test_every_file_is_known() -> None:
    found = {path.stem for path in shared_path("data/hf_configs").glob("*.json")}
    assert found == READ.keys() | REFUSED.keys()
    assert PUBLISHED.keys() == READ.keys()


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
