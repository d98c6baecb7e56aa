"""Lowers a program document to arrays (spec section 3, "Program")."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from instances.errors import InputError
from solver.simulation.network import PICOSECONDS_PER_NS, PICOSECONDS_PER_S, build_network
from solver.simulation.orders import die_orders
from solver.simulation.program import NO_LIMIT_UNITS, Program
from solver.simulation.program_document import Document

_MOST_PS = 1 << 61


def program_of(document: Document) -> Program:
    """Number the tasks by (wave, chunk, stage) and write them down as arrays.

    Raises
    ------
    InputError
        If times or bytes do not fit 62 bits in picoseconds or in the common denominator of all amounts, or two dies are
        not connected.
    """
    stages, waves = len(document.dies), len(document.arrivals_s)
    chunks = [len(wave[0]) for wave in document.compute_s]
    labels = [(w, s, i) for w in range(waves) for i in range(chunks[w]) for s in range(stages)]
    number = {label: task for task, label in enumerate(labels)}
    scale = _Scale(document)
    wave, stage, chunk = (np.array(column, dtype=np.int32) for column in zip(*labels, strict=True))
    group = wave * stages + stage
    last_chunk = np.array(chunks, dtype=np.int32)[wave] - 1
    dies = list(dict.fromkeys(document.dies))
    die_of_stage = np.array([dies.index(die) for die in document.dies], dtype=np.int32)
    first_stage = [document.dies.index(die) for die in dies]
    if document.order is None:
        die_ptr, die_tasks = die_orders(document.schedule, die_of_stage.tolist(), chunks)
    else:
        die_ptr = _pointers([len(tasks) for tasks in document.order])
        die_tasks = np.array([number[label] for tasks in document.order for label in tasks], dtype=np.int32)
    durations = [ps_of(document.compute_s[w][s][i], document.integer_ns) for w, s, i in labels]
    arrivals = [ps_of(arrival) for arrival in document.arrivals_s]
    earliest_ps = np.where(stage == 0, np.array(arrivals, dtype=np.int64)[wave], 0)
    if document.not_before_s is not None:
        held_back = [ps_of(document.not_before_s[w][s][i]) for w, s, i in labels]
        earliest_ps = np.maximum(earliest_ps, np.array(held_back, dtype=np.int64))
    if (together := sum(durations) + int(earliest_ps.max())) > _MOST_PS:
        raise InputError(
            "compute_s", f"{together / PICOSECONDS_PER_S} s in all, after the last arrival and hold", "at most 2e6 s"
        )
    slots, writes = _writes(document, die_of_stage.tolist(), number, scale)
    slot_at = {slot: index for index, slot in enumerate(slots)}
    slots_of_group = np.bincount([w * stages + s for w, s, _ in slots], minlength=waves * stages)
    try:
        network = build_network(
            document.mesh,
            dies,
            link_bytes_per_s=document.link_bytes_per_s,
            hop_latency_s=document.hop_latency_s,
            host_bytes_per_s=document.host_bytes_per_s,
            routing=document.routing,
            store_and_forward=document.store_and_forward,
            one_send_per_die=document.one_send_per_die,
            integer_ns=document.integer_ns,
        )
    except ValueError as error:
        raise InputError("die_of", [list(die) for die in document.dies], f"connected dies ({error})") from None
    return Program(
        die=die_of_stage[stage],
        die_ptr=die_ptr,
        die_tasks=die_tasks,
        duration_ps=np.array(durations, dtype=np.int64),
        earliest_ps=earliest_ps,
        inputs=(stage > 0).astype(np.int32),
        successor=np.array([number.get((w, s + 1, i), -1) for w, s, i in labels], dtype=np.int32),
        send_units=np.array([scale.units(document.activation_bytes[w][i]) for w, _, i in labels], dtype=np.int64),
        take_units=np.array([scale.units(document.kv_bytes[w][s][i]) for w, s, i in labels], dtype=np.int64),
        group=group,
        closes_group=chunk == last_chunk,
        enters_window=stage == 0,
        leaves_window=stage == stages - 1,
        max_in_flight=document.max_in_flight,
        write_ptr=_pointers([len(writes.get(task, ())) for task in range(len(labels))]),
        write_slot=np.array([slot_at[slot] for task in sorted(writes) for slot, _ in writes[task]], dtype=np.int32),
        write_units=np.array([units for task in sorted(writes) for _, units in writes[task]], dtype=np.int64),
        group_slot_ptr=_pointers(slots_of_group.tolist()),
        slot_die=np.array([die_of_stage[s] if k == len(dies) else k for _, s, k in slots], dtype=np.int32),
        slot_is_host=np.array([k == len(dies) for _, _, k in slots], dtype=np.bool_),
        slot_stage=np.array([s if k == len(dies) else first_stage[k] for _, s, k in slots], dtype=np.int32),
        group_die=np.tile(die_of_stage, waves),
        group_stage=np.tile(np.arange(stages, dtype=np.int32), waves),
        capacity_units=np.array(
            [NO_LIMIT_UNITS] * len(dies)
            if document.capacity_bytes is None
            else [scale.units(document.capacity_bytes[stage]) for stage in first_stage],
            dtype=np.int64,
        ),
        static_units=np.array([scale.units(document.static_bytes[stage]) for stage in first_stage], dtype=np.int64),
        host_capacity_units=np.full(len(dies), scale.units(document.host_bytes or Fraction(0)), dtype=np.int64),
        units_per_byte=scale.units_per_byte,
        serve_fraction=document.serve_fraction,
        overlap=document.overlap,
        network=network,
        stages=stages,
        wave=wave,
        stage=stage,
        chunk=chunk,
    )


class _Scale:
    """The common denominator in which all amounts of bytes are whole."""

    def __init__(self, document: Document) -> None:
        amounts = [
            *(amount for wave in document.kv_bytes for row in wave for amount in row),
            *(amount for wave in document.activation_bytes for amount in wave),
            *(entry.size_bytes for entry in document.spill),
            *(document.capacity_bytes or ()),
            *document.static_bytes,
            document.host_bytes or Fraction(0),
        ]
        self.units_per_byte = math.lcm(*(amount.denominator for amount in amounts))
        total = sum(abs(amount) for amount in amounts) * self.units_per_byte
        if total >= NO_LIMIT_UNITS:
            raise InputError(
                "kv_bytes, activation_bytes, spill, capacity_bytes, static_bytes, host.host_bytes",
                f"amounts in units of 1/{self.units_per_byte} byte",
                "fewer decimal places, or smaller numbers, so that bytes can be kept exactly in 62 bits",
            )

    def units(self, amount: Fraction) -> int:
        return int(amount * self.units_per_byte)


# (wave, stage, creditor); a creditor is a die, or D for the host, so that it sorts last.
_Slot = tuple[int, int, int]


def _writes(
    document: Document, die_of_stage: list[int], number: dict[tuple[int, int, int], int], scale: _Scale
) -> tuple[list[_Slot], dict[int, list[tuple[_Slot, int]]]]:
    """Slots in order, and the writes of each task in creditor order; empty spills write nothing."""
    host = max(die_of_stage) + 1
    writes: dict[int, list[tuple[_Slot, int]]] = {}
    for entry in document.spill:
        if entry.size_bytes > 0:
            slot = (entry.wave, entry.stage, host if entry.creditor is None else die_of_stage[entry.creditor])
            task = number[entry.wave, entry.stage, entry.chunk]
            writes.setdefault(task, []).append((slot, scale.units(entry.size_bytes)))
    for entries in writes.values():
        entries.sort()
    return sorted({slot for entries in writes.values() for slot, _ in entries}), writes


def _pointers(counts: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)


def ps_of(seconds: Fraction, integer_ns: bool = False) -> int:
    """Whole picoseconds, or whole nanoseconds rounded up."""
    ps = round(seconds * PICOSECONDS_PER_S)
    return -(-ps // PICOSECONDS_PER_NS) * PICOSECONDS_PER_NS if integer_ns else ps
