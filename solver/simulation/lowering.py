"""From an instance and plans to the programs that the engine runs (spec section 3, ``Program``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from math import lcm

import numpy as np

from instances.instance import Instance
from instances.plan import Plan
from instances.workload import Shape
from solver.simulation.amounts import Amounts, amounts_of
from solver.simulation.chunk_numbers import ChunkNumbers
from solver.simulation.form import Form, Outline, Skeleton, build_form, build_skeleton, network_of, outline_of
from solver.simulation.out_of_range import beyond_clock
from solver.simulation.program import Program
from solver.simulation.range_check import Totals, too_large
from solver.simulation.spill_pattern import Row

MOST_NUMBERS = 1 << 23
"""Numbers that one table of amounts has at most: 64 MB."""
MOST_KEPT_TASKS = 1 << 18
"""Tasks beyond which only the last form is kept: it takes some hundred megabytes."""


class Lowering:
    """Lowers plans of one instance; keeps what plans of one form share."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.units_per_byte = _units_per_byte(instance)
        self.requests = instance.workload.all_requests()
        self._numbers = ChunkNumbers(instance, self.units_per_byte)
        self._shapes = instance.workload.shapes
        self._network = lru_cache(maxsize=8)(partial(network_of, instance))
        self._skeleton = lru_cache(maxsize=16)(self._build_skeleton)
        self._form = lru_cache(maxsize=8)(self._build_form)
        self._largest: tuple[tuple[Outline, tuple[Row, ...]], Form] | None = None

    def program(self, plan: Plan) -> Program:
        """Lower a plan that the static checker accepts.

        Parameters
        ----------
        plan
            A plan whose violations, if any, concern memory alone.
        """
        return self._amounts(self.form(plan), [plan]).program(0)

    def form(self, plan: Plan) -> Form:
        """The form of a plan, that of all plans that differ from it in chunk sizes and spilled tokens alone."""
        rows = tuple((row.stage, row.chunk, row.creditor, row.shape) for row in plan.spill if row.tokens)
        key = outline_of(plan, self._shapes), rows
        if self._largest is not None and self._largest[0] == key:
            return self._largest[1]
        form = self._form(*key)
        if form.program.tasks > MOST_KEPT_TASKS:
            self._form.cache_clear()
            self._skeleton.cache_clear()
            self._largest = key, form
        return form

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
                yield some, self._amounts(form, [plans[number] for number in some])

    def _amounts(self, form: Form, plans: Sequence[Plan]) -> Amounts:
        """Numbers of plans whose sums fit the event loop's integers."""
        found = amounts_of(self._numbers, form, plans)
        for row in () if form.always_fits else np.flatnonzero(found.fits).tolist():
            if excess := too_large(found.program(row)):
                raise beyond_clock(self.instance, excess)
        return found

    def _build_skeleton(self, outline: Outline) -> Skeleton:
        network = self._network(tuple(dict.fromkeys(outline.placement)))
        return build_skeleton(self.instance, self.requests, outline, self.units_per_byte, network)

    def _build_form(self, outline: Outline, rows: tuple[Row, ...]) -> Form:
        form = build_form(self.instance, self._skeleton(outline), rows)
        most = most_of(form, self._numbers, self.units_per_byte)
        return replace(form, always_fits=too_large(form.program, most) is None)


def most_of(form: Form, numbers: ChunkNumbers, units_per_byte: int) -> Totals:
    """Bounds on the sums over any program of a form whose weights and workspace fit."""
    skeleton, stages = form.skeleton, form.program.stages
    tasks: Counter[tuple[Shape, int]] = Counter()
    for wave, chunks in zip(skeleton.waves, skeleton.chunks_of_wave, strict=True):
        tasks[wave.shape, wave.size] += chunks * stages
    duration_ps = sent = 0.0
    taken = float(skeleton.layout.hbm_bytes.sum()) * units_per_byte
    for (shape, size), count in tasks.items():
        longest_ps, held, each = numbers.most(skeleton.layout.kinds, shape, size)
        duration_ps, sent, taken = duration_ps + count * longest_ps, sent + count * each, taken + count * held
    longest = max(shape[0] - shape[1] for shape, _ in tasks)
    return Totals(duration_ps, sent, taken, longest * form.spill.bytes_per_token * units_per_byte)


def _units_per_byte(instance: Instance) -> int:
    """Smallest unit in which one element of KV and of activations is a whole number, so that memory adds exactly."""
    widths = (instance.model.kv_bytes, instance.model.activation_bytes)
    return lcm(*(Fraction(width).limit_denominator(4096).denominator for width in widths))
