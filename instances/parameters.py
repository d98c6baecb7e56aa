"""Parameters, weight bytes and KV bytes of a model, by layer kind and by stage (spec section 2, "Widths")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from instances.errors import InputError
from instances.layers import (
    DenseFeedForward,
    ExpertFeedForward,
    FullAttention,
    LatentAttention,
    LayerKind,
    LinearAttention,
    SlidingAttention,
)
from instances.model import Model

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LayerWeights:
    """Weights of one layer, by the group whose width they have.

    ``dense`` holds a dense feed-forward or the shared experts. ``norms`` holds everything that is never time: norms,
    biases, sinks. The ``active_`` counts are what one token meets.
    """

    attention: int
    dense: int
    router: int
    experts: int
    active_experts: int
    norms: int
    active_norms: int

    @property
    def total(self) -> int:
        """All parameters of the layer."""
        return self.attention + self.dense + self.router + self.experts + self.norms

    @property
    def active(self) -> int:
        """Parameters one token meets."""
        return self.attention + self.dense + self.router + self.active_experts + self.active_norms


def projection_weights(kind: LayerKind, hidden: int) -> int:
    """Weights of the projections that the cost model times: Q, K, V, output; for MLA its down and up projections.

    The matrix with which an extra prediction layer begins is among them.
    """
    return _attention_weights(kind, hidden) + (2 * hidden * hidden if kind.joins_embedding else 0)


def _attention_weights(kind: LayerKind, hidden: int) -> int:
    match kind.attention:
        case FullAttention() | SlidingAttention() as grouped:
            key_value = grouped.kv_heads if grouped.keys_as_values else 2 * grouped.kv_heads
            return hidden * grouped.head_dim * (2 * grouped.heads + key_value)
        case LatentAttention() as mla:
            key = mla.qk_nope_head_dim + mla.qk_rope_head_dim
            rank = mla.q_lora_rank
            query = hidden * mla.heads * key if rank is None else hidden * rank + rank * mla.heads * key
            down = hidden * (mla.kv_lora_rank + mla.qk_rope_head_dim)
            return query + down + latent_expansion_weights(mla) + mla.heads * mla.v_head_dim * hidden
        case _:
            return 0


def latent_expansion_weights(mla: LatentAttention) -> int:
    """Weights that turn a cached latent into keys and values of all heads: kv_lora * heads * (nope + v)."""
    return mla.kv_lora_rank * mla.heads * (mla.qk_nope_head_dim + mla.v_head_dim)


def _untimed_attention_weights(kind: LayerKind, hidden: int) -> int:
    """Matrices of the attention that count as parameters only: output gates, the indexer, a linear mixer."""
    match kind.attention:
        case FullAttention() | SlidingAttention() as grouped:
            return hidden * grouped.heads * grouped.head_dim if grouped.output_gate else 0
        case LatentAttention(sparse=index) as mla if index is not None and not index.shared:
            query_input = hidden if mla.q_lora_rank is None else mla.q_lora_rank
            return query_input * index.heads * index.dim + hidden * (index.dim + index.heads)
        case LinearAttention(parameters=parameters):
            return parameters
        case _:
            return 0


def _attention_vectors(kind: LayerKind, hidden: int) -> int:
    """Biases, sinks and inner norms of the attention."""
    match kind.attention:
        case FullAttention() | SlidingAttention() as grouped:
            query, key = grouped.heads * grouped.head_dim, grouped.kv_heads * grouped.head_dim
            norm = {"none": 0, "head": 2 * grouped.head_dim, "full": query + key}[grouped.qk_norm]
            qkv = query + 2 * key if grouped.qkv_bias else 0
            return norm + qkv + (hidden if grouped.output_bias else 0) + (grouped.heads if grouped.sinks else 0)
        case LatentAttention(sparse=index) as mla:
            # The indexer's key norm has a weight and a bias.
            own_index = 2 * index.dim if index is not None and not index.shared else 0
            return (mla.q_lora_rank or 0) + mla.kv_lora_rank + own_index
        case _:
            return 0


def matrices(gated: bool) -> int:
    """Matrices of a feed-forward: 3*h*f weights where it is gated, 2*h*f where it is plain."""
    return 3 if gated else 2


def _feed_forward_bias(width: int, hidden: int, gated: bool) -> int:
    return width * (matrices(gated) - 1) + hidden


def layer_weights(kind: LayerKind, hidden: int) -> LayerWeights:
    """Count the weights of one layer of a kind."""
    attention = projection_weights(kind, hidden) + _untimed_attention_weights(kind, hidden)
    vectors = kind.norms * hidden + _attention_vectors(kind, hidden)
    dense = router = experts = active_experts = 0
    active_vectors = vectors
    match kind.feed_forward:
        case DenseFeedForward() as plain:
            dense = matrices(plain.gated) * hidden * plain.width
            vectors += _feed_forward_bias(plain.width, hidden, plain.gated) if plain.bias else 0
            active_vectors = vectors
        case ExpertFeedForward() as moe:
            expert = matrices(moe.gated) * hidden * moe.expert_width
            dense = matrices(moe.gated) * hidden * moe.shared_width + (hidden if moe.shared_gate else 0)
            router, experts, active_experts = hidden * moe.experts, moe.experts * expert, moe.top_k * expert
            bias = _feed_forward_bias(moe.expert_width, hidden, moe.gated) if moe.bias else 0
            common = vectors + (moe.experts if moe.router_bias else 0)
            vectors, active_vectors = common + moe.experts * bias, common + moe.top_k * bias
    return LayerWeights(
        attention=attention,
        dense=dense,
        router=router,
        experts=experts,
        active_experts=active_experts,
        norms=vectors,
        active_norms=active_vectors,
    )


def layer_weight_bytes(model: Model, kind: str) -> float:
    """Bytes of the weights of one layer of the named kind."""
    count, width = layer_weights(model.kinds[kind], model.hidden), model.widths
    return (
        count.attention * width.attention
        + count.dense * width.dense
        + count.router * width.router
        + count.experts * width.experts
        + count.norms * width.norms
    )


def parameters_total(model: Model) -> int:
    """All parameters; tied embedding and head count once."""
    layers = sum(
        count * layer_weights(model.kinds[kind], model.hidden).total
        for kind, count in model.kind_counts(0, model.layer_count).items()
    )
    tables = 1 if model.tied_embeddings else 2
    return layers + tables * model.vocab * model.hidden + model.hidden


def parameters_active(model: Model) -> int:
    """Parameters one token meets: layers with top_k and shared experts, final norm and head, not the embedding."""
    layers = sum(
        count * layer_weights(model.kinds[kind], model.hidden).active
        for kind, count in model.kind_counts(0, model.layer_count).items()
    )
    return layers + model.vocab * model.hidden + model.hidden


def die_weight_bytes(model: Model, parts: Sequence[tuple[int, int]], has_embedding: bool, has_head: bool) -> float:
    """Weight bytes of a die that holds the layers ``start .. stop-1`` of each part.

    The final norm goes with the head. Tied embedding and head count once on a die that has both; they are stored at
    the wider of the two widths.
    """
    total = 0.0
    for start, stop in parts:
        check_range(model, start, stop)
        total += sum(count * layer_weight_bytes(model, kind) for kind, count in model.kind_counts(start, stop).items())
    table = model.vocab * model.hidden
    embedding = table * model.widths.embedding if has_embedding else 0.0
    head = table * model.widths.head if has_head else 0.0
    tables = max(embedding, head) if model.tied_embeddings else embedding + head
    return total + tables + (model.hidden * model.widths.norms if has_head else 0.0)


def stage_weight_bytes(model: Model, start: int, stop: int, has_embedding: bool, has_head: bool) -> float:
    """Weight bytes of one stage, layers ``start .. stop-1``; see `die_weight_bytes`."""
    return die_weight_bytes(model, [(start, stop)], has_embedding, has_head)


def kv_bytes_per_token(model: Model, kind: str) -> float:
    """Bytes of KV one token adds to one layer of the named kind; a sliding layer stops growing at its window.

    2*kv_heads*head_dim*kv_bytes, for MLA (kv_lora_rank + qk_rope_head_dim)*kv_bytes (spec section 2).
    """
    match model.kinds[kind].attention:
        case FullAttention() | SlidingAttention() as grouped:
            return 2 * grouped.kv_heads * grouped.head_dim * model.kv_bytes
        case LatentAttention() as mla:
            return (mla.kv_lora_rank + mla.qk_rope_head_dim) * model.kv_bytes
        case _:
            return 0.0


def kv_grows(model: Model, kind: str) -> bool:
    """Whether a layer's KV grows with every token, and so may be spilled: full attention and MLA."""
    return isinstance(model.kinds[kind].attention, FullAttention | LatentAttention)


