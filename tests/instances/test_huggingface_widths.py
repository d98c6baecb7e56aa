"""Bytes of a weight from a quantization_config, each rule on a small config."""

from __future__ import annotations

from typing import Any

import pytest

from tests.instances.configs import DEEPSEEK, LLAMA, Reader

INT4 = {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "symmetric": True, "type": "int"}}}


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        ({"quant_method": "fp8"}, 1),
        ({"quant_method": "fp8", "weight_block_size": [64, 64]}, 1 + 4 / 4096),
        ({"quant_method": "mxfp4"}, 17 / 32),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, 9 / 16),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 9 / 16),
        ({"quant_method": "fbgemm_fp8"}, 1),
        ({"quant_method": "compressed-tensors", "format": "int-quantized"}, 1),
        # 4 bits, and for 128 weights a 2-byte scale and, where there is one, a zero point of 4 bits.
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 0.5 + 2.5 / 128),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 0.5 + 2 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": True}, 1),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": INT4}, 0.5 + 2 / 32),
        # 4 bits, and for 64 weights a 4-byte scale, or an 8-bit one and 4 bytes for 256 such scales.
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 0.5 + 4 / 64),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            0.5 + (1 + 4 / 256) / 64,
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 1),
    ],
)
def test_quantised_weights(read: Reader, settings: dict[str, Any], width: float) -> None:
    widths = read({**DEEPSEEK, "quantization_config": settings}).widths
    assert (widths.attention, widths.dense, widths.experts) == (width, width, width)
    # Always the config's dtype.
    assert {widths.embedding, widths.head, widths.router, widths.norms} == {2.0}


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        ("self_attn", {"attention"}),
        ("model.layers.*.self_attn", {"attention"}),
        ("re:.*self_attn.*", {"attention"}),
        ("re:.*shared_experts.*|.*mlp\\.(gate|up|down)_proj", {"dense"}),
        ("mlp.experts", {"experts"}),
        ("mlp.gate", set()),
        ("lm_head", set()),
        ("*", {"attention", "dense", "experts"}),
    ],
)
def test_exceptions_keep_the_dtype(read: Reader, entry: str, kept: set[str]) -> None:
    settings = {"quant_method": "fp8", "modules_to_not_convert": [entry]}
    widths = read({**DEEPSEEK, "quantization_config": settings}).widths
    assert {group for group in ("attention", "dense", "experts") if getattr(widths, group) == 2} == kept


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"quant_method": "awq", "group_size": 128}, "bits"),
        ({"quant_method": "gptq", "bits": 16}, "bits"),
        ({"quant_method": "awq", "w_bit": 16}, "w_bit"),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {"g": {"weights": {"num_bits": 16}}},
            },
            "config_groups.g.weights.num_bits",
        ),
        ({"quant_method": "bitsandbytes"}, "load_in_4bit"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "quant_algo"),
        ({"quant_method": "compressed-tensors", "format": "marlin-24"}, "format"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "config_groups"),
        (
            {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {}}},
            "config_groups",
        ),
    ],
)
def test_the_key_that_decides_a_width_is_named(read: Reader, settings: dict[str, Any], key: str) -> None:
    assert read.refusal({**LLAMA, "quantization_config": settings}).field == f"quantization_config.{key}"


@pytest.mark.parametrize("settings", ["fp8", [], False, 0])
def test_a_quantisation_that_is_no_object_is_refused(read: Reader, settings: Any) -> None:
    assert read.refusal({**LLAMA, "quantization_config": settings}).field == "quantization_config"


def test_unknown_quantisation_is_refused_unless_widths_are_given(read: Reader) -> None:
    data = {**LLAMA, "quantization_config": {"quant_method": "aqlm", "bits": 2}}
    assert read.refusal(data).field == "quantization_config.quant_method"
    assert read(data, weight_bytes=0.53).weight_bytes == 0.53
    changed = read(data, weight_bytes={"dense": 0.5}, kv_bytes=1)
    assert (changed.widths.dense, changed.widths.attention, changed.kv_bytes) == (0.5, 2, 1)
    partly = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0"]}
    error = read.refusal({**LLAMA, "quantization_config": partly})
    assert error.field == "quantization_config.modules_to_not_convert" and "layers.0" in str(error)
    block = {"quant_method": "fp8", "weight_block_size": [0, 1]}
    assert read.refusal({**LLAMA, "quantization_config": block}).field == "quantization_config.weight_block_size"
