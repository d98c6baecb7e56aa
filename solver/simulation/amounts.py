"""The numbers of a program: times and memory of the chunks of plans of one form (spec section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from instances.instance import Instance
from instances.plan import Plan
from instances.workload import Shape
from solver.simulation.form import Form
from solver.simulation.network import PICOSECONDS_PER_NS, PICOSECONDS_PER_S
from solver.simulation.program import Program

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


@dataclass(frozen=True, eq=False)
class _Block:
    """Waves of one shape and size: amounts by plan, chunk and kind of stage, or by plan and kind, or plan and chunk."""

    duration_ps: Ints
    take_units: Ints
    send_units: Ints
    workspace_bytes: Floats


def amounts_of(instance: Instance, form: Form, plans: Sequence[Plan]) -> Amounts:
    """Work the numbers out for plans that all have this form.

    Memory is kept in units, rounded to nearest; what a die needs for good is rounded up and its capacity set so that
    the room beside it is neither more nor less than in bytes, rounded down.
    """
    program, skeleton = form.program, form.skeleton
    kind_of_stage, stages = skeleton.layout.kind_of_stage, program.stages
    blocks = {key: _block(instance, form, plans, *key) for key in skeleton.blocks}
    in_order = [blocks[wave.shape, wave.size] for wave in skeleton.waves]
    tasks, writes, dies = program.tasks, len(program.write_units), program.dies
    table = np.empty((len(plans), 3 * tasks + writes + 2 * dies), dtype=np.int64)
    first = 0
    for block in in_order:
        stop = first + block.send_units.shape[1] * stages
        for part, numbers in enumerate((block.duration_ps, block.take_units)):
            table[:, part * tasks + first : part * tasks + stop] = numbers[:, :, kind_of_stage].reshape(len(plans), -1)
        table[:, 2 * tasks + first : 2 * tasks + stop] = np.repeat(block.send_units, stages, axis=1)
        first = stop
    if writes:
        tokens = np.array([[row.tokens for row in plan.spill if row.tokens] for plan in plans], dtype=np.int64)
        spilled = tokens[:, form.spill.row_of_write] * form.spill.bytes_per_token
        table[:, 3 * tasks : 3 * tasks + writes] = _units(spilled, program.units_per_byte)
    static = _static_bytes(form, in_order)
    static_units = np.ceil(static * program.units_per_byte)
    room = np.floor((skeleton.layout.hbm_bytes - static) * program.units_per_byte)
    table[:, -2 * dies : -dies] = static_units
    table[:, -dies:] = static_units + room
    return Amounts(form, table)


def _block(instance: Instance, form: Form, plans: Sequence[Plan], shape: Shape, size: int) -> _Block:
    cost, layout, unit = instance.stage_cost, form.skeleton.layout, form.program.units_per_byte
    sizes = np.array([plan.chunk_sizes(shape[0] - shape[1]) for plan in plans], dtype=np.int64)
    after = shape[1] + np.cumsum(sizes, axis=1)
    last = np.arange(sizes.shape[1]) == sizes.shape[1] - 1
    largest = sizes.max(axis=1).tolist()
    seconds, held = (np.empty((*sizes.shape, len(layout.kinds))) for _ in range(2))
    workspace = np.empty((len(plans), len(layout.kinds)))
    for kind, (start, stop, die, is_last) in enumerate(layout.kinds):
        head = np.broadcast_to(last & is_last, sizes.shape)
        seconds[:, :, kind] = cost.stage_seconds(die, start, stop, size, sizes, after - sizes, head=head)
        held[:, :, kind] = cost.kv_held_bytes(start, stop, size, after, sizes)
        bytes_of = {chunk: cost.workspace_bytes(start, stop, size, chunk) for chunk in set(largest)}
        workspace[:, kind] = [bytes_of[chunk] for chunk in largest]
    duration_ps = np.rint(seconds * PICOSECONDS_PER_S).astype(np.int64)
    if instance.pipeline.integer_ns:
        # Under this option every duration is rounded up to whole nanoseconds (rule 9).
        duration_ps = -(-duration_ps // PICOSECONDS_PER_NS) * PICOSECONDS_PER_NS
    return _Block(
        duration_ps=duration_ps,
        take_units=np.diff(_units(held, unit), axis=1, prepend=0),
        send_units=_units(cost.activation_bytes(size, sizes), unit),
        workspace_bytes=workspace,
    )


def _static_bytes(form: Form, blocks: Sequence[_Block]) -> Floats:
    """Weights and one workspace of each die, the largest of its stages over all waves (section 2). Shape [P, D]."""
    layout = form.skeleton.layout
    of_kind: Floats = np.max([block.workspace_bytes for block in blocks], axis=0)
    workspace = np.zeros((len(layout.dies), len(of_kind)))
    np.maximum.at(workspace, layout.die_of_stage, of_kind[:, layout.kind_of_stage].T)
    return layout.weights_bytes + workspace.T


def _units(amount_bytes: Floats, units_per_byte: int) -> Ints:
    return np.rint(amount_bytes * units_per_byte).astype(np.int64)
