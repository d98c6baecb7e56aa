"""WavePP's loop: waves of the tokens that are ready, several requests in one, sized to keep the pipeline full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from instances.workload import Request
from solver.serving.jobs import Batch, Job, Piece
from solver.serving.timing import IterationCost
from solver.serving.wavepp.admission import Admission, Entry
from solver.serving.wavepp.planner import ladder, wave_budget

GOOD_HIT = 0.8
"""Share of the expected prefix that a good hit reuses at least (the paper, section 5.8)."""


@dataclass(frozen=True)
class Waves:
    """How waves are sized.

    Parameters
    ----------
    mode
        "static": the largest budget, launched at once. "mpu": of the ladder, by tokens. "time": by predicted seconds.
    largest, smallest
        Tokens of a wave; the ladder's ends.
    target
        Waves that fill the pipeline, W*.
    deadline_ps
        How long a wave that is not full waits for requests on their way in, while others are inside.
    equal
        Whether all ready requests get the same part of a wave, or the first of them all it can use.
    """

    mode: Literal["static", "mpu", "time"]
    largest: int
    smallest: int
    target: int
    deadline_ps: int
    equal: bool = False


class WavePP:
    """First come, first served waves over requests that admission lets in.

    Parameters
    ----------
    block_bytes
        Bytes of a block on each stage.
    blocking
        Whether admission stops the loop: a request is let in before a wave, and no wave starts until all stages are
        ready for it.
    preempts
        Without escrow: whether the last request gives its blocks up where all stall, or they stay locked.
    """

    def __init__(
        self,
        admission: Admission,
        cost: IterationCost,
        requests: Sequence[Request],
        waves: Waves,
        block_bytes: Sequence[int],
        *,
        blocking: bool,
        preempts: bool = False,
    ) -> None:
        self.admission, self.cost, self.waves = admission, cost, waves
        self.requests, self.block_bytes, self.blocking = requests, tuple(block_bytes), blocking
        self.block, self.preempts, self.preemptions = admission.block, preempts, 0
        self.hits: dict[int, bool] = {}
        self._known = {f"prefix {request.prefix_id}" for request in requests if _seeded(request)}
        self._entries: dict[int, Entry] = {}
        self._inside = 0
        self._let_in = False
        self._waits_until_ps: int | None = None

    def arrive(self, job: Job, now_ps: int) -> None:
        """Queue a request."""
        request = self.requests[job.index]
        shared, prefix = prefix_of(request, job.index)
        job.context = 0
        blocks = min(shared, job.prompt) // self.block
        entry = Entry(job, prefix, blocks, min(blocks, (job.prompt - 1) // self.block), -(-job.prompt // self.block))
        own = request.prefix_id is None and request.cached_tokens > 0
        entry.expected = entry.most if own or prefix in self._known else 0
        self._known.add(prefix)
        self._entries[job.index] = entry
        self.admission.ask(entry)

    def advance(self, now_ps: int) -> None:
        """Steps of admission that are due; overlapped, the next one starts by itself."""
        self.admission.advance(now_ps)
        while not self.blocking and self.admission.next(now_ps):
            self.admission.advance(now_ps)  # steps may take no time

    def wake_ps(self, now_ps: int) -> int | None:
        """The next step of admission, the next stage 0 that is ready, the deadline of a wave that waits."""
        ready = [max(entry.ready_ps) if self.blocking else entry.ready_ps[0] for entry in self.admission.running]
        times = [self.admission.next_ps, self._waits_until_ps, *ready]
        return min((time for time in times if time is not None and time > now_ps), default=None)

    def why_idle(self) -> str:
        """Requests that hold blocks and wait for more, or one that has no room even alone."""
        caches = self.admission.caches
        least = min(cache.capacity for cache in caches)
        for entry in (*self.admission.running, *self.admission.queue):
            if entry.total > least:
                return f"memory: request {entry.job.index} needs {entry.total} blocks of KV; a stage has {least}"
        held = [entry for entry in self.admission.running if entry.began and entry.left]
        stage = min(range(len(caches)), key=lambda number: caches[number].free + caches[number].evictable)
        blocks = sum(caches[stage].active.values())
        names = ", ".join(str(entry.job.index) for entry in held)
        return (
            f"deadlock: requests {names} hold {blocks} of {caches[stage].capacity} blocks on stage {stage} "
            "and wait for more, of which there is no escrow"
        )

    def compose(self, now_ps: int) -> Batch | None:
        """The next wave."""
        if self.blocking and self._blocked(now_ps):
            return None
        batch = self._wave(now_ps)
        self._let_in = False
        while batch is None and self.blocking and self.admission.next(now_ps):
            self.admission.advance(now_ps)
            batch = None if self._unready(now_ps) else self._wave(now_ps)
        return batch

    def _wave(self, now_ps: int) -> Batch | None:
        self._waits_until_ps = None
        ready = [entry for entry in self.admission.running if entry.left and entry.ready_ps[0] <= now_ps]
        if not ready:
            return None
        budget = self._budget(ready)
        if self._holds(ready, budget, now_ps):
            return None
        pieces = self._filled(ready, budget)
        while not pieces and (victim := self._victim()) is not None:
            self.admission.preempt(victim)
            self.preemptions += 1
            # It does not start again in the same wave.
            ready = [entry for entry in ready if entry is not victim]
            pieces = self._filled(ready, budget)
        if not pieces:
            return None
        entries = [self._entries[piece.job] for piece in pieces]
        self._inside += 1
        return Batch(
            tuple(pieces),
            closes=tuple(piece.job for piece in pieces if piece.emits),
            ready_ps=tuple(max(times) for times in zip(*(entry.ready_ps for entry in entries), strict=True)),
            held=tuple(cache.used * size for cache, size in zip(self.admission.caches, self.block_bytes, strict=True)),
        )

    def finish(self, batch: Batch, now_ps: int) -> None:
        """Requests that are through leave their blocks behind."""
        self._inside -= 1
        for piece in batch.pieces:
            entry = self._entries[piece.job]
            entry.job.flying -= 1
            entry.job.produced += piece.emits
            if entry.job.done:
                self.admission.leave(entry)

    def _blocked(self, now_ps: int) -> bool:
        """Let one request in before each wave, and wait until all stages are ready for it."""
        admission = self.admission
        if not self._let_in and not admission.busy:
            self._let_in = admission.next(now_ps)
            admission.advance(now_ps)
        return self._unready(now_ps)

    def _unready(self, now_ps: int) -> bool:
        admission = self.admission
        return admission.busy or any(max(entry.ready_ps) > now_ps for entry in admission.running)

    def _victim(self) -> Entry | None:
        """Where all stall and nothing is inside that could end, the last request that began, unless it is the first."""
        began = [entry for entry in self.admission.running if entry.began]
        return began[-1] if self.preempts and not self._inside and len(began) > 1 else None

    def _begin(self, entry: Entry) -> None:
        self.admission.begin(entry)
        if entry.expected:
            self.hits[entry.job.index] = entry.start >= GOOD_HIT * entry.expected

    def _budget(self, ready: list[Entry]) -> float:
        """Tokens, or seconds in mode "time", of the next wave."""
        waves = self.waves
        tokens = ladder(waves.largest, waves.smallest)
        if waves.mode == "static":
            return waves.largest
        if waves.mode == "mpu":
            return wave_budget(sum(entry.left for entry in ready), self._inside, waves.target, tokens)
        whole = self._seconds([Piece(0, waves.largest, 0, False, False)])
        budgets = [whole * budget / waves.largest for budget in tokens]
        left = sum(self._seconds([self._piece(entry, entry.left)]) for entry in ready)
        return wave_budget(left, self._inside, waves.target, budgets)

    def _holds(self, ready: list[Entry], budget: float, now_ps: int) -> bool:
        """Whether a wave that is not full waits for what is on its way in."""
        waves = self.waves
        if waves.mode == "static" or not self._inside or not self.admission.coming:
            return False
        if waves.mode == "mpu":
            full = sum(entry.left for entry in ready) >= budget
        else:
            full = self._seconds([self._piece(entry, entry.left) for entry in ready]) >= budget
        until = min(entry.ready_ps[0] for entry in ready) + waves.deadline_ps
        if full or now_ps >= until:
            return False
        self._waits_until_ps = until
        return True

    def _filled(self, ready: list[Entry], budget: float) -> list[Piece]:
        """Tokens of the requests in turn, up to the budget."""
        pieces: list[Piece] = []
        left = self.waves.largest
        part = -(-left // len(ready)) if self.waves.equal else left
        for entry in ready:
            if left and not entry.began:
                self._begin(entry)
            tokens = min(entry.left, left, part)
            if self.waves.mode == "mpu":
                tokens = min(tokens, int(budget) - sum(piece.tokens for piece in pieces))
            elif self.waves.mode == "time":
                tokens = self._within(pieces, entry, tokens, budget)
            tokens = self._with_room(entry, tokens)
            if tokens <= 0:
                continue
            pieces.append(self._piece(entry, tokens))
            job = entry.job
            job.context += tokens
            job.computed += tokens
            job.flying += 1
            left -= tokens
        return pieces

    def _within(self, pieces: list[Piece], entry: Entry, most: int, budget_s: float) -> int:
        """Most tokens, in whole blocks, that keep the wave within a time; at least a block in an empty wave."""
        if most <= 0 or self._seconds([*pieces, self._piece(entry, most)]) <= budget_s:
            return most
        low, high = 0, -(-most // self.block)
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._seconds([*pieces, self._piece(entry, middle * self.block)]) <= budget_s
            low, high = (middle, high) if fits else (low, middle)
        return min(most, self.block * (low if pieces else max(1, low)))

    def _with_room(self, entry: Entry, tokens: int) -> int:
        """Without escrow: as many tokens as every stage has room for now; the room is taken."""
        if self.admission.protected or tokens <= 0:
            return tokens
        caches, job = self.admission.caches, entry.job
        has = entry.start + caches[0].active[job.index]
        room = (has + min(cache.free + cache.evictable for cache in caches)) * self.block - job.context
        tokens = min(tokens, room)
        needs = -(-(job.context + tokens) // self.block) - has
        if tokens > 0 and needs > 0:
            for cache in caches:
                cache.take(job.index, needs)
        return tokens

    def _piece(self, entry: Entry, tokens: int) -> Piece:
        job = entry.job
        return Piece(job.index, tokens, job.context, False, tokens == entry.left)

    def _seconds(self, pieces: list[Piece]) -> float:
        """Of a wave on its slowest stage."""
        return max(self.cost.seconds(Batch(tuple(pieces))))


def prefix_of(request: Request, index: int) -> tuple[int, str]:
    """Tokens of a request that others may share, and under which name; its own cached tokens where it shares none."""
    if request.prefix_id is None:
        return request.cached_tokens, f"request {index}"
    return request.prefix_tokens or 0, f"prefix {request.prefix_id}"


def _seeded(request: Request) -> bool:
    return request.prefix_id is not None and request.cached_tokens > 0
