"""The numbers of a program: times and memory of the chunks of plans of one form (spec section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from instances.plan import Plan
from solver.simulation.chunk_numbers import Block, ChunkNumbers
from solver.simulation.form import Form
from solver.simulation.program import NO_LIMIT_UNITS, Program

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Amounts:
    """Numbers of P plans of one form.

    Attributes
    ----------
    form
        What they share.
    table
        One row a plan: duration (ps), KV taken and activations sent (units) of the T tasks, units of the E writes,
        static memory and capacity of the D dies. Shape [P, 3T + E + 2D].
    """

    form: Form
    table: Ints

    def program(self, row: int) -> Program:
        """The program of one plan."""
        program = self.form.program
        tasks, writes, dies = program.tasks, len(program.write_units), program.dies
        stops = np.cumsum([tasks, tasks, tasks, writes, dies, dies])
        duration, take, send, write, static, capacity = np.split(self.table[row], stops[:-1])
        return replace(
            program,
            duration_ps=duration,
            take_units=take,
            send_units=send,
            write_units=write,
            static_units=static,
            capacity_units=capacity,
        )

    @property
    def fits(self) -> npt.NDArray[np.bool_]:
        """Whether weights and workspace of every die fit in its memory. Shape [P]."""
        dies = self.form.program.dies
        static, capacity = self.table[:, -2 * dies : -dies], self.table[:, -dies:]
        return np.asarray((static <= capacity).all(axis=1))


def amounts_of(numbers: ChunkNumbers, form: Form, plans: Sequence[Plan]) -> Amounts:
    """Work the numbers out for plans that all have this form.

    Memory is kept in units, rounded to nearest; what a die needs for good is rounded up and its capacity set so that
    the room beside it is neither more nor less than in bytes, rounded down.
    """
    program, skeleton = form.program, form.skeleton
    kind_of_stage, stages = skeleton.layout.kind_of_stage, program.stages
    blocks = {}
    for shape, size in skeleton.blocks:
        sizes = np.array([plan.chunk_sizes(shape[0] - shape[1]) for plan in plans], dtype=np.int64)
        blocks[shape, size] = numbers.block(skeleton.layout.kinds, shape, size, sizes)
    in_order = [blocks[wave.shape, wave.size] for wave in skeleton.waves]
    tasks, writes, dies = program.tasks, len(program.write_units), program.dies
    table = np.empty((len(plans), 3 * tasks + writes + 2 * dies), dtype=np.int64)
    first = 0
    for block in in_order:
        stop = first + block.send_units.shape[1] * stages
        for part, of_kind in enumerate((block.duration_ps, block.take_units)):
            table[:, part * tasks + first : part * tasks + stop] = of_kind[:, :, kind_of_stage].reshape(len(plans), -1)
        table[:, 2 * tasks + first : 2 * tasks + stop] = np.repeat(block.send_units, stages, axis=1)
        first = stop
    if writes:
        tokens = np.array([[row.tokens for row in plan.spill if row.tokens] for plan in plans], dtype=np.int64)
        spilled = tokens[:, form.spill.row_of_write] * form.spill.bytes_per_token
        table[:, 3 * tasks : 3 * tasks + writes] = numbers.units(spilled)
    static = _static_bytes(form, in_order)
    # More than the limit is no memory to speak of: what fits in it is checked to stay below.
    static_units = np.minimum(np.ceil(static * program.units_per_byte), NO_LIMIT_UNITS)
    room = np.floor((skeleton.layout.hbm_bytes - static) * program.units_per_byte)
    table[:, -2 * dies : -dies] = static_units
    table[:, -dies:] = static_units + np.clip(room, -NO_LIMIT_UNITS, NO_LIMIT_UNITS - static_units)
    return Amounts(form, table)


def _static_bytes(form: Form, blocks: Sequence[Block]) -> Floats:
    """Weights and one workspace of each die, the largest of its stages over all waves (section 2). Shape [P, D]."""
    layout = form.skeleton.layout
    of_kind: Floats = np.max([block.workspace_bytes for block in blocks], axis=0)
    workspace = np.zeros((len(layout.dies), len(of_kind)))
    np.maximum.at(workspace, layout.die_of_stage, of_kind[:, layout.kind_of_stage].T)
    return layout.weights_bytes + workspace.T
