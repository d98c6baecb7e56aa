"""The input of a replay, read once into exact numbers (spec section 3, keys of the worked examples)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

HOST = "host"
PICOSECONDS = 10**12
PICOSECONDS_PER_NANOSECOND = 1000

Die = tuple[int, int]
# A place holds bytes: a die (0, row, column) or the host memory of a die (1, row, column).
Place = tuple[int, int, int]


def exact(number: Any) -> Fraction:
    """The decimal number as written: 0.1 is one tenth, not the nearest binary fraction."""
    return Fraction(str(number))


@dataclass(frozen=True, order=True)
class Task:
    """Chunk `chunk` of wave `wave` at stage `stage`; the field order is the tie order of the event queue."""

    wave: int
    chunk: int
    stage: int

    @property
    def label(self) -> str:
        """The key used by the worked examples: wave, stage, chunk."""
        return f"{self.wave},{self.stage},{self.chunk}"


@dataclass(frozen=True)
class Spill:
    """Bytes of a chunk's KV that its stage keeps at a creditor: a stage number, or "host".

    Stages that share a die share its memory: they are one creditor, under the number of the first of them.
    """

    creditor: int | str
    spilled_bytes: Fraction

    @property
    def order(self) -> tuple[bool, int]:
        """Creditors are served by number, `host` last."""
        return (True, 0) if self.creditor == HOST else (False, int(self.creditor))


@dataclass(frozen=True)
class Program:
    """Everything a replay needs, in exact bytes and picoseconds."""

    die_of: list[Die]
    compute_ps: list[list[int]]
    activation_bytes: list[Fraction]
    kv_bytes: list[list[Fraction]]
    arrivals_ps: list[int]
    not_before_ps: list[list[int]] | None
    spills: dict[tuple[int, int], list[Spill]]
    capacity_bytes: list[Fraction] | None
    static_bytes: list[Fraction]
    max_in_flight: int | None
    serve_fraction: Fraction
    overlap: bool
    link_bytes_per_s: Fraction
    hop_latency_ps: int
    host_bytes: Fraction | None
    host_bytes_per_s: Fraction | None
    store_and_forward: bool
    one_send_per_die: bool
    routing: str
    integer_ns: bool
    disabled_dies: frozenset[Die]
    disabled_links: frozenset[frozenset[Die]]
    mesh: tuple[int, int] | None
    schedule: str
    topology: str
    order: list[list[Task]] | None

    @property
    def stages(self) -> int:
        return len(self.die_of)

    @property
    def chunks(self) -> int:
        return len(self.activation_bytes)

    @property
    def waves(self) -> int:
        return len(self.arrivals_ps)

    def duration_ps(self, duration_s: Fraction) -> int:
        """A duration in picoseconds, rounded once: to nearest, or up to whole nanoseconds with `integer_ns`."""
        return duration_to_ps(duration_s, self.integer_ns)


def duration_to_ps(duration_s: Fraction, integer_ns: bool) -> int:
    if integer_ns:
        whole_ns = math.ceil(duration_s * PICOSECONDS / PICOSECONDS_PER_NANOSECOND)
        return whole_ns * PICOSECONDS_PER_NANOSECOND
    return round(duration_s * PICOSECONDS)


def _die(cell: Any) -> Die:
    return (int(cell[0]), int(cell[1]))


def _order(lists: Any) -> list[list[Task]] | None:
    """What each die runs, dies in the order of their first stages; rows are [wave, stage, chunk]."""
    if lists is None:
        return None
    return [[Task(wave, chunk, stage) for wave, stage, chunk in rows] for rows in lists]


def read_program(document: Mapping[str, Any]) -> Program:
    """Turn the "input" part of a worked example (plus the optional keys) into exact numbers."""
    integer_ns = bool(document.get("integer_ns", False))
    stages = len(document["die_of"])
    capacity = document.get("capacity_bytes")
    host = document.get("host")
    spills: dict[tuple[int, int], list[Spill]] = {}
    for row in document.get("spill") or []:
        creditor = HOST if row["creditor"] == HOST else document["die_of"].index(document["die_of"][row["creditor"]])
        spills.setdefault((row["stage"], row["chunk"]), []).append(Spill(creditor, exact(row["bytes"])))
    for rows in spills.values():
        rows.sort(key=lambda spill: spill.order)
    fraction = document.get("serve_fraction")
    overlap = document.get("overlap")
    return Program(
        die_of=[_die(cell) for cell in document["die_of"]],
        compute_ps=[[duration_to_ps(exact(time), integer_ns) for time in row] for row in document["compute_s"]],
        activation_bytes=[exact(amount) for amount in document["activation_bytes"]],
        kv_bytes=[[exact(amount) for amount in row] for row in document["kv_bytes"]],
        # An arrival is a moment, not a duration: integer_ns leaves it alone.
        arrivals_ps=[round(exact(time) * PICOSECONDS) for time in document["arrivals_s"]],
        not_before_ps=None
        if document.get("not_before_s") is None
        else [[round(exact(time) * PICOSECONDS) for time in row] for row in document["not_before_s"]],
        spills=spills,
        capacity_bytes=None if capacity is None else [exact(amount) for amount in capacity],
        static_bytes=[exact(amount) for amount in document.get("static_bytes") or [0] * stages],
        max_in_flight=document.get("max_in_flight"),
        serve_fraction=exact(1 if fraction is None else fraction),
        overlap=True if overlap is None else bool(overlap),
        link_bytes_per_s=exact(document["link_bytes_per_s"]),
        hop_latency_ps=duration_to_ps(exact(document["hop_latency_s"]), integer_ns),
        host_bytes=None if host is None else exact(host["host_bytes"]),
        host_bytes_per_s=None if host is None else exact(host["host_bytes_per_s"]),
        store_and_forward=bool(document.get("store_and_forward", False)),
        one_send_per_die=bool(document.get("one_send_per_die", False)),
        routing=document.get("routing", "xy"),
        integer_ns=integer_ns,
        disabled_dies=frozenset(_die(cell) for cell in document.get("disabled_dies") or []),
        disabled_links=frozenset(
            frozenset((_die(one), _die(other))) for one, other in document.get("disabled_links") or []
        ),
        mesh=(document["rows"], document["columns"]) if "rows" in document else None,
        schedule=document.get("schedule", "chunked"),
        topology=document.get("topology", "mesh"),
        order=_order(document.get("order")),
    )
