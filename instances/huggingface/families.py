"""What a model_type implies without saying it in config.json; read from the model classes of transformers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Bias = Literal["never", "always", "attention_bias"]
Stated = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Family:
    """Conventions of one model_type.

    ``qkv_bias`` and ``output_bias`` are fixed, or follow the key attention_bias. ``sliding`` says which layers slide
    where no layer_types list does: none, all, all but each ``pattern``-th, those from max_window_layers on, or those
    with rotary positions, whose attention is cut into chunks. ``two_widths``: a dense layer has intermediate_size_mlp,
    an expert and the one shared expert intermediate_size (Llama 4). ``stated`` are keys, each with its other names,
    that have to be there, be it with null: where one is absent the model class takes a number that is another model's.
    """

    latent: bool = False
    hybrid: Literal["no", "layer_types", "pattern"] = "no"
    norms: int = 2
    qk_norm: Literal["none", "head", "full"] = "none"
    weightless_qk_norm: bool = False
    qkv_bias: Bias = "never"
    output_bias: Bias = "never"
    sinks: bool = False
    gated: bool = True
    expert_bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    dense_beside_experts: bool = False
    sliding: Literal["none", "all", "pattern", "upper", "rope"] = "none"
    pattern: int | None = None
    tied: bool = False
    two_widths: bool = False
    stated: Stated = ()


_KV_HEADS: Stated = (("num_key_value_heads",),)
_HEADS: Stated = (("head_dim",), *_KV_HEADS)
_EXPERTS: Stated = (("num_experts", "num_local_experts", "n_routed_experts"),)
_OWN_WIDTH: Stated = (*_EXPERTS, ("moe_intermediate_size",))
_SHARED_WIDTH: Stated = (*_OWN_WIDTH, ("shared_expert_intermediate_size",))
_SHARED_COUNT: Stated = (
    *_OWN_WIDTH,
    ("n_shared_experts", "num_shared_experts"),
    ("first_k_dense_replace", "mlp_layer_types"),
)

_LLAMA = Family(qkv_bias="attention_bias", output_bias="attention_bias")
_SLIDING = Family(sliding="all")
_QWEN2 = Family(qkv_bias="always", shared_gate=True, sliding="upper", stated=_KV_HEADS)
_QWEN3 = Family(qkv_bias="attention_bias", output_bias="attention_bias", qk_norm="head", sliding="upper", stated=_HEADS)
_QWEN3_NEXT = Family(
    hybrid="layer_types",
    qkv_bias="attention_bias",
    output_bias="attention_bias",
    qk_norm="head",
    shared_gate=True,
    stated=_HEADS,
)
_DEEPSEEK = Family(latent=True, stated=_SHARED_COUNT)
_DEEPSEEK_V3 = replace(_DEEPSEEK, router_bias=True)
_GEMMA3 = Family(
    norms=4,
    qk_norm="head",
    qkv_bias="attention_bias",
    output_bias="attention_bias",
    sliding="pattern",
    pattern=6,
    tied=True,
    stated=_HEADS,
)
# Beside the four norms of Gemma 3: three around the experts, and the router's scale; one scale an expert.
_GEMMA4 = Family(
    norms=8,
    qk_norm="head",
    qkv_bias="attention_bias",
    output_bias="attention_bias",
    router_bias=True,
    dense_beside_experts=True,
    sliding="none",
    tied=True,
    stated=(*_HEADS, ("global_head_dim",)),
)

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "llama4_text": Family(
        qkv_bias="attention_bias",
        output_bias="attention_bias",
        sliding="rope",
        weightless_qk_norm=True,
        two_widths=True,
        stated=(*_HEADS, *_EXPERTS),
    ),
    "mistral": replace(_SLIDING, stated=(*_KV_HEADS, ("sliding_window",))),
    "ministral3": replace(_SLIDING, stated=_HEADS),
    "mixtral": replace(_SLIDING, stated=(*_KV_HEADS, *_EXPERTS)),
    "phi3": _SLIDING,
    "qwen2": _QWEN2,
    "qwen2_moe": replace(_QWEN2, stated=(*_KV_HEADS, *_SHARED_WIDTH)),
    "qwen3": _QWEN3,
    "qwen3_moe": replace(_QWEN3, stated=(*_KV_HEADS, *_OWN_WIDTH)),
    "qwen3_next": replace(_QWEN3_NEXT, stated=(*_HEADS, *_SHARED_WIDTH)),
    "qwen3_5_text": _QWEN3_NEXT,
    "qwen3_5_moe_text": replace(_QWEN3_NEXT, stated=(*_HEADS, *_SHARED_WIDTH)),
    "gemma": Family(qkv_bias="attention_bias", output_bias="attention_bias", tied=True, stated=_HEADS),
    "gemma2": Family(
        norms=4,
        qkv_bias="attention_bias",
        output_bias="attention_bias",
        sliding="pattern",
        pattern=2,
        tied=True,
        stated=_HEADS,
    ),
    "gemma3_text": _GEMMA3,
    "gemma4_text": _GEMMA4,
    "gpt_oss": Family(
        qkv_bias="attention_bias",
        output_bias="attention_bias",
        sinks=True,
        expert_bias=True,
        router_bias=True,
        stated=(*_HEADS, *_EXPERTS),
    ),
    "glm4_moe": Family(qkv_bias="attention_bias", qk_norm="head", router_bias=True, stated=(*_HEADS, *_SHARED_COUNT)),
    "minimax_m2": Family(qk_norm="full", router_bias=True, stated=(*_HEADS, *_EXPERTS)),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v32": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "glm_moe_dsa": _DEEPSEEK_V3,
    "nemotron_h": Family(
        hybrid="pattern",
        norms=1,
        gated=False,
        router_bias=True,
        qkv_bias="attention_bias",
        output_bias="attention_bias",
        stated=_HEADS,
    ),
}

OUTER_NAMES = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "llama4": "llama4_text",
    "mistral3": "mistral",
}
"""model_type of a multimodal config whose text_config does not name its own."""
