"""From an instance to the numbers of its joint problem, and the names of the variables.

``chunk[l,i,p,e]``: slot i of chunk list l covers quanta p..e-1. ``place[g]``: configuration g is used. ``start[w,s,i]``
and ``end[w,s,i]``: when a task starts and ends. ``arrive[w,s,i]``: when its activations are there.
``spill[h,s,o,i,k]``: tokens of chunk i of stage s, in its choice o, that creditor k keeps for requests of shape h.
``out[w,s,o,i,k]``: how many tokens lie there when wave w starts slot i. ``first[a,b]``: of two tasks, a starts no later
than b. ``left[w,s,a]``: wave w has left stage s when task a starts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from formulations.joint.choices import Choices, StageChoice, choices_of
from formulations.joint.problem import (
    HOST,
    Arc,
    ArcNumbers,
    Goal,
    JointProblem,
    JointWave,
    LentNumbers,
)
from formulations.tables import Grid
from instances.instance import Instance
from instances.workload import Shape, Wave, form_waves

MOST_TICKS = 2**26
"""Ticks of the horizon where durations have no large common divisor: rounding is a millionth or less."""
MOST_MEMORY_TICKS = 2**18
"""Ticks of the largest demand likewise; sums over a few thousand chunks stay below what engines can bear."""
PS = 10**12
NS = 1000
Key = tuple[int, int, int, Arc]


def stated(
    instance: Instance,
    batch: int,
    *,
    chunk_counts: tuple[int, int] | None = None,
    ends: Sequence[int] | None = None,
    choices: Choices | None = None,
) -> JointProblem:
    """The joint problem of one batch.

    Parameters
    ----------
    chunk_counts
        Fewest and most chunks of a request; default 1 to max_chunks.
    ends
        Positions at which a request may end, for equal requests whose length is free; default its own length.
    choices
        Layer splits and placements; default all.

    Raises
    ------
    InputError
        For more splits and placements than can be listed.
    """
    given = choices_of(instance) if choices is None else choices
    waves = form_waves(instance.workload.all_requests(), batch)
    kinds = tuple(dict.fromkeys((wave.shape, wave.size) for wave in waves))
    lists, shapes = instance.workload.uncached_counts, tuple(instance.workload.shapes)
    grids = [Grid.of(instance, (count, 0)) for count in lists]
    fewest, most = chunk_counts or (1, instance.pipeline.max_chunks)
    slots = tuple(min(most, grid.quanta) for grid in grids)
    arcs = tuple(
        _arcs(grid.quanta, count, min(fewest, grid.quanta), {grid.quanta} if ends is None else set(ends))
        for grid, count in zip(grids, slots, strict=True)
    )
    list_of_kind = tuple(lists.index(shape[0] - shape[1]) for shape, _ in kinds)
    counted = _Counted(instance, given, kinds, list_of_kind, grids, arcs, waves)
    arcs = tuple(
        {arc: at for arc, at in table.items() if arc not in unknown}
        for table, unknown in zip(arcs, counted.unknown, strict=True)
    )
    return JointProblem(
        instance=instance,
        batch=batch,
        goal=goal_of(instance),
        kinds=kinds,
        list_of_kind=list_of_kind,
        shape_of_kind=tuple(shapes.index(shape) for shape, _ in kinds),
        shapes=shapes,
        waves=counted.waves(),
        quanta=tuple(grid.quanta for grid in grids),
        slots=slots,
        arcs=arcs,
        positions=tuple(tuple(grid.tokens.tolist()) for grid in grids),
        configurations=given.configurations,
        choice_of=counted.choice_of,
        way_of=counted.way_of,
        choices=tuple(len(options) for options in counted.options),
        ways=tuple(len(options) for options in counted.ways),
        numbers=counted.numbers(),
        sent={key: ps // counted.tick_ps for key, ps in counted.sent_ps.items()},
        occupied={key: ps // counted.tick_ps for key, ps in counted.occupied_ps.items()},
        room=counted.room(),
        lent=counted.lent(),
        host_room=counted.host_units // counted.tick_units,
        memory_binds=counted.memory_binds,
        horizon=counted.horizon_ps // counted.tick_ps + len(counted.sent_ps) + 1,
        tick_ps=counted.tick_ps,
        exact=counted.exact,
    )


def goal_of(instance: Instance) -> Goal:
    """The objective of time: of plans for longest requests the mean latency."""
    return "mean_latency" if instance.objective == "max_tokens" else instance.objective


def _arcs(quanta: int, slots: int, fewest: int, ends: set[int]) -> dict[Arc, range]:
    """All chunks with the slots they may be in: a chunk that starts at p has at most p before it."""
    arcs = {}
    for start in range(quanta):
        for end in range(start + 1, quanta + 1):
            first, stop = min(start, 1), min(start, slots - 1) + 1
            if end in ends:
                arcs[Arc(start, end, True)] = range(max(first, fewest - 1), stop)
            if end < quanta:
                arcs[Arc(start, end, False)] = range(first, min(stop, slots - 1))
    return {arc: at for arc, at in arcs.items() if at}


@dataclass(frozen=True, eq=False)
class _LentBytes:
    """Units of memory and picoseconds of a token lent, the latter not rounded."""

    units: int
    transfer_ps: float
    serve_ps: float


class _Counted:
    """Works the numbers out, in picoseconds and units, and settles the ticks."""

    def __init__(
        self,
        instance: Instance,
        choices: Choices,
        kinds: Sequence[tuple[Shape, int]],
        list_of_kind: Sequence[int],
        grids: Sequence[Grid],
        arcs: Sequence[dict[Arc, range]],
        waves: Sequence[Wave],
    ) -> None:
        self.instance, self.kinds, self.list_of_kind = instance, kinds, list_of_kind
        self.grids, self.arcs, self.form_waves = grids, arcs, waves
        stages = instance.pipeline.stages
        configurations = choices.configurations
        self.options = [list(dict.fromkeys(one.stages[s] for one in configurations)) for s in range(stages)]
        self.ways = [list(dict.fromkeys(one.ways[s] for one in configurations)) for s in range(stages - 1)]
        self.choice_of = tuple(
            tuple(self.options[s].index(stage) for s, stage in enumerate(one.stages)) for one in configurations
        )
        self.way_of = tuple(tuple(self.ways[s].index(way) for s, way in enumerate(one.ways)) for one in configurations)
        self.units_per_byte = units_per_byte(instance)
        self.unknown: list[set[Arc]] = [set() for _ in grids]
        self.duration_ps: dict[Key, int] = {}
        self.held_units: dict[Key, int] = {}
        self.workspace_units: dict[Key, int] = {}
        self.sent_ps: dict[Key, int] = {}
        self.occupied_ps: dict[Key, int] = {}
        for kind in range(len(kinds)):
            self._count_kind(kind)
        self.room_units = {
            (s, o): self._room_units(option)
            for s, options in enumerate(self.options)
            for o, option in enumerate(options)
        }
        host = instance.hardware.host
        self.host_units = 0 if host is None else int(host.host_bytes * self.units_per_byte)
        self.memory_binds = self._binds()
        self.lent_bytes = self._lent(choices) if self.memory_binds else {}
        self.horizon_ps = self._horizon()
        self.tick_ps, self.exact = self._tick_ps()
        self.tick_units = self._tick_units()

    def _count_kind(self, kind: int) -> None:
        (shape, size), number = self.kinds[kind], self.list_of_kind[kind]
        grid, arcs, cost = self.grids[number], list(self.arcs[number]), self.instance.stage_cost
        before = grid.tokens[[arc.start for arc in arcs]]
        after = grid.tokens[[arc.end for arc in arcs]]
        last, chunk, upb = np.array([arc.last for arc in arcs]), after - before, self.units_per_byte
        for s, options in enumerate(self.options):
            for o, option in enumerate(options):
                part = (option.start, option.stop)
                seconds = cost.stage_seconds(
                    option.die, *part, size, chunk, shape[1] + before, head=last & option.head, outside=np.inf
                )
                held = np.rint(cost.kv_held_bytes(*part, size, shape[1] + after, chunk) * upb)
                for n, arc in enumerate(arcs):
                    if not np.isfinite(seconds[n]):
                        self.unknown[number].add(arc)
                        continue
                    key = (kind, s, o, arc)
                    self.duration_ps[key] = self._whole_ps(float(seconds[n]))
                    self.held_units[key] = int(held[n])
                    workspace = cost.workspace_bytes(*part, size, int(chunk[n]))
                    self.workspace_units[key] = math.floor(workspace * upb + 1e-6)
        sent = np.rint(cost.activation_bytes(size, chunk) * upb) / upb
        latency_ps = round(self.instance.hardware.hop_latency_s * PS)
        for s, ways in enumerate(self.ways):
            for o, way in enumerate(ways):
                for n, arc in enumerate(arcs):
                    crossing = self._whole_ps(float(sent[n]) / way.bytes_per_s)
                    self.sent_ps[kind, s, o, arc] = crossing + way.hops * latency_ps
                    self.occupied_ps[kind, s, o, arc] = crossing

    def _whole_ps(self, seconds: float) -> int:
        ps = int(np.rint(seconds * PS))
        return -(-ps // NS) * NS if self.instance.pipeline.integer_ns else ps

    def _room_units(self, option: StageChoice) -> int:
        weights = self.instance.stage_cost.weight_bytes(
            option.start, option.stop, embedding=option.embedding, head=option.head
        )
        room = (option.die.hbm_bytes - weights) * self.units_per_byte
        return round(room) if abs(room - round(room)) < 1e-6 else math.ceil(room)

    def _binds(self) -> bool:
        """Whether the most that a stage could hold of a wave is more than its room."""
        for (s, o), room in self.room_units.items():
            mine = [key for key in self.held_units if key[1:3] == (s, o)]
            held = max((self.held_units[key] for key in mine), default=0)
            if held + max((self.workspace_units[key] for key in mine), default=0) > room:
                return True
        return False

    def _lent(self, choices: Choices) -> dict[tuple[int, int, int, int], _LentBytes]:
        """Numbers of a token lent, at the best of all ways between two stages: hops and contention are left out."""
        found = {}
        host, stages = self.instance.hardware.host, self.instance.pipeline.stages
        for kind, (_, size) in enumerate(self.kinds):
            for s, options in enumerate(self.options):
                for o, option in enumerate(options):
                    each = size * self.instance.stage_cost.spillable_bytes_per_token(option.start, option.stop)
                    if not each:
                        continue
                    units = round(each * self.units_per_byte)
                    for k in range(stages):
                        if k != s:
                            there, back = choices.best_ways[s, k], choices.best_ways[k, s]
                            transfer = each / max(there.bytes_per_s, back.bytes_per_s) * PS
                            serve = self.instance.pipeline.serve_fraction * transfer
                            found[kind, s, o, k] = _LentBytes(units, transfer, serve)
                    if host is not None:
                        found[kind, s, o, HOST] = _LentBytes(units, each / host.host_bytes_per_s * PS, 0.0)
        return found

    def _horizon(self) -> int:
        """Every task, transfer, write, fetch and stall, one after the other, behind the last arrival."""
        waves = Counter((wave.shape, wave.size) for wave in self.form_waves)
        total = max(round(wave.ready_s * PS) for wave in self.form_waves)
        return total + sum(waves[key] * self._longest_wave_ps(kind) for kind, key in enumerate(self.kinds))

    def _longest_wave_ps(self, kind: int) -> int:
        """All that a wave of this kind may take, one after the other."""
        number, total = self.list_of_kind[kind], 0
        slots = max((at.stop for at in self.arcs[number].values()), default=1)
        # Its tokens are written once, and fetched and served by every slot but the first at most.
        tokens = int(self.grids[number].tokens[-2])
        for s in range(len(self.options)):
            for amounts in (self.duration_ps, self.sent_ps):
                total += self._longest_ps({key: ps for key, ps in amounts.items() if key[:2] == (kind, s)})
            mine = [one for key, one in self.lent_bytes.items() if key[:2] == (kind, s)]
            each = [one.transfer_ps + (slots - 1) * (one.transfer_ps + one.serve_ps) for one in mine]
            total += math.ceil(tokens * max(each, default=0.0))
        return total

    def _longest_ps(self, amounts: dict[Key, int]) -> int:
        """The most that chunks from position 0 to an end take in all, each on the choice it likes least."""
        reached, longest = {0: 0}, 0
        for key in sorted(amounts, key=lambda key: key[3]):
            arc = key[3]
            if arc.start in reached:
                so_far = reached[arc.start] + amounts[key]
                longest = max(longest, so_far)
                reached[arc.end] = max(reached.get(arc.end, 0), so_far)
        return longest

    def _tick_ps(self) -> tuple[int, bool]:
        exact: list[int] = [*self.duration_ps.values(), *self.sent_ps.values(), *self.occupied_ps.values()]
        exact += [round(request.arrival_s * PS) for request in self.instance.workload.all_requests()]
        rates = [rate for one in self.lent_bytes.values() for rate in (one.transfer_ps, one.serve_ps)]
        exact += [round(rate) for rate in rates if rate == round(rate)]
        common = max(1, math.gcd(*exact)) if exact else 1
        if self.horizon_ps // common <= MOST_TICKS:
            return common, True
        return -(-self.horizon_ps // MOST_TICKS), False

    def _tick_units(self) -> int:
        demands = [*self.held_units.values(), *self.workspace_units.values()]
        demands += [one.units for one in self.lent_bytes.values()]
        most = max(demands, default=1)
        common = max(1, math.gcd(*demands)) if demands else 1
        return common if most // common <= MOST_MEMORY_TICKS else -(-most // MOST_MEMORY_TICKS)

    def waves(self) -> tuple[JointWave, ...]:
        """Waves with arrivals in ticks; ready rounded down, arrivals up."""
        kind_of = {key: kind for kind, key in enumerate(self.kinds)}
        return tuple(
            JointWave(
                kind=kind_of[wave.shape, wave.size],
                ready=round(wave.ready_s * PS) // self.tick_ps,
                size=wave.size,
                arrivals=tuple(-(-round(arrival * PS) // self.tick_ps) for arrival in wave.arrivals_s),
            )
            for wave in self.form_waves
        )

    def numbers(self) -> dict[Key, ArcNumbers]:
        """Durations and demands in ticks, rounded down."""
        return {
            key: ArcNumbers(
                ps // self.tick_ps,
                self.held_units[key] // self.tick_units,
                self.workspace_units[key] // self.tick_units,
            )
            for key, ps in self.duration_ps.items()
        }

    def room(self) -> dict[tuple[int, int], int]:
        """Rooms in ticks: demands are whole, so what is beyond the last whole tick is of no use."""
        return {key: units // self.tick_units for key, units in self.room_units.items()}

    def lent(self) -> dict[tuple[int, int, int, int], LentNumbers]:
        """Amounts of a token lent in ticks."""
        return {
            key: LentNumbers(
                memory=one.units // self.tick_units,
                memory_up=-(-one.units // self.tick_units),
                transfer=math.floor(one.transfer_ps / self.tick_ps),
                serve=math.floor(one.serve_ps / self.tick_ps),
            )
            for key, one in self.lent_bytes.items()
        }


def units_per_byte(instance: Instance) -> int:
    """Units in which KV and activations of one element are whole numbers."""
    widths = (instance.model.kv_bytes, instance.model.activation_bytes)
    return math.lcm(*(Fraction(width).limit_denominator(4096).denominator for width in widths))


def name(kind: str, *at: object) -> str:
    """Name of a variable: ``start[0,2,1]``."""
    return f"{kind}[{','.join(str(part) for part in at)}]"
