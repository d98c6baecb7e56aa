"""A model: layers of a few kinds, a vocabulary, widths in bytes of weights, KV and activations (spec section 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from instances.base import Document
from instances.layers import LayerKind, Size

Width = Annotated[float, Field(ge=2**-10, le=16)]
"""Bytes per element, at least a hundredth of a bit; fractions are common: mxfp4 = 17/32, nvfp4 = 9/16, fp8 in 128x128
blocks = 1 + 4/16384."""

MAX_LAYERS = 100_000


class Widths(Document):
    """Bytes per weight for each group of weights; shared experts belong to ``dense``, biases and sinks to ``norms``."""

    experts: Width
    attention: Width
    dense: Width
    router: Width
    embedding: Width
    head: Width
    norms: Width

    @classmethod
    def uniform(cls, width: float) -> Self:
        """The same width everywhere."""
        return cls(
            experts=width,
            attention=width,
            dense=width,
            router=width,
            embedding=width,
            head=width,
            norms=width,
        )


class WidthChanges(Document):
    """A map that changes some groups of a model's widths and leaves the others."""

    experts: Width | None = None
    attention: Width | None = None
    dense: Width | None = None
    router: Width | None = None
    embedding: Width | None = None
    head: Width | None = None
    norms: Width | None = None


class LayerRun(Document):
    """A sequence of kinds, repeated."""

    pattern: Annotated[tuple[str, ...], Field(min_length=1)]
    repeat: Annotated[int, Field(ge=1, le=MAX_LAYERS, strict=True)] = 1


class Model(Document):
    """A decoder-only model as the cost model sees it.

    ``layers`` expands, in order, to the kind of each layer. ``weight_bytes`` is one width for everything or a width
    per group; ``kv_bytes`` and ``activation_bytes`` are independent of it.
    """

    name: Annotated[str, Field(min_length=1)]
    hidden: Size
    vocab: Size
    tied_embeddings: bool = False
    kinds: dict[str, LayerKind]
    layers: Annotated[tuple[LayerRun, ...], Field(min_length=1)]
    weight_bytes: Width | Widths
    kv_bytes: Width
    activation_bytes: Width
    source: str | None = None

    @model_validator(mode="after")
    def _layers_are_known(self) -> Self:
        for run in self.layers:
            for name in run.pattern:
                if name not in self.kinds:
                    raise ValueError(f"layers made of the kinds {', '.join(self.kinds)}, not {name!r}")
        total = sum(run.repeat * len(run.pattern) for run in self.layers)
        if total > MAX_LAYERS:
            raise ValueError(f"at most {MAX_LAYERS} layers, not {total}")
        return self

    @cached_property
    def layer_kinds(self) -> tuple[str, ...]:
        """Name of the kind of each layer, first layer first."""
        return tuple(name for run in self.layers for _ in range(run.repeat) for name in run.pattern)

    @property
    def layer_count(self) -> int:
        """Number of layers."""
        return len(self.layer_kinds)

    def kind_counts(self, start: int, stop: int) -> dict[str, int]:
        """How many layers of each kind lie in ``start .. stop-1``, in order of first appearance."""
        return dict(Counter(self.layer_kinds[start:stop]))

    @property
    def widths(self) -> Widths:
        """Bytes per weight of every group."""
        return self.weight_bytes if isinstance(self.weight_bytes, Widths) else Widths.uniform(self.weight_bytes)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, as in pydantic; what is derived from the layers is derived anew."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("layer_kinds", None)
        return copied

    def with_bytes(
        self,
        weight_bytes: float | Widths | WidthChanges | Mapping[str, float] | None = None,
        kv_bytes: float | None = None,
        activation_bytes: float | None = None,
    ) -> Model:
        """The same model with other widths; None leaves a width as it is.

        A number for ``weight_bytes`` holds for all weights, embedding and head included; a map changes the groups it
        names and leaves the others.

        Raises
        ------
        InputError
            If a width is not a number in (0, 16], or a group is unknown.
        """
        changes: dict[str, Any] = self.model_dump()
        if isinstance(weight_bytes, Widths | WidthChanges):
            weight_bytes = weight_bytes.model_dump(exclude_none=True)
        if isinstance(weight_bytes, Mapping):
            changes["weight_bytes"] = {**self.widths.model_dump(), **weight_bytes}
        elif weight_bytes is not None:
            changes["weight_bytes"] = weight_bytes
        if kv_bytes is not None:
            changes["kv_bytes"] = kv_bytes
        if activation_bytes is not None:
            changes["activation_bytes"] = activation_bytes
        return Model.parse(changes)
