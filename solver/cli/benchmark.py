"""``waferplan benchmark``: heuristics against optimal over suites, resumable, on one machine or many."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from instances.errors import MISSING, InputError
from instances.suites import suite_names
from instances.units import BYTES, parse_quantity
from solver.benchmark.environment import usable_cores
from solver.benchmark.paper import length_tasks, main_tasks, sensitivity_tasks
from solver.benchmark.pools import LocalPool
from solver.benchmark.record import Record
from solver.benchmark.records_file import RecordsFile
from solver.benchmark.runner import Pool, run_all
from solver.benchmark.session import Selected, select, tasks_of, update_best_known
from solver.benchmark.statistics import RATIOS, Reference, Row, contradictions, references, summarise
from solver.benchmark.task import PLACE, RunLimits, Task, read_choice
from solver.cli import options
from solver.cli.benchmark_progress import Board, shown
from solver.cli.benchmark_tables import (
    bounds_sheet,
    losses_sheet,
    matrix_sheet,
    profile_sheet,
    proofs_sheet,
    run_sheets,
    values_sheet,
)
from solver.cli.errors import DONE, INFEASIBLE, INTERRUPTED, complain
from solver.cli.files import output_file
from solver.cli.paper_tables import paper_data, paper_sheets
from solver.cli.sheets import Sheet
from solver.cli.terminal import interruptible, show, show_json, show_text

app = typer.Typer(add_completion=False)

Form = Literal["text", "markdown", "json"]
METHODS = "exact,mocap,terapipe,gpipe"


@app.command("benchmark", epilog="Example: waferplan benchmark tiny --jobs 2 --out records.jsonl")
def benchmark_command(
    suites: Annotated[
        list[str] | None, typer.Argument(metavar="SUITE...", help="Names that `waferplan suites` lists, or folders.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help=f"Methods, with knobs behind colons, as mocap:batch=best. (default: {METHODS})"
        ),
    ] = None,
    time_limit: Annotated[str, typer.Option(metavar="S", help="Of one run: seconds, or a time as 10min.")] = "60",
    memory_limit: Annotated[str, typer.Option(metavar="BYTES", help="Of one run, as 4GB; or none.")] = "8GiB",
    seeds: Annotated[str, typer.Option(metavar="N", help="Every run with seeds 0 to N-1.")] = "1",
    jobs: Annotated[str | None, typer.Option(metavar="J", help="Runs at a time. (default: cores)")] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Do the runs on the workers of this Dask scheduler.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="records.jsonl", help="Append records here; runs recorded here are not redone."),
    ] = None,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Redo runs whose record is an error.")] = False,
    update: Annotated[
        bool, typer.Option("--update-best-known", help="Write better values and bounds into the suites.")
    ] = False,
    paper: Annotated[
        bool, typer.Option("--paper", help="In place of suites: the MOCAP paper's evaluation, beside its averages.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print statistics as JSON, nothing else.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print tables for a README.")] = False,
) -> int:
    """Run methods on suites, each run in a process of its own, and compare them.

    A crash, an error and a timeout are records. Ctrl-C, or a kill, loses the runs in flight only; the same command goes
    on where it stopped. Exit code 1 if a value is below a proved bound.
    """
    limits = read_limits(time_limit, memory_limit)
    count = options.whole("--seeds", seeds, least=1, most=10_000)
    workers = usable_cores() if jobs is None else options.whole("--jobs", jobs, least=1, most=1024)
    show_as: Form = "json" if as_json else "markdown" if markdown else "text"
    run = partial(do_runs, workers=workers, dask=dask, out=out, retry_errors=retry_errors)
    if paper:
        if suites or methods is not None or update or count > 1:
            raise InputError("--paper", "beside suites, methods, seeds or an update", "no other choice of what to run")
        return _paper(limits, run, show_as)
    if not suites:
        raise InputError("SUITE", MISSING, f"one or more of {', '.join(suite_names())}, or folders")
    choices = [read_choice(text) for text in _parts("--methods", methods or METHODS)]
    selected = select(suites)
    if all(choice.method == PLACE for choice in choices) and any(one.instances for one in selected):
        raise InputError("--methods", methods, f"a method for plans too; {PLACE} is for placement problems")
    if update:
        for one in selected:
            output_file("--update-best-known", one.suite.best_known)
    records, interrupted = run(tasks_of(selected, choices, range(count), limits))
    if update and not interrupted:
        changes = update_best_known(selected, records)
        for line in changes.refused:
            complain(f"best known not changed: {line}")
        for line in changes.improved:
            complain(f"best known changed: {line}")
    known = known_of(selected, records)
    if show_as == "json":
        show_json(data_of(records, known))
    else:
        show_sheets(sheets_of(records, known, markdown=markdown), show_as)
    return ending(records, known, interrupted=interrupted)


def _paper(limits: RunLimits, run: Callable[[list[Task]], tuple[list[Record], bool]], show_as: Form) -> int:
    records, interrupted = run([*main_tasks(limits), *sensitivity_tasks(limits), *length_tasks(limits)])
    if show_as == "json":
        show_json(paper_data(records))
    else:
        show_sheets(list(paper_sheets(records)), show_as)
    return ending(records, references(records, {}), interrupted=interrupted)


def read_limits(time_limit: str, memory_limit: str) -> RunLimits:
    """RunLimits of one run from text."""
    allowed = "at least 500 MB, as 4GB, or none"
    memory: float | None = None
    if memory_limit != "none":
        try:
            memory = parse_quantity(memory_limit, BYTES)
        except ValueError:
            raise InputError("--memory-limit", memory_limit, allowed) from None
        if memory < 5e8:
            raise InputError("--memory-limit", memory_limit, allowed)
    return RunLimits(options.time_limit("--time-limit", time_limit), memory)


def pool_of(workers: int, dask: str | None) -> Pool:
    """Who does the runs: this machine, or a Dask cluster."""
    if dask is None:
        return LocalPool(workers)
    try:
        module = importlib.import_module("solver.benchmark.dask_pool")
    except ModuleNotFoundError as error:
        allowed = f"the extra that brings it: pip install 'waferplan[dask]' ({error.name} is missing)"
        raise InputError("--dask", dask, allowed) from None
    pool: Pool = module.DaskPool(dask)
    return pool


def do_runs(
    tasks: Sequence[Task], *, workers: int, dask: str | None, out: Path | None, retry_errors: bool
) -> tuple[list[Record], bool]:
    """Do what has no record yet; all records in the order of the tasks, and whether Ctrl-C ended it."""
    pool, board = pool_of(workers, dask), Board(workers)
    records: list[Record] = []
    with _records_file(out) as file, interruptible():
        try:
            with shown(board), closing(run_all(tasks, pool, board, file=file, retry_errors=retry_errors)) as found:
                for record in found:
                    records.append(record)
            interrupted = False
        except KeyboardInterrupt:
            kept = "in the records file" if out is not None else "printed, and nowhere else: no --out"
            complain(f"interrupted: {len(records)} of {len(tasks)} runs are {kept}")
            interrupted = True
    order = {task.key: number for number, task in enumerate(tasks)}
    # A cluster's worker may have another version, and with it another key.
    return sorted(records, key=lambda record: order.get(record.key, len(order))), interrupted


def known_of(selected: Sequence[Selected], records: Sequence[Record]) -> dict[str, Reference]:
    """References of all suites."""
    entries = {f"{one.suite.name}/{name}": entry for one in selected for name, entry in one.best_known.items()}
    return references(records, entries)


def ending(records: Sequence[Record], known: dict[str, Reference], *, interrupted: bool) -> int:
    """Say what cannot be right, and answer with the exit code."""
    wrong = contradictions(records, known)
    for line in wrong:
        complain(f"contradiction: {line}")
    if interrupted:
        return INTERRUPTED
    return INFEASIBLE if wrong else DONE


def sheets_of(records: Sequence[Record], known: dict[str, Reference], *, markdown: bool) -> list[Sheet]:
    """All tables."""
    if not records:
        return []
    summary = summarise(records, known)
    sheets: list[Sheet] = []
    for suite in dict.fromkeys(record.suite for record in records):
        own = [record for record in records if record.suite == suite]
        sheets += [values_sheet(suite, own, known)] if markdown else run_sheets(suite, own, known)
        sheets.append(losses_sheet(suite, summary, worst_at=markdown))
    if markdown:
        sheets.append(matrix_sheet(records, summary, known))
    return [*sheets, bounds_sheet(records, known), profile_sheet(records, summary), proofs_sheet(summary)]


def show_sheets(sheets: Sequence[Sheet], show_as: Form) -> None:
    """Print tables one below the other."""
    if not sheets:
        show_text("no runs")
    elif show_as == "markdown":
        show_text("\n".join(sheet.markdown() for sheet in sheets))
    else:
        show(*(part for sheet in sheets for part in sheet.printed()))


def data_of(records: Sequence[Record], known: dict[str, Reference]) -> dict[str, Any]:
    """Statistics and records (without plans) as plain data."""
    return {
        "ratios": list(RATIOS),
        "summary": [_plain(row) for row in summarise(records, known)],
        "records": [record.model_dump(mode="json", exclude={"plan", "metrics", "placement"}) for record in records],
        "contradictions": contradictions(records, known),
    }


def _plain(row: Row) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(row).items()}


@contextmanager
def _records_file(out: Path | None) -> Iterator[RecordsFile | None]:
    """The records file, with a word on what in it is no record or of another version."""
    if out is None:
        with nullcontext():
            yield None
        return
    with options.about_option("--out"):
        file = RecordsFile.open(output_file("--out", out))
    with file:
        for problem in file.reading.problems:
            complain(f"{out}: line {problem.line} is no record of this version and is skipped: {problem.says}")
        yield file


def _parts(option: str, text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(option, text, "at least one name")
    return list(dict.fromkeys(parts))
