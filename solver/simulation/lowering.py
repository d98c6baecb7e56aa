"""From an instance and plans to the programs that the engine runs (spec section 3, ``Program``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import lcm

from instances.instance import Instance
from instances.plan import Plan
from solver.simulation.amounts import Amounts, amounts_of
from solver.simulation.chunk_numbers import ChunkNumbers
from solver.simulation.form import Form, Outline, Skeleton, build_form, build_skeleton, outline_of
from solver.simulation.program import Program
from solver.simulation.spill_pattern import Row

MOST_NUMBERS = 1 << 23
"""Numbers that one table of amounts has at most: 64 MB."""


class Lowering:
    """Lowers plans of one instance; keeps what plans of one form share."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.units_per_byte = _units_per_byte(instance)
        self.requests = instance.workload.all_requests()
        self._numbers = ChunkNumbers(instance, self.units_per_byte)
        self._shapes = instance.workload.shapes
        self._skeleton = lru_cache(maxsize=16)(self._build_skeleton)
        self._form = lru_cache(maxsize=8)(self._build_form)

    def program(self, plan: Plan) -> Program:
        """Lower a plan that the static checker accepts.

        Parameters
        ----------
        plan
            A plan whose violations, if any, concern memory alone.
        """
        return amounts_of(self._numbers, self.form(plan), [plan]).program(0)

    def form(self, plan: Plan) -> Form:
        """The form of a plan, that of all plans that differ from it in chunk sizes and spilled tokens alone."""
        rows = tuple((row.stage, row.chunk, row.creditor, row.shape) for row in plan.spill if row.tokens)
        return self._form(outline_of(plan, self._shapes), rows)

    def amounts(self, plans: Sequence[Plan]) -> Iterator[tuple[list[int], Amounts]]:
        """Lower plans together where they have the same form.

        Yields
        ------
        list of int, Amounts
            Which of the plans, and their numbers in this order; every plan is in one of them.
        """
        alike: dict[Form, list[int]] = {}
        for number, plan in enumerate(plans):
            alike.setdefault(self.form(plan), []).append(number)
        for form, numbers in alike.items():
            width = 3 * form.program.tasks + len(form.program.write_units) + 2 * form.program.dies
            step = max(1, MOST_NUMBERS // width)
            for first in range(0, len(numbers), step):
                some = numbers[first : first + step]
                yield some, amounts_of(self._numbers, form, [plans[number] for number in some])

    def _build_skeleton(self, outline: Outline) -> Skeleton:
        return build_skeleton(self.instance, self.requests, outline, self.units_per_byte)

    def _build_form(self, outline: Outline, rows: tuple[Row, ...]) -> Form:
        return build_form(self.instance, self._skeleton(outline), rows)


def _units_per_byte(instance: Instance) -> int:
    """Smallest unit in which one element of KV and of activations is a whole number, so that memory adds exactly."""
    widths = (instance.model.kv_bytes, instance.model.activation_bytes)
    return lcm(*(Fraction(width).limit_denominator(4096).denominator for width in widths))
