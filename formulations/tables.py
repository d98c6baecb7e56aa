"""Chunk times of an instance on the grid of quanta: what the chunk formulations and the bounds read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from instances.hardware import Die
from instances.instance import Instance
from instances.workload import Shape

Table = npt.NDArray[np.float64]
"""Shape (n+1, n+1): seconds of the chunk of quanta p..e-1 at [p, e]; +inf where p >= e."""


@dataclass(frozen=True)
class Grid:
    """Where chunks of a request shape may end.

    Attributes
    ----------
    tokens
        Uncached tokens before each position, shape (n+1,): multiples of the quantum, the last one what there is.
    cached
        Cached prefix before position 0.
    """

    tokens: npt.NDArray[np.int64]
    cached: int

    @classmethod
    def of(cls, instance: Instance, shape: Shape) -> Grid:
        """The grid of a request shape."""
        uncached, quantum = shape[0] - shape[1], instance.pipeline.chunk_quantum
        tokens = np.append(np.arange(0, uncached, quantum), uncached)
        return cls(tokens, shape[1])

    @property
    def quanta(self) -> int:
        """Number of quanta n, the last of which may be short."""
        return len(self.tokens) - 1

    @property
    def fill_s(self) -> float:
        """Seconds that filling the tables of a few stages takes, roughly."""
        return 3e-7 * len(self.tokens) ** 2

    def sizes(self, cuts: list[int]) -> tuple[int, ...]:
        """Chunk sizes in tokens of chunks that end at these positions."""
        ends = self.tokens[np.array(cuts)]
        return tuple(int(size) for size in np.diff(ends, prepend=0))

    def equal_sizes(self, count: int) -> tuple[int, ...]:
        """So many chunks, of equal size up to one quantum, the larger ones first; at most one for each quantum."""
        small, larger = divmod(self.quanta, count)
        return self.sizes(list(np.cumsum([small + (chunk < larger) for chunk in range(count)])))

    def positions(self, sizes: tuple[int, ...]) -> list[int]:
        """End positions of chunks of these sizes; they must lie on the grid."""
        return [int(position) for position in np.searchsorted(self.tokens, np.cumsum(sizes))]


MOST_KEPT = 1 << 27
"""Numbers of the tables that are kept: 1 GB."""


class StageTables:
    """Tables of one instance, kept while they are of use."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.grid = lru_cache(maxsize=256)(lambda shape: Grid.of(instance, shape))
        self.waves = lru_cache(maxsize=16)(instance.workload.gathered)
        largest = max(-(-tokens // instance.pipeline.chunk_quantum) for tokens in instance.workload.uncached_counts) + 1
        self._seconds = lru_cache(maxsize=max(4, min(24, MOST_KEPT // largest**2)))(self._make_seconds)
        self._example: dict[tuple[tuple[str, int], ...], tuple[int, int]] = {}

    def stage(self, die: Die, start: int, stop: int, size: int, shape: Shape, *, head: bool) -> Table:
        """Seconds of every chunk on one stage for waves of ``size`` requests; ``head``: it is the last stage.

        Stages of the same kinds of layers share a table: what counts is how many of each kind they have.
        """
        kinds = tuple(sorted(self.instance.model.kind_counts(start, stop).items()))
        self._example.setdefault(kinds, (start, stop))
        return self._seconds(die, kinds, size, shape, head)

    def transfer(self, size: int, shape: Shape) -> Table:
        """Seconds to hand the activations of every chunk to a neighbouring die over the fastest link."""
        hardware, grid = self.instance.hardware, self.grid(shape)
        speed = max(hardware.link_bytes_per_s, hardware.seam_bytes_per_s)
        chunk = grid.tokens[None, :] - grid.tokens[:, None]
        forward = chunk > 0
        sent = self.instance.stage_cost.activation_bytes(size, np.where(forward, chunk, 0))
        return np.where(forward, sent / speed + hardware.hop_latency_s, np.inf)

    def _make_seconds(self, die: Die, kinds: tuple[tuple[str, int], ...], size: int, shape: Shape, head: bool) -> Table:
        grid, layers = self.grid(shape), self._example[kinds]
        p, e = np.triu_indices(grid.quanta + 1, 1)
        table = np.full((grid.quanta + 1, grid.quanta + 1), np.inf)
        table[p, e] = self.instance.stage_cost.stage_seconds(
            die, *layers, size, grid.tokens[e] - grid.tokens[p], grid.cached + grid.tokens[p], outside=np.inf
        )
        if head:
            table[:-1, -1] += self.instance.stage_cost.head_seconds(die, size)
        return table


def fastest_die(instance: Instance) -> Die:
    """A die at least as fast and as large as every enabled one, rate by rate; for bounds over all placements."""
    return instance.hardware.best_die
