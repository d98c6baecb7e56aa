"""Requests while they are served, and the iterations that serve them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from instances.workload import Request
from solver.simulation.network import whole_ps


@dataclass
class Job:
    """One request on its way.

    Attributes
    ----------
    prompt
        Tokens of the prompt, cached ones included.
    output
        Tokens to produce, at least the first, which comes with the end of the prompt.
    context
        Tokens whose KV is computed or cached, counting what runs now; after a preemption it starts anew.
    goal
        Tokens to compute before the next token comes: the prompt, and after a preemption what was produced too.
    produced
        Tokens that came out.
    computed
        Tokens that were computed, in all.
    flying
        Iterations inside that have tokens of it.
    """

    index: int
    arrival_ps: int
    prompt: int
    cached: int
    output: int
    context: int = 0
    goal: int = 0
    produced: int = 0
    computed: int = 0
    flying: int = 0

    @property
    def done(self) -> bool:
        """Whether nothing is left to do for it."""
        return not self.flying and self.context >= self.goal and self.produced >= self.output

    @property
    def prefilling(self) -> bool:
        """Whether tokens of the prompt are left to compute."""
        return self.context < self.goal


@dataclass(frozen=True)
class Piece:
    """Tokens of one request in one iteration, behind ``context`` others; ``emits``: a token comes out of it."""

    job: int
    tokens: int
    context: int
    decode: bool
    emits: bool


@dataclass(frozen=True)
class Batch:
    """What one iteration runs.

    Attributes
    ----------
    layers
        The layers (first, behind the last) that the prompts' pieces pass; None: all of them.
    closes
        Requests that leave when it ends.
    ready_ps
        When each stage can compute it at the earliest, empty: at once. The wait is counted as part of the stage's task.
    held
        KV of all requests and of caches on each stage from now on, in bytes.
    """

    pieces: tuple[Piece, ...]
    held: tuple[int, ...] = ()
    closes: tuple[int, ...] = ()
    layers: tuple[int, int] | None = None
    ready_ps: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of all pieces."""
        return sum(piece.tokens for piece in self.pieces)


@dataclass(frozen=True)
class Iteration:
    """A batch with its times: when it may start at stage 0, how long it takes and when it ends at each stage."""

    batch: Batch
    launch_ps: int
    durations_ps: tuple[int, ...]
    ends_ps: tuple[int, ...]
    send_bytes: int


@dataclass
class Log:
    """All iterations in the order in which they started, and why not everything was served, if so."""

    jobs: list[Job]
    iterations: list[Iteration] = field(default_factory=list)
    stuck: str | None = None


def jobs_of(requests: Sequence[Request], default_output: int) -> list[Job]:
    """The requests in the order of the input; ``default_output`` tokens come out of those that name no number."""
    return [
        Job(
            index=number,
            arrival_ps=whole_ps(request.arrival_s),
            prompt=request.tokens,
            cached=request.cached_tokens,
            output=max(1, default_output if request.output_tokens is None else request.output_tokens),
            context=request.cached_tokens,
            goal=request.tokens,
        )
        for number, request in enumerate(requests)
    ]
