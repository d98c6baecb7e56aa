"""``waferplan report``: results, a capacity table or a benchmark as a page with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from instances.errors import InputError
from reports import report
from solver.cli.errors import DONE
from solver.cli.terminal import interruptible, progress, show

app = typer.Typer(add_completion=False)


@app.command("report", epilog="Example: waferplan report r.json --out report")
def report_command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...",
            help="Result files of `solve --out`, a file of `capacity --out`, or the records of `benchmark --out`.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the page and its pictures; made if need be.")],
) -> int:
    """Write report.html, which needs nothing else and no network, and every picture as SVG and PNG.

    Several results stand side by side. Exit code 1 if a plan breaks a rule or deadlocks.
    """
    with interruptible(), progress() as shown:
        try:
            files = report(sources, out, note=shown.note)
        except InputError as error:
            if error.field != "out":  # about what is in the files, which are to blame then
                raise
            raise InputError("--out", error.value, error.allowed) from error
    show(f"{files.html}: {len(files.figures) // 2} pictures, also as SVG and PNG")
    return DONE
