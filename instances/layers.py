"""Kinds of layer: an attention and a feed-forward, as shapes without a width in bytes (spec sections 1 and 2)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from instances.base import Document
from instances.units import Bytes

# The ceiling only keeps absurd files from exhausting memory; it is far above any published model.
Size = Annotated[int, Field(ge=1, le=2**40, strict=True)]
SizeOrZero = Annotated[int, Field(ge=0, le=2**40, strict=True)]


class _GroupedAttention(Document):
    """What full and sliding attention share: MHA has kv_heads = heads, MQA has kv_heads = 1, GQA lies between.

    Biases, sinks, output gate and norms add parameters and weight bytes, never time (spec section 2, "Widths").
    With ``keys_as_values`` one projection serves for K and V; both are cached all the same.
    """

    heads: Size
    kv_heads: Size
    head_dim: Size
    qkv_bias: bool = False
    output_bias: bool = False
    sinks: bool = False
    output_gate: bool = False
    keys_as_values: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"

    @model_validator(mode="after")
    def _groups_are_whole(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads that divide heads, not {self.kv_heads} for {self.heads}")
        return self


class FullAttention(_GroupedAttention):
    """Every token meets all tokens before it."""

    kind: Literal["full"] = "full"


class SlidingAttention(_GroupedAttention):
    """A token meets the last ``window`` tokens, itself included.

    With ``chunked`` it meets those of its own chunk instead: positions are cut into chunks of ``window`` tokens, and no
    token looks back over a cut (the attention_chunk_size of Llama 4). KV is kept as for a sliding window. The key is
    not written where it is false, so that instances from before there was a choice keep their fingerprints.
    """

    kind: Literal["sliding"] = "sliding"
    window: Size
    chunked: Annotated[bool, Field(exclude_if=lambda chunked: not chunked)] = False


class SparseIndex(Document):
    """An indexer that picks the ``top_k`` tokens attention meets.

    ``shared`` layers use the choice of a layer before them and have no indexer of their own.
    """

    heads: Size
    dim: Size
    top_k: Size
    shared: bool = False


class LatentAttention(Document):
    """Multi-head latent attention (MLA): the cache holds one latent and one rotary key a token, whatever the heads."""

    kind: Literal["mla"] = "mla"
    heads: Size
    q_lora_rank: Size | None = None
    kv_lora_rank: Size
    qk_nope_head_dim: SizeOrZero
    qk_rope_head_dim: SizeOrZero
    v_head_dim: Size
    sparse: SparseIndex | None = None

    @model_validator(mode="after")
    def _has_keys(self) -> Self:
        if self.qk_nope_head_dim + self.qk_rope_head_dim == 0:
            raise ValueError("qk_nope_head_dim + qk_rope_head_dim greater than 0")
        return self


class LinearAttention(Document):
    """Linear attention or a state-space mixer, known by name: constant state, no formula for its time.

    ``state_bytes`` is per layer and sequence, null where it is not known. The roofline refuses such layers.
    """

    kind: Literal["linear"] = "linear"
    name: Annotated[str, Field(min_length=1)]
    parameters: SizeOrZero
    state_bytes: Bytes | None = None


class NoAttention(Document):
    """A layer that is a feed-forward alone, as in hybrids that alternate single blocks."""

    kind: Literal["none"] = "none"


class DenseFeedForward(Document):
    """Two matrices, or three where ``gated``."""

    kind: Literal["dense"] = "dense"
    width: Size
    gated: bool = True
    bias: bool = False


class ExpertFeedForward(Document):
    """A mixture of experts: a router, ``top_k`` of ``experts`` a token, and shared experts that every token meets."""

    kind: Literal["moe"] = "moe"
    experts: Size
    top_k: Size
    expert_width: Size
    shared_width: SizeOrZero = 0
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False

    @model_validator(mode="after")
    def _enough_experts(self) -> Self:
        if self.top_k > self.experts:
            raise ValueError(f"top_k of at most {self.experts} experts, not {self.top_k}")
        return self


class NoFeedForward(Document):
    """A layer that is a mixer alone."""

    kind: Literal["none"] = "none"


Attention = Annotated[
    FullAttention | SlidingAttention | LatentAttention | LinearAttention | NoAttention, Field(discriminator="kind")
]
FeedForward = Annotated[DenseFeedForward | ExpertFeedForward | NoFeedForward, Field(discriminator="kind")]


class LayerKind(Document):
    """One kind of layer. ``norms`` counts its hidden-wide normalisation vectors.

    With ``joins_embedding`` the layer is an extra prediction layer: one matrix of 2*hidden*hidden first joins what
    comes from below with the embedding of the next token. It counts as one of the projections.
    """

    attention: Attention
    feed_forward: FeedForward
    norms: Annotated[int, Field(ge=0, le=16, strict=True)] = 2
    joins_embedding: Annotated[bool, Field(exclude_if=lambda joins: not joins)] = False

    @property
    def active_width(self) -> int:
        """Feed-forward width one token meets: the dense width, or shared + top_k * expert (spec, "Widths")."""
        match self.feed_forward:
            case DenseFeedForward(width=width):
                return width
            case ExpertFeedForward() as moe:
                return moe.shared_width + moe.top_k * moe.expert_width
            case _:
                return 0
