"""What a stage needs of its die whatever a plan decides: necessary conditions that hold for every placement and timing.

All needs grow with the batch, so they are those of waves of one request. They also grow with the largest chunk, and how
small that can be follows from ``chunk_count`` and ``chunk_quantum``: a need is stated for each set of these two rules
that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from instances.instance import Instance
from instances.parameters import kv_held_bytes, layer_weight_bytes
from instances.workload import Shape

Amounts = npt.NDArray[np.float64]
Need = Callable[[int, int], float]
"""Bytes that a stage of the layers ``start .. stop-1`` needs."""

MOST_SHAPES = 32
"""Request shapes that are looked at: of more, those with the most tokens and the largest chunks."""
ROUNDING = 1 + 1e-12
"""Needs are sums of floats: one that fits exactly must not be lost to their rounding."""


def least_largest_chunk(uncached: int, quantum: int, most_chunks: int) -> int:
    """Tokens of the largest chunk where it is as small as can be, with whole quanta in all chunks but the last.

    With a cap c on chunks, each but the last covers up to c // quantum quanta, and the last one, which ends with the
    short quantum, one more than fit beside that.
    """
    quanta = -(-uncached // quantum)
    short = uncached - (quanta - 1) * quantum

    def covers(cap: int) -> bool:
        last = (cap - short) // quantum + 1 if cap >= short else 0
        return last > 0 and (most_chunks - 1) * (cap // quantum) + last >= quanta

    low, high = 1, uncached
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if covers(middle) else (middle + 1, high)
    return low


@dataclass(frozen=True)
class Chunks:
    """Which of the two rules on chunks are kept."""

    count: bool
    quantum: bool

    def largest(self, instance: Instance, uncached: int) -> int:
        """Tokens of the largest chunk where it is as small as can be."""
        pipeline = instance.pipeline
        return least_largest_chunk(
            uncached, pipeline.chunk_quantum if self.quantum else 1, pipeline.max_chunks if self.count else uncached
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that are kept."""
        return (*(["chunk_count"] if self.count else []), *(["chunk_quantum"] if self.quantum else []))


EVERY_CHUNKS = tuple(Chunks(count, quantum) for count in (True, False) for quantum in (True, False))


