"""Models for the engine tests: easy ones, and one that neither engine proves in any reasonable time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pulp
from ortools.sat.python import cp_model


def market_split(rows: int = 6, columns: int = 50) -> tuple[list[list[int]], list[int]]:
    """Rows to be split in halves exactly: easy to come close to, hopeless to prove (Cornuejols and Dawande 1998)."""
    weights = np.random.default_rng(0).integers(0, 100, (rows, columns))
    return weights.tolist(), (weights.sum(axis=1) // 2).tolist()


def hard_cpsat(constant: int = 0) -> cp_model.CpModel:
    """Minimise the total distance from an exact split; the empty choice is the hint."""
    weights, targets = market_split()
    model = cp_model.CpModel()
    chosen = [model.new_bool_var(f"chosen[{column}]") for column in range(len(weights[0]))]
    distances = []
    for number, (row, target) in enumerate(zip(weights, targets, strict=True)):
        distance = model.new_int_var(0, sum(row), f"distance[{number}]")
        total = sum(weight * literal for weight, literal in zip(row, chosen, strict=True))
        model.add(distance >= total - target)
        model.add(distance >= target - total)
        model.add_hint(distance, target)
        distances.append(distance)
    for literal in chosen:
        model.add_hint(literal, 0)
    model.minimize(sum(distances) + constant)
    return model


def hard_milp(constant: int = 0) -> pulp.LpProblem:
    """The same for HiGHS, the empty choice as warm start."""
    weights, targets = market_split()
    problem = pulp.LpProblem("split", pulp.LpMinimize)
    chosen = [problem.add_variable(f"chosen_{column}", 0, 1, cat=pulp.LpInteger) for column in range(len(weights[0]))]
    distances = []
    for number, (row, target) in enumerate(zip(weights, targets, strict=True)):
        distance = problem.add_variable(f"distance_{number}", 0, sum(row))
        total = pulp.lpSum(weight * variable for weight, variable in zip(row, chosen, strict=True))
        problem += distance >= total - target
        problem += distance >= target - total
        distance.setInitialValue(target)
        distances.append(distance)
    for variable in chosen:
        variable.setInitialValue(0)
    problem += pulp.lpSum(distances) + constant
    return problem


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """Ctrl-C for this process a little later."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
