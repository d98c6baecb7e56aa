"""Pipeline limits: what a plan may decide, and the switches of the replay (spec sections 1 and 3)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from instances.base import Document
from instances.errors import InputError
from instances.units import Tokens

# The ceiling only keeps absurd numbers from overflowing the engines' integers.
Limit = Annotated[int, Field(ge=1, le=10**9, strict=True)]
MOST_SERVE_FRACTION = 1000
LayerSplit = Literal["balanced", "free"] | tuple[Annotated[int, Field(strict=True)], ...]


class Pipeline(Document):
    """Limits on stages, chunks and batch, the layer split, and the replay's switches."""

    stages: Limit
    chunk_quantum: Annotated[Tokens, Field(ge=1)] = 1024
    max_chunks: Limit = 64
    max_batch: Limit = 8
    max_in_flight: Limit | None = None
    overlap: bool = True
    serve_fraction: Annotated[float, Field(ge=0, le=MOST_SERVE_FRACTION)] = 1.0
    switching: Literal["cut_through", "store_and_forward"] = "cut_through"
    routing: Literal["xy", "yx"] = "xy"
    one_send_per_die: bool = False
    integer_ns: bool = False
    layers: LayerSplit = "balanced"
    forbidden_cuts: tuple[Annotated[int, Field(ge=1, strict=True)], ...] = ()

    @model_validator(mode="after")
    def _one_entry_a_stage(self) -> Self:
        if isinstance(self.layers, tuple):
            if len(self.layers) != self.stages:
                raise InputError("layers", list(self.layers), f"one entry for each of the {self.stages} stages")
            if min(self.layers) < 1:
                raise InputError("layers", list(self.layers), "at least one layer for every stage (stage_nonempty)")
        return self


def balanced_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Sizes that differ by at most one, the larger ones last (spec section 1)."""
    small, larger = divmod(layers, stages)
    return tuple(small + (stage >= stages - larger) for stage in range(stages))
