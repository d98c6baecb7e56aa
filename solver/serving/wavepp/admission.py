"""Admission: hint, escrow, final walk with leases, commit, local preparation; or, without protection, a match alone.

Steps of a request, first come, first served, one at a time on a control resource of its own:

1. The hint, from an index that is renewed only now and then, says how much may be reused; nothing is pinned.
2. Escrow by the hint: room for the rest is promised where free + evictable - promised has it on ALL stages.
3. The final walk, and a lease: every stage pins what all stages have (``agreed``). If that is less than the hint, the
   promise grows and is checked again; if it no longer holds, all is taken back and tried again after a release.
4. Commit: each stage by itself takes the room, evicts, offloads over its host link, and is ready when it is done.

Without protection a request is matched, nothing is pinned or promised before it runs, and room is taken chunk by chunk.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from solver.serving.jobs import Job
from solver.serving.wavepp.cache import StageCache


@dataclass(frozen=True)
class Control:
    """Times of the control plane, in picoseconds.

    Parameters
    ----------
    walk_ps
        A stage's walk through its cache.
    round_ps
        A round trip over all stages.
    block_ps
        Preparing a block on a stage.
    offload_ps
        Moving an evicted block to the host, by stage; 0 where it is dropped.
    hint_age_ps
        How often the index of hints is renewed; 0: it is never stale.
    """

    walk_ps: int
    round_ps: int
    block_ps: int
    offload_ps: tuple[int, ...]
    hint_age_ps: int


@dataclass(eq=False)
class Entry:
    """A request on its way in; sizes in blocks.

    Attributes
    ----------
    shared, most, total
        Blocks of its prefix that others can use, that it may reuse, and of the whole prompt.
    expected
        Blocks that it should find, since an earlier request or the start left them.
    hint, start
        Blocks that the hint promised, and that it reuses.
    promised
        Blocks in escrow for it, or that it takes at the commit.
    ready_ps
        When each stage is ready for it.
    """

    job: Job
    prefix: str
    shared: int
    most: int
    total: int
    expected: int = 0
    hint: int = 0
    start: int = 0
    promised: int = 0
    began: bool = False
    ready_ps: list[int] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Tokens that no wave has yet."""
        return self.job.goal - self.job.context


def agreed(caches: Sequence[StageCache], prefix: str, most: int) -> int:
    """Blocks of a prefix that every stage can resume from, recurrent snapshots included."""
    blocks = most
    while True:
        common = min(cache.matched(prefix, blocks) for cache in caches)
        if common == blocks:
            return blocks
        blocks = common


