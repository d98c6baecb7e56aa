"""Stages on their dies: what they hold for good, and which of them are alike (spec section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from instances.hardware import Die
from instances.instance import Instance

Position = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Layout:
    """S stages on D dies. Stages of one kind (layers, die, last or not) share their times and memory.

    Attributes
    ----------
    dies
        The dies in use, in the order of their first stages. Length D.
    die_of_stage
        Index of each stage's die. Shape [S].
    kinds
        (first layer, layer behind the last, die, whether it is the last stage) of one stage of each kind.
    kind_of_stage
        Index of each stage's kind. Shape [S].
    weights_bytes, hbm_bytes
        Weights of all stages of a die, and its memory. Shape [D].
    """

    dies: tuple[Position, ...]
    die_of_stage: npt.NDArray[np.int64]
    kinds: tuple[tuple[int, int, Die, bool], ...]
    kind_of_stage: npt.NDArray[np.int64]
    weights_bytes: npt.NDArray[np.float64]
    hbm_bytes: npt.NDArray[np.float64]


def build_layout(instance: Instance, layers: tuple[int, ...], placement: tuple[Position, ...]) -> Layout:
    """The layout of a plan; dies with several stages hold the weights of all, tied tables once."""
    hardware, model, cost = instance.hardware, instance.model, instance.stage_cost
    dies = tuple(dict.fromkeys(placement))
    index = {die: number for number, die in enumerate(dies)}
    seen: dict[tuple[object, ...], int] = {}
    kinds: list[tuple[int, int, Die, bool]] = []
    kind_of_stage: list[int] = []
    parts: list[list[tuple[int, int]]] = [[] for _ in dies]
    for stage, (stop, count) in enumerate(zip(accumulate(layers), layers, strict=True)):
        start, die, is_last = stop - count, hardware.die_at(placement[stage]), stage == len(layers) - 1
        key = (tuple(sorted(model.kind_counts(start, stop).items())), die, is_last)
        if key not in seen:
            seen[key] = len(kinds)
            kinds.append((start, stop, die, is_last))
        kind_of_stage.append(seen[key])
        parts[index[placement[stage]]].append((start, stop))
    weights = [
        cost.die_weight_bytes(held, embedding=die == placement[0], head=die == placement[-1])
        for die, held in zip(dies, parts, strict=True)
    ]
    return Layout(
        dies=dies,
        die_of_stage=np.array([index[die] for die in placement], dtype=np.int64),
        kinds=tuple(kinds),
        kind_of_stage=np.array(kind_of_stage, dtype=np.int64),
        weights_bytes=np.array(weights),
        hbm_bytes=np.array([hardware.die_at(die).hbm_bytes for die in dies], dtype=np.float64),
    )
