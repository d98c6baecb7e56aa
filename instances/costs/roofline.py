"""The roofline: time of a chunk from the shapes of the layers and the rates of the die (spec section 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instances.errors import InputError
from instances.hardware import Die
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
from instances.parameters import kv_bytes_per_token, latent_expansion_weights, matrices, projection_weights

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LayerSeconds:
    """Parts of one layer's time; gemm and vector have the shape of the chunks, attention the broadcast shape."""

    gemm: FloatArray
    vector: FloatArray
    attention: FloatArray
    overhead: float

    @property
    def total(self) -> FloatArray:
        """layer_s of the specification."""
        return (self.gemm + self.vector + self.overhead) + self.attention


def refuse_unknown_time(model: Model) -> None:
    """Linear attention and state-space layers have no formula with a source: refuse them by name."""
    for name, kind in model.kinds.items():
        if isinstance(kind.attention, LinearAttention) and name in model.layer_kinds:
            raise InputError(
                f"model.kinds.{name}.attention",
                kind.attention.name,
                "attention of a kind the roofline has a formula for (full, sliding, mla); "
                f"for {kind.attention.name} layers give costs of kind fitted or table",
            )


def causal_pairs(chunk: FloatArray, prefix: FloatArray) -> FloatArray:
    """Pairs of a query and a key it meets: c*p + c*(c+1)/2."""
    pairs: FloatArray = chunk * prefix + chunk * (chunk + 1) / 2
    return pairs


def window_pairs(chunk: FloatArray, prefix: FloatArray, window: int) -> FloatArray:
    """Sum over j = 1..c of min(p + j, window): the first tokens still see everything, the others ``window``."""
    growing = np.clip(window - prefix, 0.0, chunk)
    pairs: FloatArray = growing * prefix + growing * (growing + 1) / 2 + (chunk - growing) * window
    return pairs


def chunked_pairs(chunk: FloatArray, prefix: FloatArray, size: int) -> FloatArray:
    """Sum over j = 1..c of (p + j - 1) mod size + 1: a token meets those of its own chunk of ``size`` positions."""
    pairs: FloatArray = _pairs_from_start(prefix + chunk, size) - _pairs_from_start(prefix, size)
    return pairs


def _pairs_from_start(tokens: FloatArray, size: int) -> FloatArray:
    whole, rest = np.divmod(tokens, size)
    pairs: FloatArray = whole * (size * (size + 1) / 2) + rest * (rest + 1) / 2
    return pairs


def touched_experts(experts: int, top_k: int, tokens: FloatArray) -> FloatArray:
    """Expected number of distinct experts that a group of tokens meets: E * (1 - (1 - k/E)^tokens)."""
    if top_k == experts:
        return np.where(tokens > 0, float(experts), 0.0)
    touched: FloatArray = -experts * np.expm1(tokens * np.log1p(-top_k / experts))
    return touched


def layer_seconds(model: Model, name: str, die: Die, batch: int, chunk: FloatArray, prefix: FloatArray) -> LayerSeconds:
    """Time of one layer of the named kind, for ``batch`` sequences that each add ``chunk`` tokens to ``prefix``."""
    kind = model.kinds[name]
    tokens = batch * chunk
    hbm = die.hbm_bytes_per_s * die.hbm_efficiency
    moved = 2 * tokens * model.hidden * model.activation_bytes
    gemm = np.zeros_like(tokens)
    for active, touched_bytes in (_projections(model, kind), _feed_forward(model, kind, tokens)):
        if active:
            compute = 2 * tokens * active / (die.peak_flops * die.gemm_efficiency)
            gemm = gemm + np.maximum(compute, (touched_bytes + moved) / hbm)
    vector = tokens * ((3 * kind.active_width + 8 * model.hidden) * model.activation_bytes / hbm)
    flops, span = _attention_work(kind, chunk, prefix)
    per_flop = batch / (die.peak_flops * die.attention_efficiency)
    per_token = batch * kv_bytes_per_token(model, name) / hbm
    attention = np.maximum(flops * per_flop, span * per_token)
    return LayerSeconds(gemm=gemm, vector=vector, attention=attention, overhead=die.layer_overhead_s)


def head_seconds(model: Model, die: Die, batch: int) -> float:
    """Output head of the last chunk: one token of each sequence."""
    weights = model.hidden * model.vocab
    compute = 2 * batch * weights / (die.peak_flops * die.gemm_efficiency)
    return max(compute, weights * model.widths.head / (die.hbm_bytes_per_s * die.hbm_efficiency))


def _projections(model: Model, kind: LayerKind) -> tuple[int, FloatArray]:
    active = projection_weights(kind, model.hidden)
    return active, np.asarray(active * model.widths.attention)


def _feed_forward(model: Model, kind: LayerKind, tokens: FloatArray) -> tuple[int, FloatArray]:
    """Weights one token meets, and bytes of the weights that are read for all tokens together."""
    width = model.widths
    match kind.feed_forward:
        case DenseFeedForward() as plain:
            active = matrices(plain.gated) * model.hidden * plain.width
            return active, np.asarray(active * width.dense)
        case ExpertFeedForward() as moe:
            router = model.hidden * moe.experts
            shared = matrices(moe.gated) * model.hidden * moe.shared_width
            expert = matrices(moe.gated) * model.hidden * moe.expert_width
            touched = touched_experts(moe.experts, moe.top_k, tokens) * (expert * width.experts)
            return router + shared + moe.top_k * expert, router * width.router + shared * width.dense + touched
        case _:
            return 0, np.asarray(0.0)


def _attention_work(kind: LayerKind, chunk: FloatArray, prefix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """FLOPs of one sequence, and tokens whose KV is read."""
    match kind.attention:
        case FullAttention() as full:
            return 4 * full.heads * full.head_dim * causal_pairs(chunk, prefix), prefix + chunk
        case SlidingAttention(chunked=True) as cut:
            pairs = chunked_pairs(chunk, prefix, cut.window)
            return 4 * cut.heads * cut.head_dim * pairs, np.mod(prefix, cut.window) + chunk
        case SlidingAttention() as sliding:
            pairs = window_pairs(chunk, prefix, sliding.window)
            span = np.minimum(prefix + chunk, sliding.window + chunk)
            return 4 * sliding.heads * sliding.head_dim * pairs, span
        case LatentAttention() as mla:
            return _latent_flops(mla, chunk, prefix), prefix + chunk
        case _:
            return np.asarray(0.0), np.asarray(0.0)


def _latent_flops(mla: LatentAttention, chunk: FloatArray, prefix: FloatArray) -> FloatArray:
    """Scores, the latent of the prefix expanded again for this chunk, and the indexer where there is one."""
    per_pair = 2 * mla.heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim + mla.v_head_dim)
    expansion = 2 * latent_expansion_weights(mla) * prefix
    if mla.sparse is None:
        return per_pair * causal_pairs(chunk, prefix) + expansion
    chosen = per_pair * window_pairs(chunk, prefix, mla.sparse.top_k) + expansion
    if mla.sparse.shared:
        return chosen
    return chosen + 2 * mla.sparse.heads * mla.sparse.dim * causal_pairs(chunk, prefix)
