"""Attention of each layer of a config: GQA, MHA, MQA, sliding windows, MLA, sparse MLA, linear mixers."""

from __future__ import annotations

from instances.huggingface.families import Bias, Family
from instances.huggingface.linear import gated_delta_net
from instances.huggingface.view import ConfigView
from instances.layers import (
    Attention,
    FullAttention,
    LatentAttention,
    SlidingAttention,
    SparseIndex,
)


def read_attention(view: ConfigView, family: Family, layers: int, hidden: int, element_bytes: float) -> list[Attention]:
    """The attention of every layer, first layer first."""
    view.refuse_where_set("attention_chunk_size", "attention inside chunks of a fixed size has no formula here")
    if family.latent:
        return _latent(view, layers)
    kinds = _layer_types(view, family, layers)
    linear = gated_delta_net(view, hidden, element_bytes) if "linear_attention" in kinds else None
    sliding = grouped_attention(view, family, hidden, sliding=True) if "sliding_attention" in kinds else None
    full = grouped_attention(view, family, hidden, sliding=False)
    if sliding is None:
        view.ignore("sliding_window")
    by_name = {"linear_attention": linear, "sliding_attention": sliding, "full_attention": full}
    return [attention for name in kinds if (attention := by_name[name]) is not None]


def grouped_attention(
    view: ConfigView, family: Family, hidden: int, *, sliding: bool
) -> FullAttention | SlidingAttention:
    """Full or sliding attention; absent key-value heads mean as many as heads, an absent head_dim hidden / heads."""
    heads = view.whole("num_attention_heads")
    kv_heads = view.whole("num_key_value_heads", default=heads)
    head_dim = view.optional("head_dim")
    if head_dim is None:
        if hidden % heads:
            raise view.error("head_dim", f"a number: hidden_size {hidden} is no multiple of {heads} heads")
        head_dim = hidden // heads
    keys_as_values = False
    # Gemma 4 gives its full layers other heads than its sliding ones.
    global_dim, global_heads = view.optional("global_head_dim"), view.optional("num_global_key_value_heads")
    shares = view.flag("attention_k_eq_v")
    if not sliding:
        head_dim = global_dim or head_dim
        if shares:
            kv_heads, keys_as_values = global_heads or kv_heads, True
    if heads % kv_heads:
        raise view.error("num_key_value_heads", f"a divisor of the {heads} heads")
    norm = family.qk_norm
    if view.flag("use_qk_norm", default=norm != "none") != (norm != "none"):
        if norm == "none":
            raise view.error("use_qk_norm", "false: this model_type is not known with such norms")
        norm = "none"
    view.ignore("qk_norm_type")
    shape = FullAttention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        qkv_bias=_bias(view, family.qkv_bias),
        output_bias=_bias(view, family.output_bias),
        sinks=family.sinks,
        output_gate=view.flag("attn_output_gate", default=family.hybrid == "layer_types"),
        keys_as_values=keys_as_values,
        qk_norm=norm,
    )
    if not sliding:
        return shape
    window = view.whole("sliding_window")
    return SlidingAttention(**{**shape.model_dump(), "kind": "sliding", "window": window})


def _bias(view: ConfigView, rule: Bias) -> bool:
    stated = view.flag("attention_bias", default=rule == "always")
    if rule == "never" and stated:
        raise view.error("attention_bias", "false: this model_type is not known with biases")
    return stated if rule == "attention_bias" else rule == "always"


def _layer_types(view: ConfigView, family: Family, layers: int) -> list[str]:
    """One of full_attention, sliding_attention, linear_attention for each layer."""
    allowed = ["full_attention", "sliding_attention"]
    if family.hybrid == "layer_types":
        allowed.append("linear_attention")
    listed = view.names("layer_types", layers, allowed)
    codes = view.get("attn_type_list")
    if codes is not None and codes != [1] * layers:
        raise view.error("attn_type_list", "1 everywhere (full attention): the linear layers have no formula")
    if listed is not None:
        view.ignore(
            "sliding_window_pattern", "_sliding_window_pattern", "use_sliding_window", "full_attention_interval"
        )
        return listed
    if family.hybrid == "layer_types":
        raise view.error("layer_types", "a list: it says which layers are linear")
    every = view.optional("sliding_window_pattern", "_sliding_window_pattern")
    window = view.get("sliding_window")
    if view.get("use_sliding_window") is False or window is None:
        if every is not None or family.sliding == "pattern":
            raise view.error("sliding_window", "the window of the sliding layers, in tokens")
        return ["full_attention"] * layers
    match family.sliding:
        case "all":
            return ["sliding_attention"] * layers
        case "upper":
            first = view.whole("max_window_layers", least=0)
            return ["sliding_attention" if layer >= first else "full_attention" for layer in range(layers)]
        case "pattern":
            period = every or family.pattern or 1
            return ["full_attention" if (layer + 1) % period == 0 else "sliding_attention" for layer in range(layers)]
        case _:
            raise view.error("layer_types", "a list: sliding_window is set, and nothing else says which layers slide")


def _latent(view: ConfigView, layers: int) -> list[Attention]:
    # The cache and the scores of MLA depend on neither of these.
    view.ignore("head_dim", "qk_head_dim", "num_key_value_heads")
    view.refuse_where_set("attention_bias", "biases of MLA projections are not counted")
    view.refuse_where_set("sliding_window", "no model_type with MLA is known to slide")
    plain = LatentAttention(
        heads=view.whole("num_attention_heads"),
        q_lora_rank=view.optional("q_lora_rank"),
        kv_lora_rank=view.whole("kv_lora_rank"),
        qk_nope_head_dim=view.whole("qk_nope_head_dim", least=0),
        qk_rope_head_dim=view.whole("qk_rope_head_dim", least=0),
        v_head_dim=view.whole("v_head_dim"),
    )
    top_k = view.optional("index_topk")
    roles = view.names("indexer_types", layers, ["full", "shared"])
    if top_k is None:
        if roles is not None:
            raise view.error("index_topk", "a number: indexer_types says that attention is sparse")
        return [plain] * layers
    if roles is None:
        if view.get("index_topk_freq") not in (None, 1) or view.get("index_topk_pattern") is not None:
            raise view.error("indexer_types", "a list: it says which layers share the choice of another")
        roles = ["full"] * layers
    index = SparseIndex(heads=view.whole("index_n_heads"), dim=view.whole("index_head_dim"), top_k=top_k)
    by_role: dict[str, Attention] = {
        "full": plain.model_copy(update={"sparse": index}),
        "shared": plain.model_copy(update={"sparse": index.model_copy(update={"shared": True})}),
    }
    return [by_role[role] for role in roles]
