"""From an instance and a plan to the program that the engine runs (spec section 3, ``Program``)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm

import numpy as np
import numpy.typing as npt

from instances.hardware import Die
from instances.instance import Instance
from instances.plan import Plan
from instances.workload import Shape, form_waves
from solver.simulation.network import PICOSECONDS_PER_S, Network, build_network, whole_ps
from solver.simulation.program import Program

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Block:
    """What waves of one shape and size have in common; tasks are numbered chunk by chunk, stage by stage."""

    chunks: int
    duration_ps: Ints
    take_units: Ints
    send_units: Ints
    write_count: Ints
    write_slot: Ints
    write_units: Ints
    slot_count: Ints
    slot_creditor: Ints
    workspace_bytes: npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Layout:
    """Stages on their dies. Stages of one kind (layers, die, last or not) share their times and memory.

    ``kinds`` has (first layer, layer behind the last, die, whether it is the last stage) of one stage of each kind.
    """

    kinds: tuple[tuple[int, int, Die, bool], ...]
    kind_of_stage: Ints
    weights_bytes: npt.NDArray[np.float64]
    capacity_units: Ints


class Lowering:
    """Lowers plans of one instance; keeps what they share (networks of recent placements, units)."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.units_per_byte = _units_per_byte(instance)
        self.requests = instance.workload.all_requests()
        self._network = lru_cache(maxsize=64)(self._build_network)
        self._layout = lru_cache(maxsize=64)(self._build_layout)

    def program(self, plan: Plan) -> Program:
        """Lower a plan that the static checker accepts.

        Parameters
        ----------
        plan
            A plan whose violations, if any, concern memory alone.
        """
        instance = self.instance
        stages = len(plan.layers)
        waves = form_waves(self.requests, plan.batch)
        blocks = {key: self._block(plan, *key) for key in {(wave.shape, wave.size) for wave in waves}}
        in_order = [blocks[wave.shape, wave.size] for wave in waves]
        chunk_counts = [block.chunks for block in in_order]
        tasks = stages * sum(chunk_counts)

        stage = np.tile(np.arange(stages, dtype=np.int32), sum(chunk_counts))
        chunk = np.concatenate([np.repeat(np.arange(count, dtype=np.int32), stages) for count in chunk_counts])
        wave = np.repeat(np.arange(len(waves), dtype=np.int32), [stages * count for count in chunk_counts])
        last = np.concatenate([np.repeat(np.arange(count) == count - 1, stages) for count in chunk_counts])
        ready_ps = np.array([whole_ps(w.ready_s) for w in waves], dtype=np.int64)
        slots_of_wave = np.array([len(block.slot_creditor) for block in in_order], dtype=np.int64)
        first_slot = np.concatenate(([0], np.cumsum(slots_of_wave)))[:-1]
        slot_creditor = np.concatenate([block.slot_creditor for block in in_order])
        slot_group = np.repeat(np.arange(len(waves) * stages), np.concatenate([block.slot_count for block in in_order]))
        on_host = slot_creditor < 0
        static = self._static_bytes(plan, in_order)
        numbers = np.arange(tasks, dtype=np.int64)
        return Program(
            die=stage.copy(),
            die_ptr=np.arange(stages + 1, dtype=np.int64) * sum(chunk_counts),
            die_tasks=np.argsort(stage, kind="stable").astype(np.int32),
            duration_ps=self._rounded(np.concatenate([block.duration_ps for block in in_order])),
            earliest_ps=np.where(stage == 0, ready_ps[wave], 0).astype(np.int64),
            inputs=(stage > 0).astype(np.int32),
            successor=np.where(stage < stages - 1, numbers + 1, -1).astype(np.int32),
            send_units=np.concatenate([block.send_units for block in in_order]),
            take_units=np.concatenate([block.take_units for block in in_order]),
            group=(wave * stages + stage).astype(np.int32),
            closes_group=last,
            enters_window=stage == 0,
            leaves_window=stage == stages - 1,
            max_in_flight=instance.pipeline.max_in_flight or 0,
            write_ptr=_pointers(np.concatenate([block.write_count for block in in_order])),
            write_slot=np.concatenate(
                [block.write_slot + first for block, first in zip(in_order, first_slot, strict=True)]
            ).astype(np.int32),
            write_units=np.concatenate([block.write_units for block in in_order]),
            group_slot_ptr=_pointers(np.concatenate([block.slot_count for block in in_order])),
            slot_die=np.where(on_host, slot_group % stages, slot_creditor).astype(np.int32),
            slot_is_host=on_host,
            slot_stage=np.where(on_host, slot_group % stages, slot_creditor).astype(np.int32),
            group_die=np.tile(np.arange(stages, dtype=np.int32), len(waves)),
            group_stage=np.tile(np.arange(stages, dtype=np.int32), len(waves)),
            capacity_units=self._layout(plan.layers, plan.placement).capacity_units,
            static_units=np.ceil(static * self.units_per_byte).astype(np.int64),
            host_capacity_units=np.full(stages, self._host_units(), dtype=np.int64),
            serve_fraction=instance.pipeline.serve_fraction,
            overlap=instance.pipeline.overlap,
            network=self._network(plan.placement),
            stages=stages,
            wave=wave,
            stage=stage,
            chunk=chunk,
            units_per_byte=self.units_per_byte,
        )

    def _block(self, plan: Plan, shape: Shape, size: int) -> _Block:
        cost, stages = self.instance.stage_cost, len(plan.layers)
        sizes = np.array(plan.chunk_sizes(shape[0] - shape[1]), dtype=np.int64)
        after = shape[1] + np.cumsum(sizes)
        last = np.arange(len(sizes)) == len(sizes) - 1
        layout = self._layout(plan.layers, plan.placement)
        kinds = len(layout.kinds)
        seconds, held = np.empty((len(sizes), kinds)), np.empty((len(sizes), kinds))
        workspace, spill_bytes = np.empty(kinds), np.empty(kinds)
        for k, (start, stop, die, is_last) in enumerate(layout.kinds):
            head = last & is_last
            seconds[:, k] = cost.stage_seconds(die, start, stop, size, sizes, after - sizes, head=head)
            held[:, k] = cost.kv_held_bytes(start, stop, size, after, sizes)
            workspace[k] = cost.workspace_bytes(start, stop, size, int(sizes.max()))
            spill_bytes[k] = size * cost.spillable_bytes_per_token(start, stop)
        seconds, workspace, spill_bytes = (
            seconds[:, layout.kind_of_stage],
            workspace[layout.kind_of_stage],
            spill_bytes[layout.kind_of_stage],
        )
        taken = np.diff(self._units(held), axis=0, prepend=0)[:, layout.kind_of_stage]
        rows = sorted(
            (row.chunk, row.stage, stages if row.creditor == "host" else row.creditor, row.tokens)
            for row in plan.spill_of(shape)
            if row.tokens
        )
        creditors = [sorted({row[2] for row in rows if row[1] == s}) for s in range(stages)]
        first = np.concatenate(([0], np.cumsum([len(names) for names in creditors])))
        write_count = np.zeros(len(sizes) * stages, dtype=np.int64)
        for chunk, s, _, _ in rows:
            write_count[chunk * stages + s] += 1
        return _Block(
            chunks=len(sizes),
            duration_ps=np.rint(seconds * PICOSECONDS_PER_S).astype(np.int64).ravel(),
            take_units=taken.ravel(),
            send_units=np.repeat(self._units(cost.activation_bytes(size, sizes)), stages),
            write_count=write_count,
            write_slot=np.array([first[s] + creditors[s].index(k) for _, s, k, _ in rows], dtype=np.int64),
            write_units=self._units(np.array([tokens * spill_bytes[s] for _, s, _, tokens in rows])),
            slot_count=np.diff(first).astype(np.int64),
            slot_creditor=np.array([k if k < stages else -1 for names in creditors for k in names], dtype=np.int64),
            workspace_bytes=workspace,
        )

    def _static_bytes(self, plan: Plan, blocks: list[_Block]) -> npt.NDArray[np.float64]:
        """Weights and one workspace, the largest over all waves (spec section 2, static memory)."""
        workspace: npt.NDArray[np.float64] = np.max([block.workspace_bytes for block in blocks], axis=0)
        return self._layout(plan.layers, plan.placement).weights_bytes + workspace

    def _build_layout(self, layers: tuple[int, ...], placement: tuple[tuple[int, int], ...]) -> _Layout:
        hardware, model, cost = self.instance.hardware, self.instance.model, self.instance.stage_cost
        seen: dict[tuple[object, ...], int] = {}
        kinds: list[tuple[int, int, Die, bool]] = []
        kind_of_stage, weights = [], []
        for s, (stop, count) in enumerate(zip(accumulate(layers), layers, strict=True)):
            start, die, is_last = stop - count, hardware.die_at(placement[s]), s == len(layers) - 1
            key = (tuple(sorted(model.kind_counts(start, stop).items())), die, is_last)
            if key not in seen:
                seen[key] = len(kinds)
                kinds.append((start, stop, die, is_last))
            kind_of_stage.append(seen[key])
            weights.append(cost.weight_bytes(start, stop, embedding=s == 0, head=is_last))
        capacity = [int(hardware.die_at(die).hbm_bytes * self.units_per_byte) for die in placement]
        return _Layout(tuple(kinds), np.array(kind_of_stage), np.array(weights), np.array(capacity, dtype=np.int64))

    def _host_units(self) -> int:
        host = self.instance.hardware.host
        return 0 if host is None else int(host.host_bytes * self.units_per_byte)

    def _units(self, amount_bytes: npt.NDArray[np.float64]) -> Ints:
        return np.rint(amount_bytes * self.units_per_byte).astype(np.int64)

    def _rounded(self, duration_ps: Ints) -> Ints:
        """Under ``integer_ns`` every duration is rounded up to whole nanoseconds (spec rule 9)."""
        return -(-duration_ps // 1000) * 1000 if self.instance.pipeline.integer_ns else duration_ps

    def _build_network(self, placement: tuple[tuple[int, int], ...]) -> Network:
        hardware, pipeline = self.instance.hardware, self.instance.pipeline
        return build_network(
            hardware.mesh(),
            placement,
            link_bytes_per_s=hardware.link_bytes_per_s,
            wafer_link_bytes_per_s=hardware.seam_bytes_per_s,
            hop_latency_s=hardware.hop_latency_s,
            host_bytes_per_s=None if hardware.host is None else hardware.host.host_bytes_per_s,
            routing=pipeline.routing,
            store_and_forward=pipeline.switching == "store_and_forward",
            one_send_per_die=pipeline.one_send_per_die,
            integer_ns=pipeline.integer_ns,
        )


def _pointers(counts: npt.NDArray[np.int64]) -> Ints:
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def _units_per_byte(instance: Instance) -> int:
    """Smallest unit in which one element of KV and of activations is a whole number, so that memory adds exactly."""
    widths = (instance.model.kv_bytes, instance.model.activation_bytes)
    return lcm(*(Fraction(width).limit_denominator(4096).denominator for width in widths))