class StageNeeds:
    """Needs of the stages of an instance under given rules on chunks.

    Parameters
    ----------
    chunks
        Which rules on chunks are kept; without them chunks are as small as a token.
    """

    def __init__(self, instance: Instance, chunks: Chunks) -> None:
        self.instance, self.chunks = instance, chunks
        self.stages, self.layers = instance.pipeline.stages, instance.model.layer_count
        self.chunk_of = {shape: chunks.largest(instance, shape[0] - shape[1]) for shape in _shapes(instance)}
        self.largest_chunk = max(chunks.largest(instance, count) for count in instance.workload.uncached_counts)
        cost, kinds = instance.stage_cost, instance.model.layer_kinds
        example = {kind: kinds.index(kind) for kind in set(kinds)}
        width = {kind: cost.workspace_bytes(at, at + 1, 1, self.largest_chunk) for kind, at in example.items()}
        weight = {kind: layer_weight_bytes(instance.model, kind) for kind in example}
        self._workspace = np.array([width[kind] for kind in kinds])
        self._weights = _summed(np.array([[weight[kind] for kind in kinds]]))[0]
        bare = cost.weight_bytes(0, 1, embedding=False, head=False)
        self._embedding = cost.weight_bytes(0, 1, embedding=True, head=False) - bare
        self._head = cost.weight_bytes(0, 1, embedding=False, head=True) - bare
        self._both = cost.weight_bytes(0, 1, embedding=True, head=True) - bare

    def weight_bytes(self, stage: int, start: int, stop: int) -> float:
        """Weights of a stage; the first has the embedding, the last one the head."""
        first, last = stage == 0, stage == self.stages - 1
        tables = self._both if first and last else self._embedding * first + self._head * last
        return float(self._weights[stop] - self._weights[start] + tables)

    def workspace_bytes(self, start: int, stop: int) -> float:
        """Workspace of the largest chunk."""
        return float(self._workspace[start:stop].max())

    def at_rest(self, stage: int, start: int, stop: int) -> float:
        """``capacity_at_rest``: weights and workspace."""
        return self.weight_bytes(stage, start, stop) + self.workspace_bytes(start, stop)

    def admitted(self, stage: int, start: int, stop: int) -> float:
        """``memory_admission``: what lies on the stage's own die when it starts its largest chunk, or its last one.

        Spilled are earlier chunks of full-attention and MLA layers; the chunk's own KV is at home, and so are the
        cached prefix and what windows and states hold.
        """
        return self.at_rest(stage, start, stop) + self.home_kv_bytes(start, stop)

    def home_kv_bytes(self, start: int, stop: int) -> float:
        """KV of one request that is on the stage's own die at one of these moments."""
        return float((self._home[:, stop] - self._home[:, start]).max(initial=0.0))

    def everywhere(self, start: int, stop: int) -> float:
        """``memory_admission``: what lies on all dies in use, and at the stage's host, when it starts its last chunk.

        All KV of a request at this stage, all weights, and the workspace of every stage.
        """
        whole = self._both if self.stages == 1 else self._embedding + self._head
        spare = (self.stages - 1) * float(self._workspace.min()) + self.workspace_bytes(start, stop)
        return float(self._weights[-1] + whole) + spare + self.wave_kv_bytes(start, stop)

    def wave_kv_bytes(self, start: int, stop: int) -> float:
        """KV of one request at a stage, once its last chunk has started; the largest over request shapes."""
        return float((self._wave[:, stop] - self._wave[:, start]).max(initial=0.0))

    @cached_property
    def _home(self) -> Amounts:
        """KV that is at home for certain, summed over the layers before each: of the largest chunk, of the last one."""
        rows = []
        for shape, chunk in self.chunk_of.items():
            last = self._last_chunk(shape)
            rows.append(self._by_layer(shape[1] + chunk, chunk))
            rows.append(np.where(self._grows, self._by_layer(shape[1] + last, last), self._by_layer(shape[0], last)))
        return _summed(np.array(rows))

    @cached_property
    def _wave(self) -> Amounts:
        return _summed(np.array([self._by_layer(shape[0], self._last_chunk(shape)) for shape in self.chunk_of]))

    @cached_property
    def _grows(self) -> npt.NDArray[np.bool_]:
        cost = self.instance.stage_cost
        kinds = self.instance.model.layer_kinds
        grows = {
            kind: cost.spillable_bytes_per_token(kinds.index(kind), kinds.index(kind) + 1) > 0 for kind in set(kinds)
        }
        return np.array([grows[kind] for kind in kinds])

    def _last_chunk(self, shape: Shape) -> int:
        """Fewest tokens of a last chunk: the short quantum, or one where quanta do not matter."""
        quantum = self.instance.pipeline.chunk_quantum if self.chunks.quantum else 1
        return (shape[0] - shape[1] - 1) % quantum + 1

    def _by_layer(self, tokens: int, chunk: int) -> Amounts:
        model = self.instance.model
        held = {kind: float(kv_held_bytes(model, kind, tokens, chunk)) for kind in set(model.layer_kinds)}
        return np.array([held[kind] for kind in model.layer_kinds])


def smallest_too_large(layers: int, need: Need, room: float) -> Iterator[tuple[int, int]]:
    """First and last layer of the smallest parts that need more than there is room for; needs grow with parts."""
    last = 0
    for first in range(layers):
        last = max(last, first)
        while last < layers and need(first, last + 1) <= room * ROUNDING:
            last += 1
        if last == layers:
            return
        yield first, last


def _summed(by_layer: Amounts) -> Amounts:
    return np.concatenate([np.zeros((len(by_layer), 1)), np.cumsum(by_layer, axis=1)], axis=1)


def _shapes(instance: Instance) -> list[Shape]:
    shapes = instance.workload.shapes
    if len(shapes) <= MOST_SHAPES:
        return shapes
    half = MOST_SHAPES // 2
    longest = sorted(shapes, reverse=True)[:half]
    most_cached = sorted(shapes, key=lambda shape: (shape[1], shape[0]), reverse=True)[:half]
    return sorted({*longest, *most_cached})
