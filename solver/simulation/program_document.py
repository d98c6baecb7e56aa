"""Reads and checks a program document: the keys of the worked examples, exact numbers (spec section 3).

Besides the keys of the examples a document may have the options of rule 9 (``store_and_forward``,
``one_send_per_die``, ``routing``, ``integer_ns``), ``disabled_dies``, ``disabled_links``, ``rows`` and ``columns`` of
the mesh (else the bounding box of the dies), ``topology`` (mesh, torus or switch), ``host`` with ``host_bytes`` and
``host_bytes_per_s``, and, where waves differ, ``compute_s`` and ``kv_bytes`` by wave, stage, chunk,
``activation_bytes`` by wave, chunk, and spill rows with a ``wave``. ``not_before_s``, by stage, chunk or by wave,
stage, chunk, holds tasks back until a moment: delays that somebody puts in, beside those that come of themselves.

Stages may share a die, with ``schedule`` (vpp, vpp-async or vpp-packed over 2N stages) or with ``order``: for each die,
in the order in which ``die_of`` first names them, the tasks [wave, stage, chunk] that it runs one after the other. Then
``capacity_bytes`` and ``static_bytes``, which have one entry a stage, repeat those of the die.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from instances.errors import InputError
from instances.mesh import Die, Mesh, Routing
from instances.pipeline import MOST_SERVE_FRACTION
from instances.plan import Schedule
from solver.simulation.document_dies import Label, read_dies, read_mesh, read_order, read_schedule
from solver.simulation.document_fields import (
    FASTEST,
    LONGEST,
    MOST_BYTES,
    SLOWEST,
    as_count,
    as_list,
    as_number,
)

HOST = "host"
MOST_IN_FLIGHT = 10**9
_REQUIRED = ("die_of", "compute_s", "activation_bytes", "kv_bytes", "arrivals_s", "link_bytes_per_s", "hop_latency_s")
_OPTIONAL = (
    "spill",
    "capacity_bytes",
    "static_bytes",
    "serve_fraction",
    "overlap",
    "max_in_flight",
    "store_and_forward",
    "one_send_per_die",
    "routing",
    "integer_ns",
    "topology",
    "schedule",
    "order",
    "disabled_dies",
    "disabled_links",
    "rows",
    "columns",
    "host",
    "not_before_s",
)


@dataclass(frozen=True)
class Spill:
    """Bytes of chunk ``chunk`` of stage ``stage`` of wave ``wave`` kept at ``creditor`` (None: the host)."""

    wave: int
    stage: int
    chunk: int
    creditor: int | None
    size_bytes: Fraction


@dataclass(frozen=True)
class Document:
    """A program document with every default filled in; N stages, W waves, lists by wave first.

    ``dies`` has one entry a stage, ``order`` one list for each different die, or the schedule decides.
    ``compute_s[w][s][i]``, ``kv_bytes[w][s][i]`` (negative: a release) and ``activation_bytes[w][i]``; capacities are
    None where there is no limit; ``not_before_s[w][s][i]``, or None if no task is held back.
    """

    dies: list[Die]
    mesh: Mesh
    schedule: Schedule
    order: list[list[Label]] | None
    compute_s: list[list[list[Fraction]]]
    activation_bytes: list[list[Fraction]]
    kv_bytes: list[list[list[Fraction]]]
    arrivals_s: list[Fraction]
    not_before_s: list[list[list[Fraction]]] | None
    spill: list[Spill]
    capacity_bytes: list[Fraction] | None
    static_bytes: list[Fraction]
    host_bytes: Fraction | None
    host_bytes_per_s: float | None
    link_bytes_per_s: float
    hop_latency_s: float
    serve_fraction: float
    overlap: bool
    max_in_flight: int
    routing: Routing
    store_and_forward: bool
    one_send_per_die: bool
    integer_ns: bool


def read_document(document: Mapping[str, Any]) -> Document:
    """Check a program document.

    Raises
    ------
    InputError
        Naming the field, its value and what is allowed.
    """
    return _Reader(document).read()


class _Reader:
    """Walks through one document; every method names the field that it reads."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        if not isinstance(document, Mapping):
            raise InputError("", document, "an object with the keys " + ", ".join(_REQUIRED))
        for key in _REQUIRED:
            if key not in document:
                raise InputError(key, None, "this key to be present")
        for key in document:
            if key not in _REQUIRED + _OPTIONAL:
                raise InputError(str(key), document[key], "one of the keys " + ", ".join(_REQUIRED + _OPTIONAL))
        self.document = document

    def read(self) -> Document:
        document = self.document
        dies = read_dies(document)
        stages = len(dies)
        mesh = read_mesh(document, dies)
        arrivals = [
            as_number(value, f"arrivals_s[{index}]", high=LONGEST)
            for index, value in enumerate(as_list(document["arrivals_s"], "arrivals_s"))
        ]
        if not arrivals:
            raise InputError("arrivals_s", [], "at least one wave")
        waves = len(arrivals)
        compute_s = self.by_wave("compute_s", stages, waves, low=Fraction(0), high=LONGEST)
        kv_bytes = self.by_wave("kv_bytes", stages, waves, low=None, high=MOST_BYTES)
        chunks = [len(wave[0]) for wave in compute_s]
        not_before_s = None
        if document.get("not_before_s") is not None:
            not_before_s = self.by_wave("not_before_s", stages, waves, low=Fraction(0), high=LONGEST)
        for field, table in (("compute_s", compute_s), ("kv_bytes", kv_bytes), ("not_before_s", not_before_s or [])):
            for wave, rows in enumerate(table):
                for stage, row in enumerate(rows):
                    if len(row) != chunks[wave] or not row:
                        length = f"{chunks[wave] or 'at least 1'} chunks, as stage 0 of compute_s"
                        raise InputError(f"{field} (wave {wave}, stage {stage})", [float(x) for x in row], length)
        host_bytes, host_bytes_per_s = self.host()
        spill = self.spill(dies, chunks, has_host=host_bytes is not None)
        _check_kept(kv_bytes, spill)
        max_in_flight = document.get("max_in_flight")
        if max_in_flight is not None:
            max_in_flight = as_count(max_in_flight, "max_in_flight", low=1, high=MOST_IN_FLIGHT)
        routing = document.get("routing", "xy")
        if routing not in ("xy", "yx"):
            raise InputError("routing", routing, '"xy" or "yx"')
        return Document(
            dies=dies,
            mesh=mesh,
            schedule=read_schedule(document),
            order=read_order(document, dies, chunks),
            compute_s=compute_s,
            activation_bytes=self.activations(chunks),
            kv_bytes=kv_bytes,
            arrivals_s=arrivals,
            not_before_s=not_before_s,
            spill=spill,
            capacity_bytes=self.per_stage("capacity_bytes", dies),
            static_bytes=self.per_stage("static_bytes", dies) or [Fraction(0)] * stages,
            host_bytes=host_bytes,
            host_bytes_per_s=host_bytes_per_s,
            link_bytes_per_s=_speed(document["link_bytes_per_s"], "link_bytes_per_s"),
            hop_latency_s=float(as_number(document["hop_latency_s"], "hop_latency_s", high=LONGEST)),
            serve_fraction=float(
                as_number(document.get("serve_fraction", 1), "serve_fraction", high=Fraction(MOST_SERVE_FRACTION))
            ),
            overlap=self.switch("overlap", True),
            max_in_flight=max_in_flight or 0,
            routing="yx" if routing == "yx" else "xy",
            store_and_forward=self.switch("store_and_forward", False),
            one_send_per_die=self.switch("one_send_per_die", False),
            integer_ns=self.switch("integer_ns", False),
        )

    def by_wave(
        self, field: str, stages: int, waves: int, *, low: Fraction | None, high: Fraction
    ) -> list[list[list[Fraction]]]:
        """A table by wave, stage, chunk; one by stage and chunk stands for every wave."""
        value = as_list(self.document[field], field)
        deep = any(isinstance(entry, list) for row in value if isinstance(row, list) for entry in row)
        tables = [(f"{field}[{wave}]", table) for wave, table in enumerate(value)] if deep else [(field, value)]
        if deep and len(value) != waves:
            raise InputError(field, f"{len(value)} waves", f"{waves} waves, as many as arrivals_s")
        read = [self.table(name, table, stages, low, high) for name, table in tables]
        return read if deep else read * waves

    def table(
        self, field: str, value: object, stages: int, low: Fraction | None, high: Fraction
    ) -> list[list[Fraction]]:
        rows = as_list(value, field)
        if len(rows) != stages:
            raise InputError(field, f"{len(rows)} rows", f"{stages} rows, one a stage as in die_of")
        return [
            [
                as_number(entry, f"{field}[{stage}][{chunk}]", low=low, high=high)
                for chunk, entry in enumerate(as_list(row, f"{field}[{stage}]"))
            ]
            for stage, row in enumerate(rows)
        ]

    def activations(self, chunks: list[int]) -> list[list[Fraction]]:
        field = "activation_bytes"
        value = as_list(self.document[field], field)
        deep = any(isinstance(row, list) for row in value)
        if deep and len(value) != len(chunks):
            raise InputError(field, f"{len(value)} waves", f"{len(chunks)} waves, as many as arrivals_s")
        rows = [as_list(row, f"{field}[{wave}]") for wave, row in enumerate(value)] if deep else [value] * len(chunks)
        for row, count in zip(rows, chunks, strict=True):
            if len(row) != count:
                raise InputError(field, row, f"{count} chunks, as in compute_s")
        return [
            [as_number(entry, f"{field}[{chunk}]", high=MOST_BYTES) for chunk, entry in enumerate(row)] for row in rows
        ]

    def per_stage(self, field: str, dies: list[Die]) -> list[Fraction] | None:
        """What the die of each stage has, the same for stages that share one."""
        value = self.document.get(field)
        if value is None:
            return None
        entries = as_list(value, field)
        if len(entries) != len(dies):
            raise InputError(field, value, f"{len(dies)} numbers, one a stage")
        numbers = [as_number(entry, f"{field}[{stage}]", high=MOST_BYTES) for stage, entry in enumerate(entries)]
        for stage, die in enumerate(dies):
            first = dies.index(die)
            if numbers[stage] != numbers[first]:
                same = f"{float(numbers[first])} as for stage {first}, which is on the same die"
                raise InputError(f"{field}[{stage}]", entries[stage], same)
        return numbers

    def switch(self, field: str, default: bool) -> bool:
        value = self.document.get(field, default)
        if not isinstance(value, bool):
            raise InputError(field, value, "true or false")
        return value

    def host(self) -> tuple[Fraction | None, float | None]:
        host = self.document.get(HOST)
        if host is None:
            return None, None
        if not isinstance(host, Mapping) or set(host) != {"host_bytes", "host_bytes_per_s"}:
            raise InputError(HOST, host, "an object with host_bytes and host_bytes_per_s, or null")
        size_bytes = as_number(host["host_bytes"], "host.host_bytes", high=MOST_BYTES)
        return size_bytes, _speed(host["host_bytes_per_s"], "host.host_bytes_per_s")

    def spill(self, dies: list[Die], chunks: list[int], *, has_host: bool) -> list[Spill]:
        stages = len(dies)
        found: list[Spill] = []
        seen = set()
        for index, row in enumerate(as_list(self.document.get("spill") or [], "spill")):
            field = f"spill[{index}]"
            keys = {"stage", "chunk", "creditor", "bytes"}
            if not isinstance(row, Mapping) or not keys <= set(row) <= keys | {"wave"}:
                raise InputError(
                    field, row, "an object with stage, chunk, creditor and bytes, and wave if waves differ"
                )
            stage = as_count(row["stage"], f"{field}.stage", high=stages - 1)
            waves = range(len(chunks))
            if "wave" in row:
                wave = as_count(row["wave"], f"{field}.wave", high=len(chunks) - 1)
                waves = range(wave, wave + 1)
            creditor = row["creditor"]
            if creditor == HOST and has_host:
                creditor = None
            elif not has_host and creditor == HOST:
                raise InputError(f"{field}.creditor", creditor, "a stage number, since there is no host")
            else:
                creditor = as_count(creditor, f"{field}.creditor", high=stages - 1)
            if creditor is not None and dies[creditor] == dies[stage]:
                raise InputError(f"{field}.creditor", creditor, "a stage on another die than the one that spills")
            size_bytes = as_number(row["bytes"], f"{field}.bytes", high=MOST_BYTES)
            for wave in waves:
                chunk = as_count(row["chunk"], f"{field}.chunk", high=chunks[wave] - 1)
                if chunk == chunks[wave] - 1:
                    raise InputError(f"{field}.chunk", chunk, "any chunk but the last, which nothing reads again")
                # A creditor is a memory: all stages of its die stand for it.
                entry = (wave, stage, chunk, None if creditor is None else dies[creditor])
                if entry in seen:
                    raise InputError(field, dict(row), "one entry for each stage, chunk and creditor (a die)")
                seen.add(entry)
                found.append(Spill(wave, stage, chunk, creditor, size_bytes))
        return found


def _speed(value: object, field: str) -> float:
    return float(as_number(value, field, low=SLOWEST, high=FASTEST))


def _check_kept(kv_bytes: list[list[list[Fraction]]], spill: list[Spill]) -> None:
    """No stage gives away or releases more than it holds."""
    away: dict[tuple[int, int, int], Fraction] = {}
    for entry in spill:
        key = (entry.wave, entry.stage, entry.chunk)
        away[key] = away.get(key, Fraction(0)) + entry.size_bytes
    for wave, table in enumerate(kv_bytes):
        for stage, row in enumerate(table):
            kept = Fraction(0)
            for chunk, taken in enumerate(row):
                kept += taken
                if kept < 0:
                    field = f"kv_bytes (wave {wave}, stage {stage}, chunk {chunk})"
                    raise InputError(field, float(taken), f"a release of at most the {float(kept - taken)} bytes held")
                spilled = away.get((wave, stage, chunk), Fraction(0))
                kept -= spilled
                if kept < 0:
                    field = f"spill (wave {wave}, stage {stage}, chunk {chunk})"
                    raise InputError(field, float(spilled), f"at most the {float(kept + spilled)} bytes held there")
