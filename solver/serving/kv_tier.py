"""KV in two tiers: a prefix that lies in host memory is loaded or computed anew, whichever takes less time.

Block by block: a block of x tokens behind L others is loaded if bytes / host bandwidth < f(L + x) - f(L), where f(l) is
the time of a first chunk of l tokens; both on the stage where they take longest. With f(l) = c + b*l + a*l^2 blocks
from L* = (bytes a token / bandwidth - b - a*x) / (2*a) on are loaded and those before are computed (``crossover``).
The front is computed while the rest is loaded, each die over its own host link, first come, first served; the suffix
waits for both. A request holds the KV of its whole prompt on the dies from its first chunk on: the host serves reuse
alone, as in today's engines.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import numpy as np

from instances.errors import InputError
from instances.workload import Request
from solver.serving.jobs import Batch, Job, Piece
from solver.serving.memory import Memory
from solver.serving.setting import Setting
from solver.simulation.network import whole_ps


@dataclass(frozen=True)
class Tier:
    """Time to load and to compute blocks of a prefix.

    Parameters
    ----------
    host_bytes_per_s
        Speed of each die's host link, each way.
    block
        Tokens of a block.
    """

    setting: Setting
    host_bytes_per_s: float
    block: int

    def load_s(self, tokens: int) -> float:
        """Seconds until the last stage has its KV of so many tokens."""
        return max(self.setting.cost.held_bytes(tokens, 0)) / self.host_bytes_per_s

    def compute_s(self, before: int, tokens: int) -> float:
        """f(L + x) - f(L) on the slowest stage."""
        instance, gains = self.setting.instance, []
        for stage in self.setting.cost.stages:
            first = instance.stage_cost.stage_seconds(
                stage.die, stage.start, stage.stop, 1, np.array([before, before + tokens]), 0
            )
            gains.append(float(first[1] - first[0]))
        return max(gains)

    def crossover(self, prefix: int) -> int:
        """Tokens at the front of a prefix that are computed: whole blocks, before the first that is better loaded."""
        each_s = self.load_s(self.block)
        for before in range(0, prefix - self.block + 1, self.block):
            if each_s < self.compute_s(before, self.block):
                return before
        return prefix  # what is left of the last block is computed with it


@dataclass
class HostCache:
    """Prefixes in host memory, least recently used first; a prefix is there on all dies or on none.

    ``tokens`` has their lengths, ``ready_ps`` when their copy to the host is over.
    """

    capacity_bytes: int
    setting: Setting
    tokens: OrderedDict[str, int] = field(default_factory=OrderedDict)
    ready_ps: dict[str, int] = field(default_factory=dict)
    evictions: int = 0

    def find(self, prefix: str, now_ps: int) -> int:
        """Tokens of a prefix that can be loaded now."""
        if prefix not in self.tokens or self.ready_ps[prefix] > now_ps:
            return 0
        self.tokens.move_to_end(prefix)
        return self.tokens[prefix]

    def store(self, prefix: str, tokens: int, ready_ps: int) -> None:
        """Keep a prefix, evicting the least recently used ones; nothing where it alone does not fit."""
        if self.tokens.get(prefix, 0) >= tokens or self._bytes(tokens) > self.capacity_bytes:
            return
        self.tokens[prefix] = tokens
        self.tokens.move_to_end(prefix)
        self.ready_ps[prefix] = ready_ps
        while sum(map(self._bytes, self.tokens.values())) > self.capacity_bytes:
            self.tokens.popitem(last=False)
            self.evictions += 1

    def _bytes(self, tokens: int) -> int:
        return max(self.setting.cost.held_bytes(tokens, 0))


@dataclass
class _Part:
    """What is left to do of a request: up to where the front is computed, the prefix's end, when its load is over."""

    front: int
    prefix: int
    loaded_ps: int


