"""Workload: equal requests at time 0, or a trace of arrivals; and how requests gather in waves (spec section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from instances.base import Document, parse_json, read_text
from instances.errors import InputError
from instances.units import Seconds, Tokens

Shape = tuple[int, int]
"""(tokens, cached tokens) of a request; requests of one shape share cuts and spill."""


MAX_REQUESTS = 1_000_000
"""The ceiling only keeps absurd files from exhausting memory."""


class Request(Document):
    """One request of a trace; the last three keys serve policies that use them."""

    arrival_s: Seconds = 0.0
    tokens: Annotated[Tokens, Field(ge=1)]
    cached_tokens: Tokens = 0
    output_tokens: Tokens | None = None
    prefix_id: str | int | None = None
    prefix_tokens: Tokens | None = None

    @model_validator(mode="after")
    def _something_to_compute(self) -> Self:
        if self.cached_tokens >= self.tokens:
            raise InputError("cached_tokens", self.cached_tokens, f"fewer than tokens ({self.tokens})")
        return self

    @property
    def shape(self) -> Shape:
        """(tokens, cached tokens)."""
        return (self.tokens, self.cached_tokens)


class Workload(Document):
    """Either ``requests`` equal requests of ``tokens`` at time 0, or a ``trace``."""

    requests: Annotated[int, Field(ge=1, le=MAX_REQUESTS, strict=True)] | None = None
    tokens: Annotated[Tokens, Field(ge=1)] | None = None
    cached_tokens: Tokens = 0
    trace: tuple[Request, ...] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.trace is not None:
            if self.requests is not None or self.tokens is not None or self.cached_tokens:
                raise ValueError("either trace, or requests and tokens, not both")
            if not self.trace:
                raise ValueError("a trace of at least one request")
        elif self.requests is None or self.tokens is None:
            raise ValueError("requests and tokens, or a trace")
        elif self.cached_tokens >= self.tokens:
            raise InputError("cached_tokens", self.cached_tokens, f"fewer than tokens ({self.tokens})")
        return self

    def all_requests(self) -> list[Request]:
        """The requests in the order of the input."""
        if self.trace is not None:
            return list(self.trace)
        assert self.requests is not None and self.tokens is not None
        request = Request(arrival_s=0.0, tokens=self.tokens, cached_tokens=self.cached_tokens)
        return [request] * self.requests

    @property
    def shapes(self) -> list[Shape]:
        """Distinct request shapes, sorted."""
        return sorted({request.shape for request in self.all_requests()})

    @property
    def uncached_counts(self) -> list[int]:
        """Distinct numbers of tokens to compute, sorted; a plan has one chunk list for each."""
        return sorted({tokens - cached for tokens, cached in self.shapes})


@dataclass(frozen=True)
class Wave:
    """Requests of one shape that run through the pipeline together.

    ``requests`` are indices into the workload's list; ``arrivals_s`` are theirs, in the same order.
    """

    shape: Shape
    requests: tuple[int, ...]
    arrivals_s: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of requests; it stands in for the batch everywhere."""
        return len(self.requests)

    @property
    def ready_s(self) -> float:
        """When the wave may start: its latest arrival."""
        return max(self.arrivals_s)


def form_waves(requests: Sequence[Request], batch: int) -> list[Wave]:
    """Gather requests, sorted by (arrival, index), in waves of at most ``batch`` of one shape (spec section 1)."""
    waves: list[Wave] = []
    gathered: list[int] = []

    def close() -> None:
        if gathered:
            arrivals = tuple(requests[index].arrival_s for index in gathered)
            waves.append(Wave(requests[gathered[0]].shape, tuple(gathered), arrivals))
            gathered.clear()

    for index in sorted(range(len(requests)), key=lambda i: (requests[i].arrival_s, i)):
        if gathered and requests[gathered[0]].shape != requests[index].shape:
            close()
        gathered.append(index)
        if len(gathered) == batch:
            close()
    close()
    return waves


def read_trace(path: Path, field: str) -> list[dict[str, Any]]:
    """Read a JSON-lines trace into plain rows; validation happens with the workload."""
    # A text may hold other line separators inside its quotes, so only the newline ends a row.
    lines = read_text(path, field).split("\n")
    rows = [
        parse_json(line, field=f"line {number}", file=str(path))
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not rows:
        raise InputError(field, str(path), "a file with at least one request, one JSON object a line")
    return rows
