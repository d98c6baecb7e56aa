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
_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SpillPattern:
    """Slots and writes of a program; E writes.

    Attributes
    ----------
    arrays
        The fields of ``Program`` that have to do with spill; amounts are 0.
    row_of_write
        Which spill row a write comes from. Shape [E].
    bytes_per_token
        Bytes that a token of that row is in this wave, all of its requests together. Shape [E].
    """

    arrays: dict[str, Any]
    row_of_write: Ints
    bytes_per_token: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Block:
    """The part of one wave, the same for all waves of its shape; slots are counted from 0."""

    write_count: Ints
    write_slot: Ints
    row_of_write: Ints
    stage_of_write: Ints
    slot_count: Ints
    slot_stage: Ints
    slot_memory: Ints


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
    dies = max(die_of_stage) + 1
    chunks = {wave.shape: count for wave, count in zip(waves, chunks_of_wave, strict=True)}
    block_of = {shape: _block(rows, shape, count, die_of_stage) for shape, count in chunks.items()}
    blocks = [block_of[wave.shape] for wave in waves]
    each = np.array([bytes_per_token(stage) if rows else 0.0 for stage in range(len(die_of_stage))])
    first_slot = np.cumsum([0, *(len(block.slot_memory) for block in blocks)])
    # A host's slot names the die that it belongs to.
    memory, home = (_joined([getattr(block, name) for block in blocks]) for name in ("slot_memory", "slot_stage"))
    on_host = memory == dies
    slot_die = np.where(on_host, np.asarray(die_of_stage)[home], memory)
    first_stage = np.array([die_of_stage.index(die) for die in range(dies)])
    slots = [block.write_slot + first for block, first in zip(blocks, first_slot[:-1], strict=True)]
    return SpillPattern(
        arrays={
            "write_ptr": _pointers([block.write_count for block in blocks]),
            "write_slot": _joined(slots).astype(np.int32),
            "write_units": np.zeros(sum(len(block.write_slot) for block in blocks), dtype=np.int64),
            "group_slot_ptr": _pointers([block.slot_count for block in blocks]),
            "slot_die": slot_die.astype(np.int32),
            "slot_is_host": on_host,
            "slot_stage": first_stage[slot_die].astype(np.int32),
        },
        row_of_write=_joined([block.row_of_write for block in blocks]),
        bytes_per_token=np.concatenate(
            [wave.size * each[block.stage_of_write] for wave, block in zip(waves, blocks, strict=True)]
        ),
    )


def _block(rows: Sequence[Row], shape: Shape, chunks: int, die_of_stage: Sequence[int]) -> _Block:
    """Writes of a task in the order of the first stages on their creditors' dies, the host's last."""
    stages, dies = len(die_of_stage), max(die_of_stage) + 1
    mine = sorted(
        (chunk, stage, dies if creditor == "host" else die_of_stage[creditor], number)
        for number, (stage, chunk, creditor, named) in enumerate(rows)
        if named is None or named == shape
    )
    slots = sorted({(stage, memory) for _, stage, memory, _ in mine})
    index = {slot: number for number, slot in enumerate(slots)}
    return _Block(
        write_count=np.bincount([c * stages + s for c, s, _, _ in mine] or _NONE, minlength=chunks * stages),
        write_slot=np.array([index[stage, memory] for _, stage, memory, _ in mine], dtype=np.int64),
        row_of_write=np.array([number for *_, number in mine], dtype=np.int64),
        stage_of_write=np.array([stage for _, stage, _, _ in mine], dtype=np.int64),
        slot_count=np.bincount([stage for stage, _ in slots] or _NONE, minlength=stages),
        slot_stage=np.array([stage for stage, _ in slots], dtype=np.int64),
        slot_memory=np.array([memory for _, memory in slots], dtype=np.int64),
    )


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts)


def _pointers(counts: Sequence[Ints]) -> Ints:
    return np.concatenate(([0], np.cumsum(np.concatenate(counts)))).astype(np.int64)
