"""The bytes held at a place (a die or a host memory), its waiting writes, and the log of every change."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from tests.reference.network import Transfer
from tests.reference.program import Place, Task


@dataclass(eq=False)
class Write:
    """A spill write: waiting at the creditor, or granted and then on its way or arrived."""

    task: Task
    place: Place
    spilled_bytes: Fraction
    transfer: Transfer | None = None
    # Set when the wave's KV at this stage is freed before the write has arrived.
    void: bool = False


@dataclass(frozen=True)
class MemoryChange:
    """One change of the bytes in use at a place, and the wave and stage whose KV it is."""

    time_ps: int
    place: Place
    wave: int
    stage: int
    chunk: int
    reason: str
    changed_bytes: Fraction
    used_bytes: Fraction


@dataclass
class Memory:
    """Bytes in use at one place against its capacity (None = unlimited), peak, and writes waiting for room."""

    place: Place
    capacity_bytes: Fraction | None
    used_bytes: Fraction
    peak_bytes: Fraction = field(init=False)
    waiting: list[Write] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.peak_bytes = self.used_bytes

    def fits(self, wanted_bytes: Fraction) -> bool:
        """Exactly full is allowed."""
        return self.capacity_bytes is None or self.used_bytes + wanted_bytes <= self.capacity_bytes

    def change(self, time_ps: int, task: Task, reason: str, changed_bytes: Fraction) -> MemoryChange:
        self.used_bytes += changed_bytes
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        return MemoryChange(
            time_ps, self.place, task.wave, task.stage, task.chunk, reason, changed_bytes, self.used_bytes
        )
