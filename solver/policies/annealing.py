"""Simulated annealing over anything that has a value and neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from solver.limits import Deadline

State = TypeVar("State")


@dataclass(frozen=True)
class Schedule:
    """``temperature`` in the unit of the value; it is multiplied by ``cooling`` after each iteration."""

    iterations: int
    temperature: float
    cooling: float


def anneal(
    start: State,
    neighbour: Callable[[State], State | None],
    value: Callable[[State], float],
    schedule: Schedule,
    rng: np.random.Generator,
    deadline: Deadline,
) -> State:
    """Best state met: better neighbours are accepted, worse ones with probability exp(-difference / temperature)."""
    current = best = start
    temperature = schedule.temperature
    for _ in range(schedule.iterations):
        if deadline.over:
            break
        candidate = neighbour(current)
        if candidate is not None:
            difference = value(candidate) - value(current)
            if difference <= 0 or (temperature > 0 and rng.random() < math.exp(-difference / temperature)):
                current = candidate
                if value(current) < value(best):
                    best = current
        temperature *= schedule.cooling
    return best