def kv_held_bytes(model: Model, kind: str, tokens: npt.ArrayLike, chunk: npt.ArrayLike) -> FloatArray:
    """KV that one layer holds for one sequence once a chunk has started: the layer's share of K(i), spec section 2.

    Parameters
    ----------
    tokens
        Tokens up to and with the chunk, P; any shape.
    chunk
        Tokens of the chunk; broadcast against ``tokens``.

    Raises
    ------
    InputError
        For a linear layer whose state is unknown.
    """
    held, size = np.broadcast_arrays(np.asarray(tokens, dtype=np.float64), np.asarray(chunk, dtype=np.float64))
    match model.kinds[kind].attention:
        case SlidingAttention(window=window):
            held = np.minimum(held, window + size)
        case LinearAttention(name=name, state_bytes=state):
            if state is None:
                raise InputError(f"model.kinds.{kind}.attention.state_bytes", None, f"the state of {name} in bytes")
            return np.where(held > 0, state, 0.0)
    return held * kv_bytes_per_token(model, kind)


def kv_window_bytes(model: Model) -> float | None:
    """Most that sliding layers and states keep per sequence between chunks; None if a state's size is unknown.

    While a chunk of c tokens runs, each sliding layer holds c tokens more (spec section 2, K).
    """
    total = 0.0
    for kind, count in model.kind_counts(0, model.layer_count).items():
        match model.kinds[kind].attention:
            case SlidingAttention(window=window):
                total += count * window * kv_bytes_per_token(model, kind)
            case LinearAttention(state_bytes=state):
                if state is None:
                    return None
                total += count * state
    return total


