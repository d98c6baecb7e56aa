"""``waferplan capacity``: how long a request fits, for each way to spill."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from instances.numbers import UNKNOWN, share_text, time_text
from solver.backends.quiet import standard_output_turned_away
from solver.capacity.api import capacity
from solver.capacity.result import CapacityResult, CapacityRow
from solver.cli import options
from solver.cli.errors import DONE, INFEASIBLE, INTERRUPTED, NO_PLAN
from solver.cli.files import in_file, output_file, read_instance, write_file
from solver.cli.tables import pairs, table
from solver.cli.terminal import interruptible, progress, show, show_text
from solver.limits import Limits

app = typer.Typer(add_completion=False)

EXAMPLE = (
    "Example: waferplan capacity instances/data/suites/mocap-capacity/llama3-70b-16-chunks.json "
    "--chunks 16 --latency-budget 5%"
)
STOPS = {"iterations": "every row is complete", "time_limit": "time was up", "interrupted": "interrupted"}
"""Reasons to stop, in words."""


@app.command("capacity", epilog=EXAMPLE)
def capacity_command(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="Instance file with equal requests.")],
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Rows of the table; all but the V-shaped ones unless given: vpp, vpp-async and vpp-packed, each also "
            "with +head-to-tail, +mocap, +pool, +host or +pool+host, as vpp+pool.",
        ),
    ] = None,
    chunks: Annotated[str | None, typer.Option(metavar="K", help="Fix the number of chunks.")] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Ask for the largest batch at the given length.")] = False,
    latency_budget: Annotated[
        str | None,
        typer.Option(metavar="P", help="How much slower than without memory limits a plan may be, as 5%."),
    ] = None,
    equal_chunks: Annotated[
        bool, typer.Option("--equal-chunks", help="Only equal chunks; with --chunks and a budget these have a bound.")
    ] = False,
    time_limit: Annotated[str, typer.Option(metavar="S", help="Seconds for the whole table.")] = "600",
    seed: Annotated[str, typer.Option(metavar="K", help="Seed of all random choices.")] = "0",
    workers: Annotated[str, typer.Option(metavar="W", help="Threads an engine may use.")] = "1",
    out: Annotated[Path | None, typer.Option(metavar="C.json", help="Write the table with its plans here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, nothing else.")] = False,
) -> int:
    """The longest request for which a plan runs in the replay, method by method.

    Lengths are whole quanta; number of requests and batch (max_batch) stay as they are. Ctrl-C ends with the rows that
    are complete.
    """
    limits = Limits(
        time_s=options.time_limit("--time-limit", time_limit),
        workers=options.whole("--workers", workers, least=1, most=1024),
    )
    fixed = options.number_or_none("--chunks", chunks, least=1)
    first_seed = options.whole("--seed", seed, least=0, most=2**31 - 1)
    budget = None if latency_budget is None else options.share("--latency-budget", latency_budget)
    target = None if out is None else output_file("--out", out)
    problem = read_instance(instance)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    with interruptible(), progress() as shown, standard_output_turned_away(), in_file(instance):
        found = capacity(
            problem,
            names,
            chunks=fixed,
            by_batch=batch,
            latency_budget=budget,
            equal_chunks=equal_chunks,
            limits=limits,
            seed=first_seed,
            note=shown.note,
        )
    if target is not None:
        write_file("--out", target, found.to_json() + "\n")
    if as_json:
        show_text(found.to_json())
    else:
        show(*_shown(found))
    if found.stop_reason == "interrupted":
        return INTERRUPTED
    if any(row.max_tokens is not None for row in found.methods):
        return DONE
    return NO_PLAN if found.stop_reason == "time_limit" else INFEASIBLE


def _shown(found: CapacityResult) -> list[RenderableType]:
    by_batch = found.batch is None
    size = "batch" if by_batch else "tokens"
    budget = "any latency" if found.latency_budget is None else f"at most {share_text(found.latency_budget)} slower"
    chunks = "any number of chunks" if found.chunks is None else f"{found.chunks} chunks"
    head = f"{found.instance}: the {'largest batch' if by_batch else 'longest request'}, {chunks}, {budget}"
    rows = [_cells(row, by_batch=by_batch) for row in found.methods]
    names = ["method", size, "gain", "latency", "slower", "fails at", "any latency"]
    if found.latency_budget is None:  # then it is the second column again
        names.remove("any latency")
    columns = tuple(names)
    remarks = [(row.method, row.note) for row in found.methods if row.note]
    remarks += _bound(found)
    return [
        head,
        table(columns, [[row[name] for name in columns] for row in rows], numbers=columns[1:]),
        pairs(
            [
                *remarks,
                ("status", STOPS.get(found.stop_reason, found.stop_reason)),
                ("time", time_text(found.runtime_s)),
            ]
        ),
    ]


def _bound(found: CapacityResult) -> list[tuple[str, str]]:
    """What is proved, and how far from it the longest of the rows is that it speaks about."""
    bounded = [row for row in found.methods if row.bound_tokens is not None]
    if not bounded:
        return []
    most = bounded[0].bound_tokens
    longest = max((row.max_tokens for row in bounded if row.max_tokens is not None), default=None)
    gap = "" if longest is None or most is None else f", gap {share_text((most - longest) / longest)}"
    # "chunked": the V-shaped schedules have no bound.
    return [("bound", f"chunked, equal chunks, no host: at most {most} tokens{gap}")]


def _cells(row: CapacityRow, *, by_batch: bool) -> dict[str, str]:
    """The cells of a row by column."""
    reached, at_all = (row.max_batch, row.any_latency_batch) if by_batch else (row.max_tokens, row.any_latency_tokens)
    slower = None if row.value_s is None or not row.optimum_s else row.value_s / row.optimum_s - 1
    return {
        "method": row.method,
        "batch" if by_batch else "tokens": _count(reached),
        "gain": UNKNOWN if row.gain is None else f"{row.gain:.2f}x",
        "latency": time_text(row.value_s),
        "slower": share_text(slower),
        "fails at": _count(row.next_size),
        "any latency": _count(at_all),
    }


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number}"