class Admission:
    """Who is let in, and when each stage is ready for them.

    Parameters
    ----------
    protected
        Leases and escrow, or neither.
    most_held
        Requests that hold cache state at a time (lease limit).
    headroom
        Tokens to compute of those requests at most; one request is always let in.
    """

    def __init__(
        self,
        caches: Sequence[StageCache],
        control: Control,
        *,
        protected: bool,
        most_held: int,
        headroom: int,
        block: int,
    ) -> None:
        self.caches, self.control, self.protected = caches, control, protected
        self.most_held, self.headroom, self.block = most_held, headroom, block
        self.queue: deque[Entry] = deque()
        self.held: dict[int, Entry] = {}
        self.running: list[Entry] = []
        self.busy = False
        self.stale_hints = self.rechecks = self.lost_blocks = 0
        self._index: dict[str, int] = {}
        self._index_at = -1
        self._waits = False
        self._prepared_ps = [0] * len(caches)
        self._timers: list[tuple[int, int, bool, Entry]] = []
        self._number = count()

    @property
    def next_ps(self) -> int | None:
        """When the next step is due."""
        return self._timers[0][0] if self._timers else None

    @property
    def coming(self) -> bool:
        """Whether more work is on its way in."""
        return self.busy or bool(self.queue and not self._waits and len(self.held) < self.most_held)

    def ask(self, entry: Entry) -> None:
        """Queue a request."""
        self.queue.append(entry)

    def advance(self, now_ps: int) -> None:
        """Do the steps that are due."""
        while self._timers and self._timers[0][0] <= now_ps:
            at_ps, _, walks, entry = heapq.heappop(self._timers)
            (self._lease if walks else self._commit)(entry, at_ps)

    def next(self, now_ps: int) -> bool:
        """Start with the first request of the queue; False where something stands against it."""
        if self.busy or self._waits or not self.queue or len(self.held) >= self.most_held:
            return False
        entry = self.queue[0]
        entry.hint = self._hinted(entry, now_ps)
        tokens = sum(other.left for other in self.held.values()) + entry.job.prompt - entry.hint * self.block
        if self.held and tokens > self.headroom:
            return False
        if self.protected:
            entry.promised = entry.total - entry.hint
            if min(cache.available for cache in self.caches) < entry.promised:
                return False
            self._promise(entry.promised)
        self.queue.popleft()
        self.held[entry.job.index] = entry
        self.busy = True
        self._later(now_ps + self.control.walk_ps + self.control.round_ps, True, entry)
        return True

    def begin(self, entry: Entry) -> None:
        """Before the first wave: without leases what was matched may be gone, and is pinned only now."""
        entry.began = True
        if not self.protected:
            now = agreed(self.caches, entry.prefix, entry.start)
            self.lost_blocks += entry.start - now
            entry.start = now
            self._pin(entry, now)
        entry.job.context = entry.start * self.block

    def preempt(self, entry: Entry) -> None:
        """A request gives its blocks up and computes them anew, later."""
        for cache in self.caches:
            cache.active.pop(entry.job.index, None)
        self._pin(entry, 0)
        entry.began = False
        entry.start = agreed(self.caches, entry.prefix, entry.most)
        entry.job.context = entry.start * self.block

    def leave(self, entry: Entry) -> None:
        """A request is through: its blocks stay while there is room, its lease ends."""
        for cache in self.caches:
            cache.leave(entry.job.index, entry.prefix, entry.start, entry.shared, entry.total)
        del self.held[entry.job.index]
        self.running.remove(entry)
        self._waits = False

    def _lease(self, entry: Entry, now_ps: int) -> None:
        """The final walk; pins what all have, and lets go of what only some have."""
        entry.start = agreed(self.caches, entry.prefix, entry.most)
        self.stale_hints += entry.start != entry.hint
        entry.job.context = entry.start * self.block
        if not self.protected:
            self._ready(entry, [now_ps] * len(self.caches))
            return
        self._pin(entry, entry.start)
        self._promise(entry.total - entry.start - entry.promised)
        self.rechecks += entry.start < entry.hint
        entry.promised = entry.total - entry.start
        if min(cache.available for cache in self.caches) < 0:
            self._pin(entry, 0)
            self._promise(-entry.promised)
            del self.held[entry.job.index]
            self.queue.appendleft(entry)
            self.busy, self._waits = False, bool(self.held)
            return
        self._later(now_ps + self.control.round_ps, False, entry)

    def _commit(self, entry: Entry, now_ps: int) -> None:
        """Each stage takes the room that was promised, and prepares it."""
        ready = []
        for stage, cache in enumerate(self.caches):
            cache.escrow -= entry.promised
            evicted = cache.take(entry.job.index, entry.promised)
            takes = self.control.block_ps * entry.promised + self.control.offload_ps[stage] * evicted
            self._prepared_ps[stage] = max(now_ps, self._prepared_ps[stage]) + takes
            ready.append(self._prepared_ps[stage])
        self._ready(entry, ready)

    def _ready(self, entry: Entry, ready_ps: list[int]) -> None:
        entry.ready_ps = ready_ps
        self.running.append(entry)
        self.busy = False

    def _pin(self, entry: Entry, blocks: int) -> None:
        for cache in self.caches:
            cache.pin(entry.prefix, entry.job.index, blocks)

    def _promise(self, blocks: int) -> None:
        for cache in self.caches:
            cache.escrow += blocks

    def _later(self, at_ps: int, walks: bool, entry: Entry) -> None:
        heapq.heappush(self._timers, (at_ps, next(self._number), walks, entry))

    def _hinted(self, entry: Entry, now_ps: int) -> int:
        age = self.control.hint_age_ps
        if age == 0:
            return agreed(self.caches, entry.prefix, entry.most)
        if now_ps // age != self._index_at:
            self._index_at = now_ps // age
            names = {name for cache in self.caches for name in cache.chains}
            longest = max(cache.capacity for cache in self.caches)
            self._index = {name: agreed(self.caches, name, longest) for name in names}
        return min(self._index.get(entry.prefix, 0), entry.most)
