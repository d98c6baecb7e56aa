"""From an instance to the problem of its longest request, of one batch.

It is the joint problem (``joint.variables``) with chunks that may end the request at any of its positions. Requests
are whole numbers of quanta behind their cached prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from formulations.joint.choices import Choices
from formulations.joint.problem import JointProblem
from formulations.joint.variables import stated
from instances.instance import Instance

Latency = Callable[[int], float]
"""Seconds that the objective of time may take for requests of so many tokens."""


@dataclass(frozen=True)
class CapacityProblem:
    """One batch of an instance whose requests may be of any length up to a limit.

    Attributes
    ----------
    joint
        The problem for requests of the largest length.
    budget
        Most ticks of the objective of time, by position at which requests end; None: no limit.
    """

    joint: JointProblem
    budget: Mapping[int, int] | None

    def tokens(self, position: int) -> int:
        """Length of a request that ends at a position."""
        return self.joint.shapes[0][1] + self.joint.positions[0][position]


def capacity_problem(
    instance: Instance,
    batch: int,
    most_quanta: int,
    latency_s: Latency | None = None,
    choices: Choices | None = None,
) -> CapacityProblem:
    """The problem of requests of 1 to ``most_quanta`` quanta behind the cached prefix.

    Parameters
    ----------
    latency_s
        The budget; default none.
    """
    cached, quantum = instance.workload.cached_tokens, instance.pipeline.chunk_quantum
    longest = instance.with_tokens(cached + most_quanta * quantum)
    positions = range(1, most_quanta + 1)
    joint = stated(longest, batch, ends=positions, choices=choices)
    budget = None
    if latency_s is not None:
        budget = {position: joint.ticks(latency_s(cached + position * quantum)) for position in positions}
    return CapacityProblem(joint, budget)
