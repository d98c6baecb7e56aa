"""The layer split on plain arrays: which consecutive layers each stage holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from instances.errors import InputError

Amounts = npt.NDArray[np.float64]
Memory = Literal["limit", "even", "excess"]


class Parts(NamedTuple):
    """Every admissible part of a stage that starts at a given layer, one entry a part."""

    stops: npt.NDArray[np.int64]
    seconds: Amounts
    bytes_held: Amounts


@dataclass(frozen=True)
class LayerProblem:
    """L layers in a row, cut into N stages of at least one layer.

    What is asked for: first the slowest stage as fast as can be; second, among those splits, the memory.

    Attributes
    ----------
    layer_s
        (N, L): seconds of each layer, were it on that stage.
    extra_s
        (N,): seconds a stage adds: overheads; on the last one the head and extra prediction layers.
    layer_bytes
        (L,): weights of a layer and the KV it holds.
    workspace_bytes
        (L,): one buffer a stage, as large as its neediest layer asks for.
    extra_bytes
        (N,): what a stage holds besides: the embedding on the first one, the head and extra layers on the last one.
    capacity_bytes
        (N,): memory of the stage's die; 0 where none is stated.
    memory
        What is asked of it. "limit": a stage must fit in its memory (``capacity_at_rest``), and the fullest stage, max
        over stages of (bytes - capacity), is to be as empty as can be. "even": the same without the rule. "excess": no
        rule, and the bytes above capacity, summed over the stages, are to be few.
    forbidden_cuts
        Layers that must not start a stage.
    needed
        (L,): every stage holds at least one of these layers (``attention_in_stage``).
    """

    layer_s: Amounts
    extra_s: Amounts
    layer_bytes: Amounts
    workspace_bytes: Amounts
    extra_bytes: Amounts
    capacity_bytes: Amounts
    memory: Memory
    forbidden_cuts: frozenset[int]
    needed: npt.NDArray[np.bool_]

    @property
    def stages(self) -> int:
        """N."""
        return len(self.layer_s)

    @property
    def layers(self) -> int:
        """L."""
        return len(self.layer_bytes)

    def parts(self, stage: int, start: int, most_s: float = np.inf) -> Parts:
        """Parts from layer ``start`` on that keep every rule and take at most ``most_s``; later stages get a layer."""
        behind = self.stages - 1 - stage
        furthest = self.layers - behind if behind else self.layers
        stops = np.arange(start + 1 if behind else self.layers, furthest + 1)
        seconds = self._seconds_before[stage][stops] - self._seconds_before[stage][start] + self.extra_s[stage]
        # Stops are in order and seconds are not negative, so what is too slow is at the end.
        within = slice(0, int(np.searchsorted(seconds, most_s, side="right")))
        stops, seconds = stops[within], seconds[within]
        if not stops.size:
            return Parts(stops, seconds, seconds)
        largest = np.maximum.accumulate(self.workspace_bytes[start : stops[-1]])[stops - start - 1]
        held = self._bytes_before[stops] - self._bytes_before[start] + largest + self.extra_bytes[stage]
        kept = self._may_stop[stops] & (self._needed_before[stops] > self._needed_before[start])
        if self.memory == "limit":
            kept &= held <= self.capacity_bytes[stage]
        return Parts(stops[kept], seconds[kept], held[kept])

    def part_seconds(self, stage: int, start: int, stop: int) -> float:
        """Seconds of a stage that holds the layers start..stop-1."""
        return float(self._seconds_before[stage][stop] - self._seconds_before[stage][start] + self.extra_s[stage])

    def part_bytes(self, stage: int, start: int, stop: int) -> float:
        """Bytes of a stage that holds the layers start..stop-1."""
        workspace = self.workspace_bytes[start:stop].max(initial=0.0)
        return float(self._bytes_before[stop] - self._bytes_before[start] + workspace + self.extra_bytes[stage])

    def stage_seconds(self, split: Sequence[int]) -> list[float]:
        """Seconds of each stage."""
        return [self.part_seconds(stage, *part) for stage, part in enumerate(ranges(split))]

    def stage_bytes(self, split: Sequence[int]) -> list[float]:
        """Bytes of each stage."""
        return [self.part_bytes(stage, *part) for stage, part in enumerate(ranges(split))]

    def slowest_s(self, split: Sequence[int]) -> float:
        """The first objective: seconds of the slowest stage."""
        return max(self.stage_seconds(split))

    def memory_bytes(self, split: Sequence[int]) -> float:
        """The second objective: the fullest stage against its capacity, or the sum of what is above capacities."""
        over = np.array(self.stage_bytes(split)) - self.capacity_bytes
        return float(np.maximum(over, 0.0).sum() if self.memory == "excess" else over.max())

    def violations(self, split: Sequence[int]) -> list[str]:
        """What is wrong with a split, under the names of the rules; empty if nothing is."""
        if len(split) != self.stages or min(split, default=0) < 1:
            return [f"stage_nonempty: {self.stages} stages of at least one layer are needed"]
        if sum(split) != self.layers:
            return [f"layers_cover: the stages hold {sum(split)} of {self.layers} layers"]
        wrong = []
        for stage, (start, stop) in enumerate(ranges(split)):
            if start in self.forbidden_cuts:
                wrong.append(f"forbidden_cuts: stage {stage} starts at layer {start}")
            if not self.needed[start:stop].any():
                wrong.append(f"attention_in_stage: stage {stage} has none of the layers that every stage needs")
        for stage, held in enumerate(self.stage_bytes(split)):
            over = held - float(self.capacity_bytes[stage])
            if self.memory == "limit" and over > 0:
                wrong.append(f"capacity_at_rest: stage {stage} is {over:.6g} bytes too full")
        return wrong

    @cached_property
    def _seconds_before(self) -> Amounts:
        return np.concatenate([np.zeros((self.stages, 1)), np.cumsum(self.layer_s, axis=1)], axis=1)

    @cached_property
    def _bytes_before(self) -> Amounts:
        return np.concatenate([[0.0], np.cumsum(self.layer_bytes)])

    @cached_property
    def _needed_before(self) -> npt.NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.needed)]).astype(np.int64)

    @cached_property
    def _may_stop(self) -> npt.NDArray[np.bool_]:
        """Whether a stage may stop before each layer, and behind the last one."""
        return np.array([stop not in self.forbidden_cuts for stop in range(self.layers + 1)])


def ranges(split: Sequence[int]) -> list[tuple[int, int]]:
    """First layer of each stage, and the one behind its last."""
    return [(stop - count, stop) for stop, count in zip(accumulate(split), split, strict=True)]


def stated(
    layer_s: npt.ArrayLike,
    stages: int,
    *,
    extra_s: npt.ArrayLike = 0.0,
    weight_bytes: npt.ArrayLike = 0.0,
    kv_bytes_per_token: npt.ArrayLike = 0.0,
    held_tokens: npt.ArrayLike = 0.0,
    workspace_bytes: npt.ArrayLike = 0.0,
    extra_bytes: npt.ArrayLike = 0.0,
    capacity_bytes: npt.ArrayLike | None = None,
    memory: Memory | None = None,
    forbidden_cuts: Iterable[int] = (),
    needed: Sequence[bool] | None = None,
) -> LayerProblem:
    """Check the parts of a problem and bring them to full shape; see `LayerProblem`.

    Parameters
    ----------
    layer_s
        (L,), or (N, L) where dies differ.
    extra_s, extra_bytes, capacity_bytes
        One number, or one a stage.
    weight_bytes, kv_bytes_per_token, held_tokens, workspace_bytes
        One number, or one a layer; ``held_tokens`` counts the tokens of all sequences.
    memory
        Default: "limit" where there is a capacity, "even" where there is none.

    Raises
    ------
    InputError
        For shapes that do not fit, numbers that are negative or not finite, more stages than layers, and cuts outside
        the layers.
    """
    times = np.asarray(layer_s, dtype=np.float64)
    if times.ndim not in (1, 2) or not times.shape[-1]:
        raise InputError("layer_s", times.shape, "an array (layers,) or (stages, layers)")
    layers = times.shape[-1]
    if not 1 <= stages <= layers:
        raise InputError("stages", stages, f"between 1 and the number of layers, {layers}")
    cuts = frozenset(int(cut) for cut in forbidden_cuts)
    if cuts and not 1 <= min(cuts) <= max(cuts) < layers:
        raise InputError("forbidden_cuts", sorted(cuts), f"layers between 1 and {layers - 1}")
    if needed is not None and len(needed) != layers:
        raise InputError("needed", len(needed), f"one entry for each of the {layers} layers")
    kv_bytes = _full("kv_bytes_per_token", kv_bytes_per_token, (layers,)) * _full("held_tokens", held_tokens, (layers,))
    capacity = 0.0 if capacity_bytes is None else capacity_bytes
    return LayerProblem(
        layer_s=_full("layer_s", times, (stages, layers)),
        extra_s=_full("extra_s", extra_s, (stages,)),
        layer_bytes=_full("weight_bytes", weight_bytes, (layers,)) + kv_bytes,
        workspace_bytes=_full("workspace_bytes", workspace_bytes, (layers,)),
        extra_bytes=_full("extra_bytes", extra_bytes, (stages,)),
        capacity_bytes=_full("capacity_bytes", capacity, (stages,)),
        memory=memory or ("even" if capacity_bytes is None else "limit"),
        forbidden_cuts=cuts,
        needed=np.ones(layers, dtype=np.bool_) if needed is None else np.array(needed, dtype=np.bool_),
    )


def _full(field: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> Amounts:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), shape[-1:], shape):
        raise InputError(field, array.shape, f"one number, or an array of shape {shape}")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise InputError(field, array.tolist(), "finite numbers >= 0")
    return np.broadcast_to(array, shape).copy()
