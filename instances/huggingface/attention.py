"""Attention of each layer of a config: GQA, MHA, MQA, sliding windows, chunks, MLA, sparse MLA, linear mixers."""

from __future__ import annotations

from instances.huggingface.families import Bias, Family
from instances.huggingface.layer_types import layer_types
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
    if family.sliding != "rope":
        view.refuse_where_set("attention_chunk_size", "this model_type is not known with attention inside chunks")
    if family.latent:
        return _latent(view, layers)
    kinds = layer_types(view, family, layers)
    by_name: dict[str, Attention] = {"full_attention": grouped_attention(view, family, hidden)}
    if "linear_attention" in kinds:
        by_name["linear_attention"] = gated_delta_net(view, hidden, element_bytes)
    for name, key in (("sliding_attention", "sliding_window"), ("chunked_attention", "attention_chunk_size")):
        if name in kinds:
            by_name[name] = _windowed(view, family, hidden, key)
        else:
            view.ignore(key)
    return [by_name[name] for name in kinds]


def _windowed(view: ConfigView, family: Family, hidden: int, key: str) -> SlidingAttention:
    """Attention inside a window, or inside chunks, whose size is under the key."""
    shape = grouped_attention(view, family, hidden, local=True).model_dump()
    chunked = key == "attention_chunk_size"
    return SlidingAttention(**{**shape, "kind": "sliding", "window": view.whole(key), "chunked": chunked})


def grouped_attention(view: ConfigView, family: Family, hidden: int, *, local: bool = False) -> FullAttention:
    """Full attention; absent key-value heads mean as many as heads, an absent head_dim hidden / heads.

    ``local`` layers have the same shape but for the families that give their full layers other heads.
    """
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
    if not local:
        head_dim = global_dim or head_dim
        if shares:
            kv_heads, keys_as_values = global_heads or kv_heads, True
    if heads % kv_heads:
        raise view.error("num_key_value_heads", f"a divisor of the {heads} heads")
    norm = family.qk_norm
    if family.weightless_qk_norm:
        view.ignore("use_qk_norm")
    elif view.flag("use_qk_norm", default=norm != "none") != (norm != "none"):
        if norm == "none":
            raise view.error("use_qk_norm", "false: this model_type is not known with such norms")
        norm = "none"
    view.ignore("qk_norm_type")
    return FullAttention(
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


def _bias(view: ConfigView, rule: Bias) -> bool:
    stated = view.flag("attention_bias", default=rule == "always")
    if rule == "never" and stated:
        raise view.error("attention_bias", "false: this model_type is not known with biases")
    return stated if rule == "attention_bias" else rule == "always"


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
