"""Tables of a result's page: methods, stages, what would help, results side by side."""

from __future__ import annotations

from collections.abc import Sequence

from formulations.interface import relative_gap
from instances.numbers import UNKNOWN, byte_text, count_text, share_text, time_text
from reports.content import Cell, Table, words
from reports.sensitivity import Sensitivity
from reports.source import Traced
from reports.wording import spill
from solver.result import Result


def methods_table(result: Result) -> Table:
    """The methods that ran beside this one, and this one."""
    objective, plan = result.objective, result.plan
    rows = []
    for row in result.compared:
        rows.append(
            [
                words(row.method),
                *_value(row.value, objective.bound),
                count(row.chunks),
                count(row.batch),
                words(row.note),
            ]
        )
    counts = [] if plan is None else [len(sizes) for sizes in plan.chunks.values()]
    remark = result.reason or "" if plan is None else spill(plan)
    batch = None if plan is None else plan.batch
    own = [words(result.method), *_value(objective.value, objective.bound), count(max(counts, default=None))]
    rows.append([*own, count(batch), words(remark)])
    columns = ("method", "value", "gap", "chunks", "batch", "remarks")
    note = "A method's gap is what its value is above the proved bound, as a share of the value."
    return Table("Methods side by side", columns, rows, columns[1:5], note)


def stage_table(view: Traced) -> Table:
    """One row a stage."""
    metrics = view.result.metrics
    kept: dict[int, dict[str, int]] = {}
    for (debtor, creditor), amount in view.kept.items():
        kept.setdefault(debtor, {})[str(creditor)] = amount
    rows = []
    for stage, place in enumerate(view.placement):
        capacity = view.instance.hardware.die_at(place).hbm_bytes
        peak = None if metrics is None else metrics.peak_memory_bytes[stage]
        stall = None if metrics is None else metrics.stall_s[stage]
        share = None if peak is None else peak / capacity
        elsewhere = kept.get(stage, {})
        where = ", ".join(f"{view.kept_text(amount)} at {creditor}" for creditor, amount in elsewhere.items())
        rows.append(
            [
                count(stage),
                words(f"{place[0]},{place[1]}"),
                count(None if view.layers is None else view.layers[stage]),
                Cell(byte_text(peak), peak),
                Cell(share_text(share), share),
                Cell(time_text(stall), stall),
                Cell(where or "none", sum(elsewhere.values())),
            ]
        )
    columns = (
        "stage",
        "die (row,column)",
        "layers",
        "peak memory",
        "of its capacity",
        "stalls",
        view.kept_words,
    )
    return Table("Stages", columns, rows, ("stage", *columns[2:6]))


def sensitivity_table(found: Sequence[Sensitivity]) -> Table:
    """The same plan with one thing a tenth better."""
    rows = [
        [words(one.what), time_cell(one.value), Cell(share_text(one.change, signed=True), one.change), words(one.note)]
        for one in found
    ]
    columns = ("change", "value", "difference", "remarks")
    note = (
        "Each row replays this very plan, its decisions unchanged, on the changed hardware; solving again may gain "
        "more, from memory above all."
    )
    return Table("What would help: the same plan on better hardware", columns, rows, columns[1:3], note)


def results_table(results: Sequence[Result]) -> Table:
    """Several results, one row each."""
    rows = []
    for result in results:
        objective, plan = result.objective, result.plan
        counts = [] if plan is None else [len(sizes) for sizes in plan.chunks.values()]
        rows.append(
            [
                words(str(result.instance.get("name", UNKNOWN))),
                words(result.method),
                time_cell(objective.value),
                time_cell(objective.bound),
                Cell(share_text(objective.gap), objective.gap),
                count(max(counts, default=None)),
                words(result.status),
                Cell(f"{result.runtime_s:.1f} s", result.runtime_s),
            ]
        )
    columns = ("instance", "method", "value", "bound", "gap", "chunks", "status", "solve time")
    return Table("Results side by side", columns, rows, (*columns[2:6], "solve time"))


def time_cell(value_s: float | None) -> Cell:
    """A time."""
    return Cell(time_text(value_s), value_s)


def count(number: int | None) -> Cell:
    """A whole number."""
    return Cell(count_text(number), number)


def _value(value: float | None, bound: float | None) -> tuple[Cell, Cell]:
    gap = relative_gap(value, bound)
    return time_cell(value), Cell(share_text(gap), gap)
