"""Which chunk of which stage spills to which memory, without the amounts (spec section 3, rules 5 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from instances.plan import Creditor
from instances.workload import Shape, Wave

Ints = npt.NDArray[np.int64]
Row = tuple[int, int, Creditor, Shape | None]
"""Stage, chunk, creditor and shape of a spill row."""


@dataclass(frozen=True, eq=False)
class SpillPattern:
    """Slots and writes of a program; E writes.

    Attributes
    ----------
    arrays
        The fields of ``Program`` that have to do with spill, but for the amounts.
    row_of_write
        Which spill row a write comes from. Shape [E].
    bytes_per_token
        Bytes that a token of the row is in this wave, all of its requests together. Shape [E].
    """

    arrays: dict[str, Any]
    row_of_write: Ints
    bytes_per_token: npt.NDArray[np.float64]


def spill_pattern(
    rows: Sequence[Row],
    waves: Sequence[Wave],
    chunks_of_wave: Sequence[int],
    die_of_stage: Sequence[int],
    bytes_per_token: Callable[[int], float],
) -> SpillPattern:
    """Lay out slots and writes, wave by wave.

    Parameters
    ----------
    rows
        Spill rows; one without a shape concerns all waves.
    bytes_per_token
        Bytes that one token of one sequence is at a stage.
    """
    stages, dies = len(die_of_stage), max(die_of_stage) + 1
    first_stage = [die_of_stage.index(die) for die in range(dies)]
    write_count, write_slot, row_of_write, each, slot_count = ([] for _ in range(5))
    slot_die, slot_is_host, slot_stage = ([] for _ in range(3))
    for wave, chunks in zip(waves, chunks_of_wave, strict=True):
        # Writes of a task go by creditor number, which is that of the first stage on the creditor's die; hosts last.
        mine = sorted(
            (chunk, stage, dies if creditor == "host" else die_of_stage[creditor], number)
            for number, (stage, chunk, creditor, shape) in enumerate(rows)
            if shape is None or shape == wave.shape
        )
        slots = sorted({(stage, memory) for _, stage, memory, _ in mine})
        index = {slot: len(slot_die) + number for number, slot in enumerate(slots)}
        of_task, of_stage = [0] * (chunks * stages), [0] * stages
        for chunk, stage, memory, number in mine:
            of_task[chunk * stages + stage] += 1
            write_slot.append(index[stage, memory])
            row_of_write.append(number)
            each.append(wave.size * bytes_per_token(stage))
        for stage, memory in slots:
            of_stage[stage] += 1
            slot_is_host.append(memory == dies)
            slot_die.append(die_of_stage[stage] if memory == dies else memory)
            slot_stage.append(first_stage[slot_die[-1]])
        write_count += of_task
        slot_count += of_stage
    return SpillPattern(
        arrays={
            "write_ptr": _pointers(write_count),
            "write_slot": np.array(write_slot, dtype=np.int32),
            "write_units": np.zeros(len(write_slot), dtype=np.int64),
            "group_slot_ptr": _pointers(slot_count),
            "slot_die": np.array(slot_die, dtype=np.int32),
            "slot_is_host": np.array(slot_is_host, dtype=np.bool_),
            "slot_stage": np.array(slot_stage, dtype=np.int32),
        },
        row_of_write=np.array(row_of_write, dtype=np.int64),
        bytes_per_token=np.array(each, dtype=np.float64),
    )


def _pointers(counts: Sequence[int]) -> Ints:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)
