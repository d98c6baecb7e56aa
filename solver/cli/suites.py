"""``waferplan suites``: the suites that ship with the project."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from instances.instance import Instance
from instances.suites import Suite, find_suite, suite_names
from solver.benchmark.best_known import load_best_known
from solver.benchmark.placements import Placing, read_placing
from solver.cli.errors import DONE
from solver.cli.tables import shortened, table
from solver.cli.terminal import show, show_json

app = typer.Typer(add_completion=False)

_ASKS = 130


@app.command("suites", epilog="Example: waferplan suites --json")
def suites_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> int:
    """List the suites: how many instances, how many of them are proved, what they ask."""
    found = [_facts(find_suite(name)) for name in suite_names()]
    if as_json:
        show_json(found)
        return DONE
    rows = [
        (
            facts["suite"],
            str(len(facts["instances"])),
            str(facts["with_value"]),
            str(facts["proved"]),
            shortened(facts["asks"], _ASKS),
        )
        for facts in found
    ]
    columns = ("suite", "instances", "solved", "proved", "asks")
    show(table(columns, rows, numbers=columns[1:4]))
    return DONE


def _facts(suite: Suite) -> dict[str, Any]:
    problems: list[Instance | Placing] = [*suite.load(), *map(read_placing, suite.placements)]
    known = load_best_known(suite, problems)
    return {
        "suite": suite.name,
        "asks": suite.asks,
        "folder": str(suite.folder),
        "instances": [problem.name for problem in problems],
        "with_value": sum(entry.value is not None for entry in known.values()),
        "proved": sum(entry.proved for entry in known.values()),
        "best_known": {name: entry.model_dump(mode="json") for name, entry in known.items()},
    }
