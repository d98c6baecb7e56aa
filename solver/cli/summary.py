"""What ``solve`` tells people: what was asked, methods side by side, value against bound, where the result is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from formulations.interface import relative_gap
from instances.display import mesh_words, requests_words
from instances.instance import Instance
from instances.numbers import UNKNOWN, share_text, time_text
from instances.plan import Plan
from solver.cli.errors import one_line
from solver.cli.tables import amount, pairs, shortened, table
from solver.result import Result

_REASON = 100
"""Characters of why a method cannot run; the whole sentence is in the result file."""


def summary(
    instance: Instance, result: Result, *, instance_file: str, result_file: str | None, verbose: bool
) -> Iterator[RenderableType]:
    """Parts to print, one after the other."""
    yield Text(asked(instance))
    yield ""
    yield _methods(result)
    yield ""
    if verbose and result.plan is not None:
        yield stage_table(instance, result)
        yield ""
    yield pairs((name, one_line(said)) for name, said in result.facts)
    yield "result         " + ("not saved; --out R.json keeps it" if result_file is None else result_file)
    if result_file is not None and result.program is not None:
        yield f"replay         waferplan simulate --program {shlex.quote(result_file)}"
    if result_file is not None and result.plan is not None:
        yield f"replay         waferplan simulate {shlex.quote(instance_file)} {shlex.quote(result_file)}"


def asked(instance: Instance) -> str:
    """The instance in a sentence."""
    model, objective = one_line(instance.model.name), instance.objective.replace("_", " ")
    stages = f"{instance.pipeline.stages} stages on {mesh_words(instance.hardware)}"
    return f"{one_line(instance.name)}: {model}, {stages}, {requests_words(instance.workload)}; objective {objective}"


def _methods(result: Result) -> Table:
    bound = result.objective.bound
    rows = [
        (
            row.method,
            time_text(row.value),
            share_text(relative_gap(row.value, bound)),
            _count(row.chunks),
            _count(row.batch),
            shortened(one_line(row.note), _REASON),
        )
        for row in result.compared
    ]
    plan, value = result.plan, result.objective.value
    counts = [] if plan is None else [len(sizes) for sizes in plan.chunks.values()]
    remark = shortened(one_line(result.reason or ""), _REASON) if plan is None else spill_words(plan)
    rows.append(
        (
            result.method,
            time_text(value),
            share_text(relative_gap(value, bound)),
            _range(counts),
            _count(None if plan is None else plan.batch),
            remark,
        )
    )
    columns = ("method", "value", "gap", "chunks", "batch", "remarks")
    return table(columns, rows, numbers=columns[1:5])


def spill_words(plan: Plan) -> str:
    """How much is kept elsewhere: tokens per sequence over all stages, and pairs of stage and creditor."""
    rows = [row for row in plan.spill if row.tokens]
    if not rows:
        return "no spill"
    links = len({(row.stage, row.creditor) for row in rows})
    return f"spills {sum(row.tokens for row in rows)} tokens over {links} creditor link{'s' if links > 1 else ''}"


def stage_table(instance: Instance, result: Result) -> Table:
    """One row a stage: where it sits, what it holds, how long it served others, what it keeps elsewhere."""
    plan, metrics = result.plan, result.metrics
    assert plan is not None
    rows = []
    for stage, (die, layers) in enumerate(zip(plan.placement, plan.layers, strict=True)):
        capacity = instance.hardware.die_at(die).hbm_bytes
        peak = None if metrics is None else metrics.peak_memory_bytes[stage]
        stall = None if metrics is None else metrics.stall_s[stage]
        kept: dict[int | str, int] = {}
        for row in plan.spill:
            if row.stage == stage and row.tokens:
                kept[row.creditor] = kept.get(row.creditor, 0) + row.tokens
        rows.append(
            (
                str(stage),
                f"{die[0]},{die[1]}",
                str(layers),
                amount(peak),
                share_text(None if peak is None else peak / capacity),
                time_text(stall),
                ", ".join(f"{tokens} at {creditor}" for creditor, tokens in kept.items()),
            )
        )
    columns = ("stage", "die", "layers", "peak", "of memory", "stall", "tokens kept elsewhere")
    return table(columns, rows, numbers=columns[:6])


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else str(number)


def _range(numbers: list[int]) -> str:
    if not numbers:
        return UNKNOWN
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}-{high}"
