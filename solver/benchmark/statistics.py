"""Statistics over records: losses, profiles, times to proof. Runs without a plan are counted, never averaged."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from formulations.interface import relative_gap
from solver.api import OPTIMAL_GAP
from solver.benchmark.best_known import SAME, BestKnown
from solver.benchmark.placements import OBJECTIVES
from solver.benchmark.record import Record
from solver.benchmark.task import label_of

RATIOS = (1.0001, 1.001, 1.01, 1.05, 1.1, 1.5, 2.0, 5.0)
"""Where performance profiles are tabulated."""
PLAIN = "chunked"
"""The schedule that best-known values are of."""
SHIFT_S = 1.0
"""Shift of geometric means of run times: differences far below a second count for nothing."""


@dataclass(frozen=True)
class Reference:
    """What an instance's values are held against: the least value and the largest bound known, None if unknown."""

    value: float | None
    bound: float | None
    trivial_bound: float | None


@dataclass(frozen=True)
class Row:
    """One method on one suite.

    Attributes
    ----------
    runs, solved, proved, errors
        How many runs there are, have a plan, have a gap of at most one in ten thousand, went wrong.
    median_loss, worst_loss, worst_instance
        Of value / best known - 1, over the runs with a plan; None without any, and no instance where nothing is lost.
    mean_loss
        Geometric mean of value / best known, minus 1, over the runs with a plan.
    mean_runtime_s
        Geometric mean, shifted by ``SHIFT_S``, over all runs; one without a plan counts with its time limit at least.
    profile
        For each of ``RATIOS`` the share of all runs whose value is at most so many times the best known.
    proofs_s
        Run times of the proved runs, sorted: the n-th is where a cactus plot reaches n.
    """

    suite: str
    method: str
    runs: int
    solved: int
    proved: int
    errors: int
    median_loss: float | None
    worst_loss: float | None
    worst_instance: str | None
    mean_loss: float | None
    mean_runtime_s: float
    profile: tuple[float, ...]
    proofs_s: tuple[float, ...]


def references(records: Iterable[Record], best_known: Mapping[str, BestKnown]) -> dict[str, Reference]:
    """References by fingerprint, from best-known values and the records themselves.

    Only plans of the plain schedule count, and bounds that cover all of those: other schedules may be better.
    """
    found = {entry.fingerprint: Reference(entry.value, entry.bound, None) for entry in best_known.values()}
    for record in records:
        old = found.get(record.fingerprint, Reference(None, None, None))
        covers = record.objective in OBJECTIVES or (
            record.chunks is None and record.bound_scope is not None and PLAIN in record.bound_scope.schedules
        )
        found[record.fingerprint] = Reference(
            _least(old.value, record.value if is_plain(record) else None),
            _largest(old.bound, record.bound if covers else None),
            _largest(old.trivial_bound, record.trivial_bound if covers else None),
        )
    return found


def is_plain(record: Record) -> bool:
    """Whether a run has a plan of the plain schedule, or a placement where that is all there is to decide."""
    return record.placement is not None or (record.plan is not None and record.plan.schedule == PLAIN)


def loss(record: Record, known: Mapping[str, Reference]) -> float | None:
    """value / best known - 1, None where either is unknown."""
    best = known.get(record.fingerprint, Reference(None, None, None)).value
    return None if record.value is None or best is None or best <= 0 else record.value / best - 1


def is_proved(record: Record) -> bool:
    """Whether a run's own gap is at most one in ten thousand."""
    return record.gap is not None and record.gap <= OPTIMAL_GAP


def summarise(records: Sequence[Record], known: Mapping[str, Reference]) -> list[Row]:
    """One row for each method of each suite, in the order of the records."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        label = label_of(record.method, record.knobs, record.chunks)
        groups.setdefault((record.suite, label), []).append(record)
    return [_row(suite, label, group, known) for (suite, label), group in groups.items()]


def _row(suite: str, label: str, group: Sequence[Record], known: Mapping[str, Reference]) -> Row:
    losses = [(found, record.instance) for record in group if (found := loss(record, known)) is not None]
    worst = max(losses, default=None)
    return Row(
        suite=suite,
        method=label,
        runs=len(group),
        solved=sum(record.value is not None for record in group),
        proved=sum(map(is_proved, group)),
        errors=sum(record.error is not None for record in group),
        median_loss=statistics.median([found for found, _ in losses]) if losses else None,
        worst_loss=None if worst is None else worst[0],
        worst_instance=None if worst is None or worst[0] <= SAME else worst[1],
        mean_loss=shifted_geometric_mean([1 + found for found, _ in losses], 0.0) - 1 if losses else None,
        mean_runtime_s=shifted_geometric_mean([charged_runtime_s(record) for record in group], SHIFT_S),
        profile=tuple(sum(found <= ratio - 1 + SAME for found, _ in losses) / len(group) for ratio in RATIOS),
        proofs_s=tuple(sorted(record.runtime_s for record in group if is_proved(record))),
    )


def charged_runtime_s(record: Record) -> float:
    """Run time; without a plan or a proof that there is none, the time limit at least."""
    if record.value is None and record.status != "infeasible":
        return max(record.runtime_s, record.time_limit_s)
    return record.runtime_s


def shifted_geometric_mean(values: Sequence[float], shift: float) -> float:
    """exp(mean(log(value + shift))) - shift; of at least one value."""
    return math.exp(statistics.fmean(math.log(value + shift) for value in values)) - shift


def contradictions(records: Iterable[Record], known: Mapping[str, Reference]) -> list[str]:
    """Values below a bound that covers their plan: one of the two is wrong, and the numbers are not to be trusted."""
    found = []
    for record in records:
        bound = known.get(record.fingerprint, Reference(None, None, None)).bound
        if record.value is not None and bound is not None and is_plain(record) and record.value < bound * (1 - SAME):
            label = label_of(record.method, record.knobs, record.chunks)
            found.append(f"{record.suite}/{record.instance}: {label} has {record.value!r}, below the bound {bound!r}")
    return found


def gap_of(reference: Reference) -> float | None:
    """Relative gap between the best value and the best bound."""
    return relative_gap(reference.value, reference.bound)


def _least(*values: float | None) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _largest(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)
