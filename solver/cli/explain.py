"""``waferplan explain``: why nothing is feasible, and what would help."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from instances.instance import Instance
from instances.numbers import UNKNOWN, digits, time_text
from solver.backends.quiet import standard_output_turned_away
from solver.cli import options
from solver.cli.errors import DONE, INFEASIBLE, INTERRUPTED, NO_PLAN, one_line
from solver.cli.files import in_file, read_instance
from solver.cli.summary import asked, spill_words
from solver.cli.tables import amount, pairs, shortened, table
from solver.cli.terminal import interruptible, progress, show, show_text
from solver.explanation.answer import explain
from solver.explanation.result import Change, Clash, Explanation
from solver.limits import Limits

app = typer.Typer(add_completion=False)

_WORDS = 200
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


@app.command("explain", epilog="Example: waferplan explain instances/data/suites/tight/llama3-405b-1536k.json")
def explain_command(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="Instance file.")],
    time_limit: Annotated[str, typer.Option(metavar="S", help="Seconds, or a time as 10min.")] = "120",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say whether there is a plan, and if not, which rules clash and the smallest change that helps.

    Exit codes: 0 there is a plan; 1 it is proved that there is none; 3 neither within the limit.
    """
    limits = Limits(time_s=options.time_limit("--time-limit", time_limit))
    problem = read_instance(instance)
    with interruptible(), progress() as shown, standard_output_turned_away(), in_file(instance):
        answer = explain(problem, limits=limits, note=shown.note)
    if as_json:
        show_text(answer.to_json())
    else:
        show(*_parts(problem, answer))
    if answer.stop_reason == "interrupted":
        return INTERRUPTED
    if answer.feasible:
        return DONE
    return INFEASIBLE if answer.proved else NO_PLAN


def _parts(instance: Instance, answer: Explanation) -> Iterator[RenderableType]:
    yield Text(asked(instance))
    yield ""
    yield Text(answer.says)
    if answer.plan is not None:
        chunks = ", ".join(str(len(sizes)) for sizes in answer.plan.chunks.values())
        name = answer.objective.replace("_", " ")
        facts = [
            ("value", f"{time_text(answer.value)} ({name}, replayed; the first plan found, not the best)"),
            ("plan", f"batch {answer.plan.batch}, {chunks} chunks, {spill_words(answer.plan)}"),
        ]
        yield pairs(facts)
        return
    for rows in (answer.clash, *answer.further):
        if rows:
            yield ""
            cells = [(row.rule, _by(row), shortened(one_line(row.where), _WORDS)) for row in rows]
            yield table(("rule", "by", "where"), cells, numbers=("by",))
    yield ""
    if answer.changes:
        columns = ("change", "from", "to", answer.objective.replace("_", " "), "proved")
        yield table(
            columns,
            [
                (
                    change.field,
                    _shown(change.before, change.unit),
                    _shown(change.to, change.unit),
                    time_text(change.value),
                    _proved(change),
                )
                for change in answer.changes
            ],
            numbers=columns[1:4],
        )
    else:
        yield "no change of a single field was found that helps"
    if answer.tried:
        yield ""
        yield pairs([("no help", ""), *((name, one_line(why)) for name, why in answer.tried.items())])


def _by(row: Clash) -> str:
    if row.amount is None:
        return UNKNOWN
    return amount(row.amount) if row.unit == "bytes" else f"{digits(row.amount)} {row.unit}"


def _proved(change: Change) -> str:
    if change.proved_minimal:
        return "no smaller change helps"
    return "" if change.no_plan_at is None else f"none with {_shown(change.no_plan_at, change.unit)}"


def _shown(value: Any, unit: str) -> str:
    if isinstance(value, dict):
        return _shown(next(iter(value.values())), unit)
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return shortened(json.dumps(value), 24)
    if not unit.startswith("bytes"):
        return str(value)
    power = min(max(len(str(int(value))) - 1, 0) // 3, len(_PREFIXES) - 1)
    return f"{value / 1000**power:.8g} {_PREFIXES[power]}B"
