"""What a scheduler knows of the memory of the stages: bytes held by each request, and what is left on each stage."""

from __future__ import annotations

from collections.abc import Sequence

from solver.serving.timing import IterationCost


class Memory:
    """Room for KV on every stage; a request holds memory on all stages or on none, as engines count it.

    Releases count when the scheduler hears of them, so at no moment does a stage hold more than is counted here.
    """

    def __init__(self, cost: IterationCost, free_bytes: Sequence[int]) -> None:
        self._cost = cost
        self._total = list(free_bytes)
        self.free = list(free_bytes)
        self._held: dict[int, list[int]] = {}

    def need(self, tokens: int, chunk: int) -> list[int]:
        """Bytes on each stage of a request of so many tokens."""
        return self._cost.held_bytes(tokens, chunk)

    def hold(self, job: int, tokens: int, chunk: int) -> bool:
        """Let a request hold so many tokens from now on; False, and nothing changes, where there is no room."""
        need, held = self.need(tokens, chunk), self._held.get(job, [0] * len(self.free))
        left = [free + old - new for free, old, new in zip(self.free, held, need, strict=True)]
        if min(left) < 0:
            return False
        self.free, self._held[job] = left, need
        return True

    def release(self, job: int) -> None:
        """A request holds nothing more."""
        held = self._held.pop(job, None)
        if held is not None:
            self.free = [free + old for free, old in zip(self.free, held, strict=True)]

    def ever_fits(self, tokens: int, chunk: int) -> bool:
        """Whether a request alone has room."""
        return all(need <= total for need, total in zip(self.need(tokens, chunk), self._total, strict=True))

    def shortage(self, tokens: int, chunk: int) -> str:
        """Where a request alone has no room, in words."""
        need = self.need(tokens, chunk)
        missing = [amount - total for amount, total in zip(need, self._total, strict=True)]
        stage = missing.index(max(missing))
        room = max(0, self._total[stage])
        return f"{need[stage]} bytes of KV on stage {stage}, where {room} are left beside weights and workspace"

    @property
    def held(self) -> tuple[int, ...]:
        """Bytes that all requests hold together on each stage."""
        return tuple(total - free for total, free in zip(self._total, self.free, strict=True))

    @property
    def free_share(self) -> float:
        """Share of the KV memory that is free on the fullest stage."""
        return min((free / total for free, total in zip(self.free, self._total, strict=True) if total > 0), default=0.0)
