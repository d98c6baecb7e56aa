"""From an instance and a plan to the program that the engine runs (spec section 3, ``Program``)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm

import numpy as np
import numpy.typing as npt

from instances.instance import Instance
from instances.plan import Plan
from instances.workload import Shape, Wave, form_waves
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


class Lowering:
    """Lowers plans of one instance; keeps what they share (networks of recent placements, units)."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.units_per_byte = _units_per_byte(instance)
        self._network = lru_cache(maxsize=64)(self._build_network)

    def program(self, plan: Plan) -> Program:
        """Lower a plan that the static checker accepts.

        Parameters
        ----------
        plan
            A plan whose violations, if any, concern memory alone.
        """
        instance = self.instance
        stages = len(plan.layers)
        waves = form_waves(instance.workload.all_requests(), plan.batch)
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
            slot_stage=(slot_group % stages).astype(np.int32),
            group_die=np.tile(np.arange(stages, dtype=np.int32), len(waves)),
            group_stage=np.tile(np.arange(stages, dtype=np.int32), len(waves)),
            capacity_units=np.array(
                [int(instance.hardware.die_at(die).hbm_bytes * self.units_per_byte) for die in plan.placement],
                dtype=np.int64,
            ),
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

    def arrivals(self, plan: Plan) -> list[Wave]:
        """The waves of the plan, whose requests' arrivals turn completions into latencies."""
        return form_waves(self.instance.workload.all_requests(), plan.batch)

    def _block(self, plan: Plan, shape: Shape, size: int) -> _Block:
        cost, stages = self.instance.stage_cost, len(plan.layers)
        sizes = np.array(plan.chunk_sizes(shape[0] - shape[1]), dtype=np.int64)
        after = shape[1] + np.cumsum(sizes)
        last = np.arange(len(sizes)) == len(sizes) - 1
        seconds = np.empty((len(sizes), stages))
        held = np.empty((len(sizes), stages))
        workspace = np.empty(stages)
        spill_bytes = np.empty(stages)
        for s, (stop, layers) in enumerate(zip(accumulate(plan.layers), plan.layers, strict=True)):
            start, die = stop - layers, self.instance.hardware.die_at(plan.placement[s])
            head = last & (s == stages - 1)
            seconds[:, s] = cost.stage_seconds(die, start, stop, size, sizes, after - sizes, head=head)
            held[:, s] = cost.kv_held_bytes(start, stop, size, after, sizes)
            workspace[s] = cost.workspace_bytes(start, stop, size, int(sizes.max()))
            spill_bytes[s] = size * cost.spillable_bytes_per_token(start, stop)
        taken = np.diff(self._units(held), axis=0, prepend=0)
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
            send_units=np.repeat(self._units(np.array([cost.activation_bytes(size, int(c)) for c in sizes])), stages),
            write_count=write_count,
            write_slot=np.array([first[s] + creditors[s].index(k) for _, s, k, _ in rows], dtype=np.int64),
            write_units=self._units(np.array([tokens * spill_bytes[s] for _, s, _, tokens in rows])),
            slot_count=np.diff(first).astype(np.int64),
            slot_creditor=np.array([k if k < stages else -1 for names in creditors for k in names], dtype=np.int64),
            workspace_bytes=workspace,
        )

    def _static_bytes(self, plan: Plan, blocks: list[_Block]) -> npt.NDArray[np.float64]:
        """Weights and one workspace, the largest over all waves (spec section 2, static memory)."""
        cost, stages = self.instance.stage_cost, len(plan.layers)
        stops = list(accumulate(plan.layers))
        weights = np.array(
            [
                cost.weight_bytes(stop - layers, stop, embedding=s == 0, head=s == stages - 1)
                for s, (stop, layers) in enumerate(zip(stops, plan.layers, strict=True))
            ]
        )
        workspace: npt.NDArray[np.float64] = np.max([block.workspace_bytes for block in blocks], axis=0)
        return weights + workspace

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
