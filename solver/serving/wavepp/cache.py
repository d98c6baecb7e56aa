"""The cache of one stage: chains of blocks by prefix, evicted by itself, and the room that requests take or reserve.

A chain is the leading blocks of a prefix; it loses its last blocks first, as the leaves of a radix tree do. Layers with
a recurrent state can resume only where a snapshot was kept, every ``snapshot`` blocks (0: there are no such layers).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Chain:
    """Leading blocks of a prefix, how many of them are pinned by whom, and when it was used last (a running number)."""

    blocks: int = 0
    pins: Counter[int] = field(default_factory=Counter)
    used_at: int = 0

    @property
    def pinned(self) -> int:
        """Blocks that may not go."""
        return max(self.pins.values(), default=0)


class StageCache:
    """What one stage holds; all amounts are blocks, of which each stage has its own size and number.

    Attributes
    ----------
    capacity
        Blocks of the stage's memory for KV.
    escrow
        Blocks promised to requests that have not taken them yet.
    active
        Blocks of running requests, by request.
    evicted
        Blocks that had to go, in all.
    """

    def __init__(self, capacity: int, snapshot: int = 0) -> None:
        self.capacity = capacity
        self.snapshot = snapshot
        self.chains: dict[str, Chain] = {}
        self.active: Counter[int] = Counter()
        self.escrow = 0
        self.evicted = 0
        self._clock = 0

    @property
    def used(self) -> int:
        """Blocks taken by chains and running requests."""
        return sum(chain.blocks for chain in self.chains.values()) + self.active.total()

    @property
    def free(self) -> int:
        """Blocks that nobody uses."""
        return self.capacity - self.used

    @property
    def evictable(self) -> int:
        """Blocks of chains that nobody pinned."""
        return sum(chain.blocks - chain.pinned for chain in self.chains.values())

    @property
    def available(self) -> int:
        """Blocks that can be promised: free + evictable - escrow."""
        return self.free + self.evictable - self.escrow

    def matched(self, prefix: str, most: int) -> int:
        """Blocks of a prefix that a request can resume from here: at a snapshot, where the stage needs one."""
        chain = self.chains.get(prefix)
        blocks = 0 if chain is None else min(chain.blocks, most)
        return blocks - blocks % self.snapshot if self.snapshot else blocks

    def pin(self, prefix: str, job: int, blocks: int) -> None:
        """Keep the leading blocks of a prefix for a request; 0 lets go."""
        chain = self.chains.get(prefix)
        if chain is None:
            return
        del chain.pins[job]
        if blocks:
            chain.pins[job] = blocks
            self._touch(chain)

    def take(self, job: int, blocks: int) -> int:
        """Give a request blocks, evicting the least recently used ones; how many had to go.

        Raises
        ------
        ValueError
            Where not even eviction makes room.
        """
        evicted = self._evict(blocks - self.free)
        self.active[job] += blocks
        return evicted

    def leave(self, job: int, prefix: str, start: int, shared: int, total: int) -> None:
        """A request is through: its blocks start..total-1 stay as long as nobody needs the room.

        The first ``shared`` blocks extend the prefix's chain, where they are not there already; the others are kept
        as a chain of their own, which goes before the prefix does.
        """
        own = self.active.pop(job, 0)
        chain = self.chains.setdefault(prefix, Chain()) if shared else Chain()
        del chain.pins[job]
        rest = max(0, min(own, total - max(start, shared)))
        if rest:
            tail = self.chains[f"after {job}"] = Chain(rest)
            self._touch(tail)
        if shared and chain.blocks >= start:
            chain.blocks = max(chain.blocks, shared)
        if shared:
            self._touch(chain)

    def seed(self, prefix: str, blocks: int) -> None:
        """Blocks that are there before the first request, as far as there is room."""
        blocks = min(blocks, self.capacity)
        chain = self.chains.setdefault(prefix, Chain())
        if blocks > chain.blocks:
            self._touch(chain)
            chain.pins[-1] = chain.blocks
            self._evict(blocks - chain.blocks - self.free)
            del chain.pins[-1]
            chain.blocks = blocks

    def _touch(self, chain: Chain) -> None:
        self._clock += 1
        chain.used_at = self._clock

    def _evict(self, blocks: int) -> int:
        left = max(0, blocks)
        for name, chain in sorted(self.chains.items(), key=lambda entry: entry[1].used_at):
            gone = min(left, chain.blocks - chain.pinned)
            chain.blocks -= gone
            left -= gone
            if not chain.blocks and not chain.pins:
                del self.chains[name]
            if not left:
                break
        if left:
            raise ValueError(f"no room for {left} more blocks")
        self.evicted += max(0, blocks)
        return max(0, blocks)
