"""A record: what a benchmark keeps of one run (spec ``interface.md``, "A record")."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field

from formulations.scope import BoundScope
from instances.base import Document, SchemaVersion
from instances.plan import Plan
from solver.methods import METHODS
from solver.result import Metrics, Status, StopReason

Knob = int | float | str


class RunKey(NamedTuple):
    """Everything that decides a run's outcome but the machine; runs with equal keys are the same run."""

    suite: str
    fingerprint: str
    method: str
    knobs: tuple[tuple[str, Knob], ...]
    chunks: int | None
    seed: int
    time_limit_s: float
    memory_limit_bytes: float | None
    version: str


def all_knobs(method: str, knobs: Mapping[str, Knob]) -> tuple[tuple[str, Knob], ...]:
    """All knobs of a method, sorted; one that a record does not have yet is at its default."""
    defaults = {name: knob.default for name, knob in METHODS[method].knobs.items()} if method in METHODS else {}
    return tuple(sorted({**defaults, **knobs}.items()))


class Record(Document):
    """One run of one method on one instance with one seed; a line of a records file.

    Attributes
    ----------
    knobs
        All parameters of the method, defaults included.
    chunks
        Number of chunks asked for, None where the method chose.
    gap, gap_to_best
        (value - bound) / value, and the same with the suite's best-known value in place of the bound.
    runtime_s
        What the method took; of a run that was killed, how long it was waited for.
    peak_memory_bytes
        Largest resident size of the run's process; None if it was killed.
    time
        When the run ended, UTC.
    error
        What went wrong, where something did; ``reason`` says why a sound run has no plan.
    placement
        Answer to a placement problem: die of each node, or a permutation numbered from 1.
    """

    schema_version: SchemaVersion = 1
    suite: str
    instance: str
    fingerprint: str
    method: str
    knobs: dict[str, Knob] = Field(default_factory=dict)
    chunks: int | None = None
    seed: int
    time_limit_s: float
    memory_limit_bytes: float | None = None
    status: Status
    stop_reason: StopReason
    objective: str
    value: float | None = None
    bound: float | None = None
    gap: float | None = None
    gap_to_best: float | None = None
    trivial_bound: float | None = None
    bound_scope: BoundScope | None = None
    runtime_s: float
    peak_memory_bytes: int | None = None
    versions: dict[str, str]
    cpu: str | None = None
    revision: str | None = None
    time: str
    error: str | None = None
    reason: str | None = None
    metrics: Metrics | None = None
    plan: Plan | None = None
    placement: dict[str, tuple[int, int]] | list[int] | None = None

    @property
    def key(self) -> RunKey:
        """What makes a run this run and no other."""
        return RunKey(
            self.suite,
            self.fingerprint,
            self.method,
            all_knobs(self.method, self.knobs),
            self.chunks,
            self.seed,
            self.time_limit_s,
            self.memory_limit_bytes,
            self.versions.get("waferplan", ""),
        )

    def line(self) -> bytes:
        """The record as one line of a records file, with its line end."""
        return json.dumps(self.model_dump(mode="json"), separators=(",", ":"), allow_nan=False).encode() + b"\n"