class Tiered:
    """Prompts in chunks, first come, first served; a chunk of the first request that has one ready.

    Parameters
    ----------
    decide
        "each" block by time, "load" all of a prefix or "compute" all.
    """

    def __init__(
        self, tier: Tier, memory: Memory, cache: HostCache, requests: list[Request], chunk: int, decide: str
    ) -> None:
        self.tier, self.memory, self.cache = tier, memory, cache
        self.requests, self.chunk, self.decide = requests, chunk, decide
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.loaded_tokens = self.computed_again_tokens = self.loaded_bytes = self.stored_bytes = 0
        self._parts: dict[int, _Part] = {}
        self._read_free_ps = self._write_free_ps = 0
        self._jobs: dict[int, Job] = {}

    def arrive(self, job: Job, now_ps: int) -> None:
        """Queue a request."""
        self._jobs[job.index] = job
        self.waiting.append(job)

    def advance(self, now_ps: int) -> None:
        """Nothing happens besides iterations."""

    def wake_ps(self, now_ps: int) -> int | None:
        """The next load that is over."""
        return min((part.loaded_ps for part in self._parts.values() if part.loaded_ps > now_ps), default=None)

    def why_idle(self) -> str:
        """The first request in the queue has no room."""
        job = self.waiting[0]
        return f"memory: request {job.index} needs {self.memory.shortage(job.prompt, self._chunk(job))}"

    def compose(self, now_ps: int) -> Batch | None:
        """A chunk of one request."""
        while self.waiting and self.memory.hold(
            self.waiting[0].index, self.waiting[0].prompt, self._chunk(self.waiting[0])
        ):
            self._start(self.waiting.popleft(), now_ps)
        for job in self.running:
            part = self._parts[job.index]
            if job.context == part.front and part.front < part.prefix and part.loaded_ps <= now_ps:
                job.context = part.prefix
            stop = part.front if job.context < part.front else job.goal
            if not job.prefilling or (part.front <= job.context < part.prefix):
                continue
            tokens = min(self.chunk, stop - job.context)
            before = job.context
            job.context += tokens
            job.computed += tokens
            job.flying += 1
            last = job.context == job.goal
            piece = Piece(job.index, tokens, before, False, last)
            return Batch((piece,), self.memory.held, (job.index,) if last else ())
        return None

    def finish(self, batch: Batch, now_ps: int) -> None:
        """A request that is through gives its memory back; a prefix that others may ask for goes to the host."""
        for piece in batch.pieces:
            job = self._jobs[piece.job]
            job.flying -= 1
            job.produced += piece.emits
            if job.done:
                self.memory.release(job.index)
                self.running.remove(job)
                del self._parts[job.index]
                self._store(job, now_ps)

    def _start(self, job: Job, now_ps: int) -> None:
        request = self.requests[job.index]
        stored = request.cached_tokens
        if request.prefix_id is not None:
            stored = max(stored, self.cache.find(str(request.prefix_id), now_ps))
        stored = min(stored, job.prompt - 1)
        front = {"load": 0, "compute": stored}.get(self.decide, self.tier.crossover(stored))
        loaded_ps = now_ps
        if front < stored:
            begin = max(now_ps, self._read_free_ps)
            loaded_ps = self._read_free_ps = begin + whole_ps(self.tier.load_s(stored - front))
            self.loaded_bytes += sum(self.tier.setting.cost.held_bytes(stored - front, 0))
        self.loaded_tokens += stored - front
        self.computed_again_tokens += front
        job.context = 0
        self._parts[job.index] = _Part(front, stored, loaded_ps)
        self.running.append(job)

    def _store(self, job: Job, now_ps: int) -> None:
        request = self.requests[job.index]
        if request.prefix_id is None or request.prefix_tokens is None:
            return
        key, tokens = str(request.prefix_id), min(request.prefix_tokens, job.prompt)
        if self.cache.tokens.get(key, 0) < tokens:
            self._write_free_ps = max(now_ps, self._write_free_ps) + whole_ps(self.tier.load_s(tokens))
            self.stored_bytes += sum(self.tier.setting.cost.held_bytes(tokens, 0))
            self.cache.store(key, tokens, self._write_free_ps)

    def _chunk(self, job: Job) -> int:
        return min(self.chunk, job.prompt)


def checked_prefixes(requests: list[Request]) -> None:
    """InputError where a request names a prefix without its length, or one as long as itself."""
    for number, request in enumerate(requests):
        if request.prefix_id is None:
            continue
        length = request.prefix_tokens
        if length is None or not 0 < length < request.tokens:
            allowed = f"from 1 to {request.tokens - 1} tokens, as the request has a prefix_id"
            raise InputError(f"workload.trace.{number}.prefix_tokens", length, allowed)
