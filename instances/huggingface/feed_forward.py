"""Feed-forward of each layer of a config: dense, or a mixture of experts, and which layers have which."""

from __future__ import annotations

from instances.huggingface.families import Family
from instances.huggingface.view import ConfigView
from instances.layers import DenseFeedForward, ExpertFeedForward, FeedForward

_EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts")
_TOP_K = ("num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts")
_SHARED = ("n_shared_experts", "num_shared_experts")
_SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
)


def read_feed_forward(view: ConfigView, family: Family, layers: int) -> list[FeedForward]:
    """The feed-forward of every layer, first layer first."""
    view.refuse_where_set("use_double_wide_mlp", "layers of double width are not told apart")
    count = view.whole(*_EXPERTS, default=0, least=0)
    if count <= 1 or (family.dense_beside_experts and not view.flag("enable_moe_block")):
        view.ignore(*_TOP_K, "moe_intermediate_size")
        return [dense_feed_forward(view, family)] * layers
    routed = _stepped_layers(view, layers) if family.two_widths else _routed_layers(view, layers)
    experts = expert_feed_forward(view, family)
    plain = experts if all(routed) else dense_feed_forward(view, family)
    return [experts if is_routed else plain for is_routed in routed]


def dense_feed_forward(view: ConfigView, family: Family) -> DenseFeedForward:
    """intermediate_size (beside experts in Llama 4: intermediate_size_mlp), gated or not as the model_type has it."""
    key = "intermediate_size_mlp" if family.two_widths else "intermediate_size"
    return DenseFeedForward(width=view.whole(key), gated=family.gated, bias=view.flag("mlp_bias"))


def expert_feed_forward(view: ConfigView, family: Family) -> ExpertFeedForward:
    """Widths as in spec section 2, "Widths"."""
    dense = view.get("intermediate_size")
    width = view.optional("moe_intermediate_size") or view.whole("intermediate_size")
    count, top_k = view.whole(*_EXPERTS), view.whole(*_TOP_K)
    if top_k > count:
        raise view.error(next(key for key in _TOP_K if view.get(key)), f"at most the {count} experts")
    number = view.whole(*_SHARED, default=0, least=0)
    stated = view.whole(*_SHARED_WIDTH, default=-1, least=0)
    shared = stated if stated >= 0 else number * width
    if family.dense_beside_experts:
        # A dense feed-forward beside the experts is met by every token, as a shared expert is.
        shared = view.whole("intermediate_size")
    if family.two_widths:
        shared = width  # one shared expert, always
    if dense is not None:
        view.ignore("intermediate_size")
    view.ignore("use_routing_bias", "moe_layer_freq", "intermediate_size_mlp")
    return ExpertFeedForward(
        experts=count,
        top_k=top_k,
        expert_width=width,
        shared_width=shared,
        gated=family.gated,
        bias=family.expert_bias,
        router_bias=family.router_bias,
        shared_gate=family.shared_gate and shared > 0,
    )


def _routed_layers(view: ConfigView, layers: int) -> list[bool]:
    """Which layers have experts."""
    listed = view.names("mlp_layer_types", layers, ["dense", "sparse"])
    if listed is not None:
        view.ignore("first_k_dense_replace")
        return [name == "sparse" for name in listed]
    first = view.whole("first_k_dense_replace", default=0, least=0)
    every = view.whole("decoder_sparse_step", default=1)
    frequency = view.get("moe_layer_freq")
    if frequency not in (None, 1):
        raise view.error("moe_layer_freq", "1: other layouts need mlp_layer_types")
    dense = view.get("mlp_only_layers") or []
    if not isinstance(dense, list) or any(isinstance(n, bool) or not isinstance(n, int) for n in dense):
        raise view.error("mlp_only_layers", "a list of layer numbers")
    return [layer >= first and layer not in dense and (layer + 1) % every == 0 for layer in range(layers)]


def _stepped_layers(view: ConfigView, layers: int) -> list[bool]:
    """Llama 4: the layers of a list, else each interleave_moe_layer_step-th."""
    step = view.whole("interleave_moe_layer_step", default=1)
    listed = view.get("moe_layers")
    if listed is None:
        return [(layer + 1) % step == 0 for layer in range(layers)]
    if not isinstance(listed, list) or any(layer not in range(layers) for layer in listed):
        raise view.error("moe_layers", f"a list of layer numbers below {layers}")
    return [layer in listed for layer in range(layers)]
