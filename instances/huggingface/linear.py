"""Linear-attention and state-space mixers: parameters and state, as the model classes of transformers build them."""

from __future__ import annotations

from instances.huggingface.view import ConfigView
from instances.layers import LinearAttention

_STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def gated_delta_net(view: ConfigView, hidden: int, element_bytes: float) -> LinearAttention:
    """The mixer of Qwen3-Next and Qwen3.5."""
    key_heads, value_heads = view.whole("linear_num_key_heads"), view.whole("linear_num_value_heads")
    key_dim, value_dim = view.whole("linear_key_head_dim"), view.whole("linear_value_head_dim")
    kernel = view.whole("linear_conv_kernel_dim")
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    inputs = hidden * (channels + values + 2 * value_heads)  # q, k, v; output gate; decay and write strength
    vectors = 2 * value_heads + value_dim  # time step bias, decay, norm
    return LinearAttention(
        name="gated-delta-net",
        parameters=inputs + channels * kernel + vectors + values * hidden,
        state_bytes=value_heads * key_dim * value_dim * _state_width(view, "mamba_ssm_dtype")
        + channels * (kernel - 1) * element_bytes,
    )


def mamba2(view: ConfigView, hidden: int, element_bytes: float) -> LinearAttention:
    """The mixer of Nemotron-H."""
    heads, head_dim = view.whole("mamba_num_heads"), view.whole("mamba_head_dim")
    groups, state = view.whole("n_groups"), view.whole("ssm_state_size")
    kernel = view.whole("conv_kernel")
    for key in ("use_bias", "mamba_proj_bias"):
        view.refuse_where_set(key, "a bias of the Mamba projections is not counted")
    inner = heads * head_dim
    channels = inner + 2 * groups * state
    inputs = hidden * (inner + channels + heads)
    convolution = channels * kernel + (channels if view.flag("use_conv_bias") else 0)
    vectors = 3 * heads + inner  # time step bias, decay, skip; norm
    return LinearAttention(
        name="mamba2",
        parameters=inputs + convolution + vectors + inner * hidden,
        state_bytes=inner * state * _state_width(view, "mamba_ssm_cache_dtype")
        + channels * (kernel - 1) * element_bytes,
    )


def _state_width(view: ConfigView, key: str) -> int:
    value = view.get(key)
    if not isinstance(value, str) or value not in _STATE_BYTES:
        raise view.error(key, f"one of {', '.join(_STATE_BYTES)}: it decides the bytes of the state")
    return _STATE_BYTES[value]
