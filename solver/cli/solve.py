"""``waferplan solve``: plan, prove, replay, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from instances.errors import InputError
from reports import make_folder, report
from solver.api import check_chunks, solve
from solver.backends.quiet import standard_output_turned_away
from solver.cli import options
from solver.cli.errors import DONE, INFEASIBLE, INTERRUPTED, NO_PLAN
from solver.cli.files import in_file, output_file, read_instance, write_file
from solver.cli.summary import summary
from solver.cli.terminal import interruptible, progress, show, show_text
from solver.limits import Limits
from solver.methods import find_method
from solver.result import Result

app = typer.Typer(add_completion=False)

EXAMPLE = "Example: waferplan solve instances/data/suites/mocap-latency/llama3-70b-128k.json --out r.json"


@app.command("solve", epilog=EXAMPLE)
def solve_command(
    instance: Annotated[Path, typer.Argument(metavar="INSTANCE", help="Instance file.")],
    method: Annotated[str, typer.Option(metavar="M", help="A name that `waferplan methods` lists.")] = "exact",
    chunks: Annotated[str | None, typer.Option(metavar="K", help="Fix the number of chunks.")] = None,
    time_limit: Annotated[str, typer.Option(metavar="S", help="Seconds, or a time as 10min.")] = "60",
    gap: Annotated[str, typer.Option(metavar="G", help="Stop at this gap, as 0.01 or 1%.")] = "0.0001",
    seed: Annotated[str, typer.Option(metavar="K", help="Seed of all random choices.")] = "0",
    workers: Annotated[str, typer.Option(metavar="W", help="Threads an engine may use.")] = "1",
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Same input, same output.")] = False,
    knobs: Annotated[
        list[str] | None, typer.Option("--set", metavar="KNOB=VALUE", help="Set a knob of the method; repeatable.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="R.json", help="Write the result here.")] = None,
    report_folder: Annotated[
        Path | None, typer.Option("--report", metavar="DIR", help="Write a page with pictures into this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Add a table with a row for each stage.")] = False,
) -> int:
    """Find a plan, prove a bound, verify by simulation.

    Ctrl-C ends the search with the best plan so far.
    """
    limits = Limits(
        time_s=options.time_limit("--time-limit", time_limit),
        gap=options.share("--gap", gap),
        workers=options.whole("--workers", workers, least=1, most=1024),
        deterministic=deterministic,
    )
    fixed_chunks = options.number_or_none("--chunks", chunks, least=1)
    first_seed = options.whole("--seed", seed, least=0, most=2**31 - 1)
    settings = options.pairs("--set", knobs or ())
    find_method(method).settings(settings)
    target = None if out is None else output_file("--out", out)
    if report_folder is not None:
        with options.about_option("--report"):
            make_folder(report_folder)
    problem = read_instance(instance)
    with options.about_option("--chunks"):
        check_chunks(problem, fixed_chunks)
    with interruptible(), progress() as shown, standard_output_turned_away(), in_file(instance):
        result = solve(
            problem,
            method,
            limits=limits,
            seed=first_seed,
            chunks=fixed_chunks,
            knobs=settings,
            listener=shown.listen,
            note=shown.note,
        )
    failure = _save(result, target)
    if as_json:
        show_text(result.to_json())
    else:
        saved = None if failure or out is None else str(out)
        show(*summary(problem, result, instance_file=str(instance), result_file=saved, verbose=verbose))
    if report_folder is not None:
        with interruptible(), progress() as shown, options.about_option("--report"):
            files = report(result, report_folder, note=shown.note)
        if not as_json:
            show(f"report         {files.html}")
    if failure is not None:
        raise failure
    return exit_code(result)


def _save(result: Result, target: Path | None) -> InputError | None:
    """Write the result file; a failure is kept until the result is printed, so that a long run is not lost."""
    if target is not None:
        try:
            write_file("--out", target, result.to_json() + "\n")
        except InputError as error:
            return error
    return None


def exit_code(result: Result) -> int:
    """What the command answers with (interface page, "Exit codes")."""
    if result.stop_reason == "interrupted":
        return INTERRUPTED
    if result.status == "infeasible":
        return INFEASIBLE
    return NO_PLAN if result.plan is None and result.program is None else DONE