def growth_bytes_per_token(model: Model, start: int, stop: int) -> float:
    """Bytes one token of one sequence adds, for good, to the full-attention and MLA layers ``start .. stop-1``."""
    counts = model.kind_counts(start, stop).items()
    return sum((count * kv_bytes_per_token(model, kind) for kind, count in counts if kv_grows(model, kind)), 0.0)


def check_range(model: Model, start: int, stop: int) -> None:
    """Refuse a range of layers outside the model, or an empty one (`stage_nonempty`)."""
    if not 0 <= start < stop <= model.layer_count:
        raise InputError("layers", [start, stop], f"start < stop in 0..{model.layer_count} (layers of {model.name})")


def summary(model: Model) -> dict[str, Any]:
    """What ``waferplan models --show`` prints (interface page, "Commands"); bytes are whole-model figures."""
    counts = model.kind_counts(0, model.layer_count)
    return {
        "name": model.name,
        "parameters_total": parameters_total(model),
        "parameters_active": parameters_active(model),
        "weight_bytes": _whole(stage_weight_bytes(model, 0, model.layer_count, True, True)),
        "kv_bytes_per_token": _whole(growth_bytes_per_token(model, 0, model.layer_count)),
        "kv_bytes_per_token_layer": {kind: _whole(kv_bytes_per_token(model, kind)) for kind in counts},
        "kv_window_bytes": _whole(kv_window_bytes(model)),
        "layers": counts,
        "source": model.source,
    }


def _whole(value: float | None) -> int | float | None:
    """Print whole numbers of bytes as integers."""
    return int(value) if value is not None and value == int(value) else value
