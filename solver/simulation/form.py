"""The form of a plan: all of its program but the numbers, shared by plans that differ in chunk sizes and amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from instances.errors import PlanError
from instances.instance import Instance
from instances.plan import Plan, Schedule
from instances.workload import Request, Shape, Wave, form_waves
from solver.simulation.layout import Layout, Position, build_layout
from solver.simulation.network import Network, build_network, whole_ps
from solver.simulation.orders import die_orders
from solver.simulation.program import NO_LIMIT_UNITS, Program
from solver.simulation.spill_pattern import Row, SpillPattern, spill_pattern
from solver.simulation.tables import Tables, pack

Ints = npt.NDArray[np.int64]
MOST_TASKS = 1 << 23
"""Tasks of a program; the ceiling only keeps absurd workloads from exhausting memory."""


class Outline(NamedTuple):
    """What makes the form of a plan, spill aside; ``chunks`` has the number of chunks for each request shape."""

    schedule: Schedule
    batch: int
    layers: tuple[int, ...]
    placement: tuple[Position, ...]
    chunks: tuple[tuple[Shape, int], ...]


def outline_of(plan: Plan, shapes: Sequence[Shape]) -> Outline:
    """The outline of a plan that has a chunk list for each of the shapes."""
    chunks = tuple((shape, len(plan.chunk_sizes(shape[0] - shape[1]))) for shape in shapes)
    return Outline(plan.schedule, plan.batch, plan.layers, plan.placement, chunks)


@dataclass(frozen=True, eq=False)
class Skeleton:
    """What an outline says without spill: stages on dies, waves, and a program whose numbers are all 0."""

    layout: Layout
    waves: tuple[Wave, ...]
    chunks_of_wave: tuple[int, ...]
    program: Program

    @property
    def blocks(self) -> list[tuple[Shape, int]]:
        """Shapes and sizes that waves have, each once."""
        return list(dict.fromkeys((wave.shape, wave.size) for wave in self.waves))


@dataclass(frozen=True, eq=False)
class Form:
    """A skeleton with its spill, and tables on which programs of this form can run one after the other.

    ``always_fits``: no program of this form can exceed 62 bits in picoseconds or units.
    """

    skeleton: Skeleton
    spill: SpillPattern
    program: Program
    tables: Tables
    always_fits: bool = False


def network_of(instance: Instance, dies: tuple[Position, ...]) -> Network:
    """Links and routes between dies, with the options of the pipeline."""
    hardware, pipeline = instance.hardware, instance.pipeline
    return build_network(
        hardware.mesh(),
        dies,
        link_bytes_per_s=hardware.link_bytes_per_s,
        wafer_link_bytes_per_s=hardware.seam_bytes_per_s,
        hop_latency_s=hardware.hop_latency_s,
        host_bytes_per_s=None if hardware.host is None else hardware.host.host_bytes_per_s,
        routing=pipeline.routing,
        store_and_forward=pipeline.switching == "store_and_forward",
        one_send_per_die=pipeline.one_send_per_die,
        integer_ns=pipeline.integer_ns,
    )


def build_skeleton(
    instance: Instance, requests: list[Request], outline: Outline, units_per_byte: int, network: Network
) -> Skeleton:
    """Lay out the tasks of an outline: numbered by (wave, chunk, stage), on their dies, in their dies' orders.

    ``network`` joins the dies of the outline, each once, in the order of their first stages.
    """
    pipeline = instance.pipeline
    layout = build_layout(instance, outline.layers, outline.placement)
    waves, count_of = form_waves(requests, outline.batch), dict(outline.chunks)
    chunks_of_wave = tuple(count_of[wave.shape] for wave in waves)
    stages, dies, chunks = len(outline.layers), len(layout.dies), sum(chunks_of_wave)
    if stages * chunks > MOST_TASKS:
        field = "workload.requests" if instance.workload.trace is None else "workload.trace"
        tasks = f"{len(waves)} waves with {chunks} chunks on {stages} stages"
        raise PlanError(field, tasks, f"a replay of at most {MOST_TASKS} tasks, which take 4 GB")
    stage = np.tile(np.arange(stages, dtype=np.int32), chunks)
    chunk = np.concatenate([np.repeat(np.arange(count, dtype=np.int32), stages) for count in chunks_of_wave])
    wave = np.repeat(np.arange(len(waves), dtype=np.int32), [stages * count for count in chunks_of_wave])
    last = np.concatenate([np.repeat(np.arange(count) == count - 1, stages) for count in chunks_of_wave])
    ready_ps = np.array([whole_ps(one.ready_s) for one in waves], dtype=np.int64)
    die_of_stage = layout.die_of_stage.astype(np.int32)
    die_ptr, die_tasks = die_orders(outline.schedule, layout.die_of_stage.tolist(), chunks_of_wave)
    numbers = np.arange(stages * chunks, dtype=np.int64)
    none = spill_pattern((), waves, chunks_of_wave, layout.die_of_stage.tolist(), lambda stage: 0.0)
    program = Program(
        die=np.tile(die_of_stage, chunks),
        die_ptr=die_ptr,
        die_tasks=die_tasks,
        duration_ps=np.zeros_like(numbers),
        earliest_ps=np.where(stage == 0, ready_ps[wave], 0).astype(np.int64),
        inputs=(stage > 0).astype(np.int32),
        successor=np.where(stage < stages - 1, numbers + 1, -1).astype(np.int32),
        send_units=np.zeros_like(numbers),
        take_units=np.zeros_like(numbers),
        group=(wave * stages + stage).astype(np.int32),
        closes_group=last,
        enters_window=stage == 0,
        leaves_window=stage == stages - 1,
        max_in_flight=pipeline.max_in_flight or 0,
        group_die=np.tile(die_of_stage, len(waves)),
        group_stage=np.tile(np.arange(stages, dtype=np.int32), len(waves)),
        capacity_units=np.zeros(dies, dtype=np.int64),
        static_units=np.zeros(dies, dtype=np.int64),
        host_capacity_units=np.full(dies, _host_units(instance, units_per_byte), dtype=np.int64),
        serve_fraction=pipeline.serve_fraction,
        overlap=pipeline.overlap,
        network=network,
        stages=stages,
        wave=wave,
        stage=stage,
        chunk=chunk,
        units_per_byte=units_per_byte,
        **none.arrays,
    )
    return Skeleton(layout, tuple(waves), chunks_of_wave, program)


def build_form(instance: Instance, skeleton: Skeleton, rows: tuple[Row, ...]) -> Form:
    """Add spill rows to a skeleton."""
    layout, cost = skeleton.layout, instance.stage_cost

    def bytes_per_token(stage: int) -> float:
        start, stop, _, _ = layout.kinds[layout.kind_of_stage[stage]]
        return cost.spillable_bytes_per_token(start, stop)

    spill = spill_pattern(rows, skeleton.waves, skeleton.chunks_of_wave, layout.die_of_stage.tolist(), bytes_per_token)
    program = replace(skeleton.program, **spill.arrays)
    return Form(skeleton, spill, program, pack(program))


def _host_units(instance: Instance, units_per_byte: int) -> int:
    host = instance.hardware.host
    return 0 if host is None else min(int(host.host_bytes * units_per_byte), NO_LIMIT_UNITS)
