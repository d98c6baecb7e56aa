"""``waferplan export``: hand a plan over to other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from solver.cli.errors import DONE
from solver.cli.files import in_file
from solver.cli.options import about_option
from solver.cli.terminal import interruptible, progress, show
from solver.export.formats import FORMATS, find_target, find_writer, write
from solver.export.source import replayed
from solver.result import Result

app = typer.Typer(add_completion=False)

_FORMATS = "; ".join(f"{name}: {form.says}" for name, form in FORMATS.items())


@app.command("export", epilog="Example: waferplan export r.json --to perfetto --out timeline.json")
def export_command(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Result file, as `solve --out` writes it.")],
    to: Annotated[str, typer.Option(metavar="FORMAT", help=f"{_FORMATS}.")],
    out: Annotated[
        Path, typer.Option(metavar="PATH", help="A file for perfetto; a new or empty folder for the others.")
    ],
) -> int:
    """Write the plan of a result, replayed, in another tool's format.

    The result alone is enough: the instance is inside. Exit code 1 if its plan breaks a rule or deadlocks.
    """
    with about_option("--to"):
        writer = find_writer(to)
    with about_option("--out"):
        target = find_target(to, out)
    with interruptible(), progress() as shown:
        shown.note("replay")
        with in_file(result):
            source = replayed(Result.load(result))
        shown.note(f"writing {to}")
        with about_option("--out"):
            written = write(writer, source, target, folder=FORMATS[to].folder)
    show(f"{out}: {written}")
    return DONE
