"""What the two layer models share: names, whole ticks, and the rules as implications.

``before[s,l]``: layer l lies on a stage before s, for s = 0..N (none before 0, all before N); so layer l lies on stage
s where before[s+1,l] - before[s,l] is 1. Every rule on parts says "if layer l lies before s, then layer k lies before
t", which needs no large numbers and costs no rounding: memory, which grows with a stage, is one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.layers.problem import LayerProblem

LARGEST_TICKS = 1_000_000
"""Whole units in the largest number, where numbers are not small and whole already."""

Ticks = npt.NDArray[np.int64]
At = tuple[int, int]
"""(s, l) of a variable before[s,l]."""


@dataclass(frozen=True)
class LayerTicks:
    """Objectives in whole numbers.

    Attributes
    ----------
    seconds, extra_seconds
        (N, L) and (N,) in ticks of ``tick_s``, rounded down: a bound in ticks is one in seconds.
    held, workspace, extra_held, capacity
        (L,), (L,), (N,), (N,) in ticks of ``tick_bytes``, rounded down, the capacity up.
    """

    seconds: Ticks
    extra_seconds: Ticks
    tick_s: float
    held: Ticks
    workspace: Ticks
    extra_held: Ticks
    capacity: Ticks
    tick_bytes: float

    @property
    def most_seconds(self) -> int:
        """Upper bound of the slowest stage."""
        return int((self.seconds.sum(axis=1) + self.extra_seconds).max())

    @property
    def most_held(self) -> int:
        """Upper bound of what a stage holds."""
        return int(self.held.sum() + self.workspace.max() + self.extra_held.max())


def in_ticks(problem: LayerProblem) -> LayerTicks:
    """Times and bytes as whole numbers."""
    tick_s = _tick(problem.layer_s, problem.extra_s)
    memory = (problem.layer_bytes, problem.workspace_bytes, problem.extra_bytes)
    tick_bytes = _tick(*memory, problem.capacity_bytes)
    held, workspace, extra_held = (np.floor(amounts / tick_bytes).astype(np.int64) for amounts in memory)
    return LayerTicks(
        seconds=np.floor(problem.layer_s / tick_s).astype(np.int64),
        extra_seconds=np.floor(problem.extra_s / tick_s).astype(np.int64),
        tick_s=tick_s,
        held=held,
        workspace=workspace,
        extra_held=extra_held,
        capacity=np.ceil(problem.capacity_bytes / tick_bytes).astype(np.int64),
        tick_bytes=tick_bytes,
    )


def before_name(stage: int, layer: int) -> str:
    """Name of the variable "the layer lies on a stage before"."""
    return f"before[s{stage},l{layer}]"


def fixed(problem: LayerProblem, at: At) -> int | None:
    """Value of a variable that is none: no layer lies before stage 0, and every one before N."""
    return {0: 0, problem.stages: 1}.get(at[0])


def layers_cover(problem: LayerProblem) -> Iterator[tuple[At, At]]:
    """Layers lie in order, and what lies before a stage lies before the next."""
    for s in range(problem.stages + 1):
        yield from (((s, layer + 1), (s, layer)) for layer in range(problem.layers - 1))
    for s in range(problem.stages):
        yield from (((s, layer), (s + 1, layer)) for layer in range(problem.layers))


def stage_nonempty(problem: LayerProblem) -> Iterator[tuple[At, At]]:
    """Every stage has a layer."""
    return _one_a_stage(problem, np.ones(problem.layers, dtype=np.bool_))


def attention_in_stage(problem: LayerProblem) -> Iterator[tuple[At, At]]:
    """Every stage has one of the needed layers."""
    return iter(()) if problem.needed.all() else _one_a_stage(problem, problem.needed)


def forbidden_cuts(problem: LayerProblem) -> Iterator[tuple[At, At]]:
    """Where the layer in front of a forbidden one lies before a stage, so does it."""
    for cut in sorted(problem.forbidden_cuts):
        yield from (((s, cut - 1), (s, cut)) for s in range(1, problem.stages))


def capacity_at_rest(problem: LayerProblem) -> Iterator[tuple[At, At]]:
    """No stage holds both ends of a part too large for it: the last one before s + 1 has the first one before s."""
    if problem.memory != "limit":
        return
    for s in range(problem.stages):
        for first, last in _too_large(problem, s):
            yield (s + 1, last), (s, first)


def _one_a_stage(problem: LayerProblem, needed: npt.NDArray[np.bool_]) -> Iterator[tuple[At, At]]:
    """A stage that starts behind layer l stops behind the first needed layer after l, which must exist."""
    following: list[int | None] = [None]
    for layer in reversed(range(problem.layers)):
        following.append(layer if needed[layer] else following[-1])
    following.reverse()
    always, never = (problem.stages, 0), (0, 0)
    for s in range(problem.stages):
        for start, first in enumerate(following):
            starts_there = always if start == 0 else (s, start - 1)
            yield starts_there, never if first is None else (s + 1, first)


def _too_large(problem: LayerProblem, stage: int) -> Iterator[tuple[int, int]]:
    """First and last layer of the smallest parts that do not fit on a stage."""
    last = -1
    for first in range(problem.layers):
        last = max(last, first)
        while last < problem.layers and problem.part_bytes(stage, first, last + 1) <= problem.capacity_bytes[stage]:
            last += 1
        if last == problem.layers:
            return
        yield first, last


def _tick(*amounts: npt.NDArray[np.float64]) -> float:
    largest = max(float(amount.max(initial=0.0)) for amount in amounts)
    whole = all((amount == np.floor(amount)).all() for amount in amounts)
    return 1.0 if (whole and largest <= LARGEST_TICKS) or largest == 0 else largest / LARGEST_TICKS
