"""Times and memory of chunks in whole picoseconds and units: looked up on the grid of quanta, worked out beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from instances.costs import TableSpec
from instances.hardware import Die
from instances.instance import Instance
from instances.workload import Shape
from solver.simulation.network import PICOSECONDS_PER_NS, PICOSECONDS_PER_S
from solver.simulation.out_of_range import too_many_bytes, too_slow
from solver.simulation.program import NO_LIMIT_UNITS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Kinds = tuple[tuple[int, int, Die, bool], ...]
"""(first layer, layer behind the last, die, whether it is the last stage) of each kind of stage."""

MOST_ENTRIES = 1 << 20
"""Chunks times kinds that one grid has at most; larger grids cost more to fill than they save."""
WORTH_USES = 8
"""Calls of a shape and size after which its grid is filled: a single replay does without."""


@dataclass(frozen=True, eq=False)
class Block:
    """Waves of one shape and size: amounts by plan, chunk and kind of stage, or by plan and kind, or plan and chunk."""

    duration_ps: Ints
    take_units: Ints
    send_units: Ints
    workspace_bytes: Floats


@dataclass(frozen=True, eq=False)
class _Grid:
    """Durations and KV held of the chunk of quanta p..e-1 at [p, e, kind]; the rest by size in quanta."""

    duration_ps: Ints
    held_units: Ints


class ChunkNumbers:
    """Numbers of chunks of one instance; keeps grids that are used often, which a search does."""

    def __init__(self, instance: Instance, units_per_byte: int) -> None:
        self.instance = instance
        self.units_per_byte = units_per_byte
        self._uses: dict[tuple[Kinds, Shape, int], int] = {}
        self._grid = lru_cache(maxsize=16)(self._filled)

    def block(self, kinds: Kinds, shape: Shape, size: int, sizes: Ints) -> Block:
        """Numbers of P plans with M chunks each.

        Parameters
        ----------
        sizes
            Chunk sizes in tokens, shape (P, M).

        Raises
        ------
        PlanError
            For a chunk outside a measured table.
        InputError
            If a time or an amount does not fit 62 bits.
        """
        ends = np.cumsum(sizes, axis=1)
        if not self._worth(kinds, shape, size, ends):
            duration_ps, held = self._numbers(kinds, shape, size, ends - sizes, ends)
        else:
            grid = self._grid(kinds, shape, size)
            quantum = self.instance.pipeline.chunk_quantum
            after, before = -(-ends // quantum), (ends - sizes) // quantum
            duration_ps, held = grid.duration_ps[before, after], grid.held_units[before, after]
        cost = self.instance.stage_cost
        largest = sizes.max(axis=1).tolist()
        bytes_of = {
            (k, chunk): cost.workspace_bytes(start, stop, size, chunk)
            for chunk in set(largest)
            for k, (start, stop, _, _) in enumerate(kinds)
        }
        return Block(
            duration_ps=duration_ps,
            take_units=np.diff(held, axis=1, prepend=0),
            send_units=self.units(cost.activation_bytes(size, sizes)),
            workspace_bytes=np.array([[bytes_of[k, chunk] for k in range(len(kinds))] for chunk in largest]),
        )

    def _worth(self, kinds: Kinds, shape: Shape, size: int, ends: Ints) -> bool:
        """Whether all chunks lie on the grid, and the grid is small and used often."""
        quantum, tokens = self.instance.pipeline.chunk_quantum, shape[0] - shape[1]
        quanta = -(-tokens // quantum)
        if (quanta + 1) ** 2 * len(kinds) > MOST_ENTRIES or self.instance.costs.kind == "table":
            return False
        key = (kinds, shape, size)
        self._uses[key] = self._uses.get(key, 0) + 1
        inner = ends[:, :-1]
        on_grid = (ends[:, -1] == tokens).all() and (inner % quantum == 0).all()
        return self._uses[key] > WORTH_USES and bool(on_grid)

    def _filled(self, kinds: Kinds, shape: Shape, size: int) -> _Grid:
        tokens = shape[0] - shape[1]
        positions = np.append(np.arange(0, tokens, self.instance.pipeline.chunk_quantum), tokens)
        before, after = np.triu_indices(len(positions), 1)
        duration_ps, held = self._numbers(kinds, shape, size, positions[before][None], positions[after][None])
        grids = (np.zeros((len(positions), len(positions), len(kinds)), dtype=np.int64) for _ in range(2))
        grid = _Grid(*grids)
        grid.duration_ps[before, after] = duration_ps[0]
        grid.held_units[before, after] = held[0]
        return grid

    def _numbers(self, kinds: Kinds, shape: Shape, size: int, before: Ints, after: Ints) -> tuple[Ints, Ints]:
        """Durations and KV held of chunks from ``before`` to ``after`` uncached tokens; shape of these, and kinds."""
        cost, chunk, last = self.instance.stage_cost, after - before, after == shape[0] - shape[1]
        seconds, held = (np.empty((*chunk.shape, len(kinds))) for _ in range(2))
        for kind, (start, stop, die, is_last) in enumerate(kinds):
            seconds[..., kind] = cost.stage_seconds(
                die, start, stop, size, chunk, shape[1] + before, head=last & is_last
            )
            held[..., kind] = cost.kv_held_bytes(start, stop, size, shape[1] + after, chunk)
        ps = np.rint(seconds * PICOSECONDS_PER_S)
        if not ps.max(initial=0.0) < NO_LIMIT_UNITS:
            *task, longest = (int(index) for index in np.unravel_index(int(ps.argmax()), ps.shape))
            of_task = tuple(task)
            raise too_slow(
                self.instance, kinds[longest], size, float(chunk[of_task]), float(shape[1] + before[of_task])
            )
        duration_ps = ps.astype(np.int64)
        if self.instance.pipeline.integer_ns:
            # Under this option every duration is rounded up to whole nanoseconds (rule 9).
            duration_ps = -(-duration_ps // PICOSECONDS_PER_NS) * PICOSECONDS_PER_NS
        return duration_ps, self.units(held)

    def most(self, kinds: Kinds, shape: Shape, size: int) -> tuple[float, float, float]:
        """Picoseconds, units of KV held and units of activations that no chunk exceeds: those of a whole request.

        Times grow with the chunk and what is before it; between measured ones none is longer than these.
        """
        cost, chunk, after = self.instance.stage_cost, shape[0] - shape[1], 2 * shape[0] - shape[1]
        costs = self.instance.costs
        if isinstance(costs, TableSpec):
            longest_s = size * max((seconds for *_, seconds in costs.rows or ()), default=np.inf)
        else:
            longest_s = max(
                float(cost.stage_seconds(die, start, stop, size, chunk, shape[0], head=True))
                for start, stop, die, _ in kinds
            )
        held = [float(cost.kv_held_bytes(start, stop, size, after, chunk)) for start, stop, *_ in kinds]
        sent = float(cost.activation_bytes(size, chunk))
        return longest_s * PICOSECONDS_PER_S, max(held) * self.units_per_byte, sent * self.units_per_byte

    def units(self, amount_bytes: Floats) -> Ints:
        """Bytes as units, to nearest."""
        units = np.rint(amount_bytes * self.units_per_byte)
        if not units.max(initial=0.0) < NO_LIMIT_UNITS:
            raise too_many_bytes(self.instance, self.units_per_byte)
        return units.astype(np.int64)
