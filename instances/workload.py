"""Workload: equal requests at time 0, or a trace of arrivals; and how requests gather in waves (spec section 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from instances.base import Document, parse_json, read_text
from instances.errors import InputError
from instances.gathering import Floats, Gathered, gather
from instances.gathering import Shape as Shape
from instances.units import Seconds, Tokens

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
    def count(self) -> int:
        """Number of requests."""
        return self.requests or len(self.trace or ())

    def gathered(self, batch: int) -> Gathered:
        """The waves of this batch, as `form_waves` gathers them, in arrays."""
        return gather(*self.columns, batch)

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Arrivals, tokens and cached tokens of each request, shape (R,)."""
        return _columns(self.all_requests())

    @cached_property
    def shapes(self) -> list[Shape]:
        """Distinct request shapes, sorted."""
        if self.tokens is not None:
            return [(self.tokens, self.cached_tokens)]
        return sorted({request.shape for request in self.all_requests()})

    @cached_property
    def requests_of_shape(self) -> Counter[Shape]:
        """How many requests each shape has."""
        if self.trace is None:
            return Counter({self.shapes[0]: self.count})
        return Counter(request.shape for request in self.trace)

    @cached_property
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
    if not requests:
        return []
    found = gather(*_columns(requests), batch)
    order, arrived, stops = found.order.tolist(), found.arrival_s.tolist(), found.pointers.tolist()
    return [
        Wave(found.kinds[kind][0], tuple(order[start:stop]), tuple(arrived[start:stop]))
        for kind, (start, stop) in zip(found.kind.tolist(), pairwise(stops), strict=True)
    ]


def _columns(requests: Sequence[Request]) -> tuple[Floats, Floats, Floats]:
    """Arrivals, tokens and cached tokens of each request, shape (R,)."""
    # Equal requests are one object, and looked at once.
    alike = all(request is requests[0] for request in requests)
    looked_at = requests[:1] if alike else requests
    rows = np.array([(request.arrival_s, request.tokens, request.cached_tokens) for request in looked_at])
    arrival_s, tokens, cached_tokens = np.broadcast_to(rows.T, (3, len(requests)))
    return arrival_s, tokens, cached_tokens


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
