"""A rematching as a program document (the keys of the worked examples; spec section 3, "Program").

Spill rows are granted once and stay, so what moves between creditors takes a program. Waves 0 .. W-1 hold the KV that
is at home: tasks without compute that take it and give it away, the last one all that is left. Every group of chunks
(``Lending.groups``) is a wave of its own with the chunks' compute and activations and with what these chunks have lent:

- its first task writes to the new creditors all that is lent then, what was lent before and what is new;
- then the last task of the group before reads back what it has at the old creditors, and frees it there;
- then its chunks run, each fetching what is lent, and write what the next one has no room for.

So a move is charged as one read and one write over the links, with the old creditor's service time, and the die's next
chunk waits for both: a creditor is free when its bytes are read, the new one is taken from the grant on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from instances.instance import Instance
from solver.policies.rematch_pairs import Int64s, Lending
from solver.serving.machine import bytes_number, machine_fields
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import Program


@dataclass
class _Wave:
    """Tasks of one wave of the document, by chunk and stage."""

    arrival_ps: int
    compute_ps: list[Int64s] = field(default_factory=list)
    take: list[Int64s] = field(default_factory=list)
    send: list[int] = field(default_factory=list)

    def add(self, take: Int64s, compute_ps: Int64s | None = None, send: int = 0) -> int:
        """A chunk more; its number."""
        self.compute_ps.append(np.zeros_like(take) if compute_ps is None else compute_ps)
        self.take.append(take)
        self.send.append(send)
        return len(self.take) - 1


@dataclass(frozen=True)
class Move:
    """What a stage had lent when its creditor changed.

    Its memory is counted nowhere from the arrival of the write at the new creditor until the task ``counted`` starts:
    the bytes are on their way out of the old one.

    Attributes
    ----------
    write, counted
        Tasks as wave, stage, chunk.
    units
        What moves.
    """

    write: tuple[int, int, int]
    counted: tuple[int, int, int]
    units: int


@dataclass(frozen=True)
class Rematched:
    """A document, and what is on the move in it."""

    document: dict[str, Any]
    moves: tuple[Move, ...]


def rematch_document(
    instance: Instance, placement: Sequence[tuple[int, int]], bare: Program, lendings: Sequence[Lending]
) -> Rematched:
    """Write a rematching down.

    Parameters
    ----------
    bare
        The lowered plan without spill.
    lendings
        One for each wave, in units of ``bare``, of which ``units_per_byte`` make a byte.
    """
    waves = [_Wave(int(bare.earliest_ps[bare.wave == wave].max())) for wave in range(bare.waves)]
    order: list[tuple[int, int]] = []
    spill: list[dict[str, Any]] = []
    moves: list[Move] = []
    for wave, lending in enumerate(lendings):
        _lower(wave, lending, bare, waves, order, spill, moves)

    def in_bytes(units: int) -> int | float:
        return bytes_number(units, bare.units_per_byte)

    def by_stage(rows: list[Int64s]) -> list[list[int]]:
        return [list(row) for row in zip(*(row.tolist() for row in rows), strict=True)]

    document = {
        "die_of": [list(die) for die in placement],
        "compute_s": [[[_s(ps) for ps in row] for row in by_stage(wave.compute_ps)] for wave in waves],
        "activation_bytes": [[in_bytes(units) for units in wave.send] for wave in waves],
        "kv_bytes": [[[in_bytes(units) for units in row] for row in by_stage(wave.take)] for wave in waves],
        "arrivals_s": [_s(wave.arrival_ps) for wave in waves],
        "spill": [{**entry, "bytes": in_bytes(entry["bytes"])} for entry in spill],
        "order": [[[wave, stage, chunk] for wave, chunk in order] for stage in range(len(placement))],
        "capacity_bytes": [in_bytes(units) for units in bare.capacity_units.tolist()],
        "static_bytes": [in_bytes(units) for units in bare.static_units.tolist()],
        "serve_fraction": bare.serve_fraction,
        "overlap": bare.overlap,
        **machine_fields(instance),
    }
    return Rematched(document, tuple(moves))


def _lower(
    wave: int,
    lending: Lending,
    bare: Program,
    waves: list[_Wave],
    order: list[tuple[int, int]],
    spill: list[dict[str, Any]],
    moves: list[Move],
) -> None:
    """Add the tasks of one wave of the plan, in the order in which every die runs them."""
    mine = bare.wave == wave
    duration_ps, take, send = (
        values[mine].reshape(-1, bare.stages) for values in (bare.duration_ps, bare.take_units, bare.send_units)
    )
    home, lent, none = waves[wave], lending.lent, np.zeros(bare.stages, dtype=np.int64)
    before: tuple[int, _Wave] | None = None

    def run(number: int, task: int) -> None:
        order.append((number, task))

    def write(number: int, task: int, units: Int64s, chunk: int) -> None:
        for stage in np.flatnonzero(units).tolist():
            creditor = int(lending.creditor[stage, chunk])
            spill.append(
                {"wave": number, "stage": stage, "chunk": task, "creditor": creditor, "bytes": int(units[stage])}
            )

    for first, last in lending.groups:
        number, group = len(waves), _Wave(home.arrival_ps)
        waves.append(group)
        back, lend = none, None
        if before is not None:
            # What moves is given away at home, and taken again when it is: the home die holds nothing of it.
            run(wave, home.add(-lent[:, first]))
            lend = group.add(lent[:, first])
            run(number, lend)
            write(number, lend, lent[:, first], first)
            run(before[0], before[1].add(none))
            back = lent[:, first - 1]
        for chunk in range(first, last + 1):
            leaves = lent[:, chunk + 1] - lent[:, chunk] if chunk < last else none
            counted = home.add(take[chunk] - leaves + back)
            run(wave, counted)
            task = group.add(leaves, duration_ps[chunk], int(send[chunk].max()))
            run(number, task)
            write(number, task, leaves, chunk + 1)
            if lend is not None and chunk == first:
                moves += [
                    Move((number, stage, lend), (wave, stage, counted), int(back[stage]))
                    for stage in np.flatnonzero(back).tolist()
                ]
            back = none
        before = number, group
    run(wave, home.add(none))


def _s(ps: int) -> float:
    return ps / PICOSECONDS_PER_S
