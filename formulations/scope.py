"""The scope of a bound: the set of plans it speaks about (spec section 4)."""

from __future__ import annotations

from typing import Literal

from instances.base import Document
from instances.instance import Instance
from instances.plan import Plan, Schedule

PLAIN: tuple[Schedule, ...] = ("chunked",)
V_SHAPED: tuple[Schedule, ...] = ("vpp", "vpp-async", "vpp-packed")
EVERY_SCHEDULE = (*PLAIN, *V_SHAPED)


class BoundScope(Document):
    """Plans that a bound covers: no plan inside can be better than the bound.

    The spill unit is one token, every stage and the host may be a creditor, one chunk list and one spill list serve
    all waves of a request shape, and no delays are inserted. Pair adjacency is never assumed.
    """

    schedules: tuple[str, ...] = ("chunked",)
    layers: Literal["fixed", "free"]
    batch: tuple[int, int]
    chunks: tuple[int, int]
    quantum_tokens: int
    spill_unit_tokens: int = 1
    creditors: str = "all stages and host"

    def contains(self, plan: Plan) -> bool:
        """Whether a value of this plan may be compared with the bound."""
        counts = [len(sizes) for sizes in plan.chunks.values()]
        return (
            plan.schedule in self.schedules
            and self.batch[0] <= plan.batch <= self.batch[1]
            and all(self.chunks[0] <= count <= self.chunks[1] for count in counts)
            and all(size % self.quantum_tokens == 0 for sizes in plan.chunks.values() for size in sizes[:-1])
        )

    def describe(self) -> str:
        """One line for people."""
        return (
            f"{'/'.join(self.schedules)} schedule, {self.layers} layers, batch {self.batch[0]}-{self.batch[1]}, "
            f"{self.chunks[0]}-{self.chunks[1]} chunks of a multiple of {self.quantum_tokens} tokens, "
            f"any placement, any spill to {self.creditors}"
        )


def scope_of(instance: Instance, schedules: tuple[Schedule, ...], chunks: int | None = None) -> BoundScope:
    """All plans of some schedules that the instance admits, or those with so many chunks.

    Fixed layers of V-shaped plans are the balanced split over 2N parts; where the instance lists the layers of N stages
    it admits no V-shaped plan.
    """
    pipeline = instance.pipeline
    return BoundScope(
        schedules=schedules,
        layers="free" if instance.fixed_layers is None else "fixed",
        batch=(1, pipeline.max_batch),
        chunks=(1, pipeline.max_chunks) if chunks is None else (chunks, chunks),
        quantum_tokens=pipeline.chunk_quantum,
    )


def plain_scope(instance: Instance, chunks: int | None = None) -> BoundScope:
    """All plans of the plain chunked schedule that the instance admits, or those with so many chunks."""
    return scope_of(instance, PLAIN, chunks)
