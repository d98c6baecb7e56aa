"""``waferplan methods``: names, what they do, knobs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from solver.cli.errors import DONE
from solver.cli.tables import table
from solver.cli.terminal import show, show_json
from solver.method import Knob
from solver.methods import METHODS

app = typer.Typer(add_completion=False)


@app.command("methods", epilog="Example: waferplan solve I.json --method mocap --set iterations=1000")
def methods_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> int:
    """List the methods with their knobs, defaults and what is allowed."""
    if as_json:
        show_json(
            [
                {
                    "method": method.name,
                    "says": method.says,
                    "knobs": [_knob(name, knob) for name, knob in method.knobs.items()],
                }
                for method in METHODS.values()
            ]
        )
        return DONE
    rows = []
    for method in METHODS.values():
        rows.append((method.name, "", method.says))
        for name, knob in method.knobs.items():
            rows.append(("", f"{name}={knob.default}", f"{knob.says} ({allowed(knob)})"))
    show(table(("method", "knob", "meaning"), rows))
    return DONE


def allowed(knob: Knob) -> str:
    """Values a knob takes, in words."""
    if knob.choices:
        return ", ".join(knob.choices)
    kind = "whole number" if isinstance(knob.default, int) else "number"
    given = (("at least", knob.least), ("at most", knob.most))
    limits = " and ".join(f"{word} {limit:g}" for word, limit in given if limit is not None)
    return f"{kind} {limits}".strip()


def _knob(name: str, knob: Knob) -> dict[str, Any]:
    return {
        "name": name,
        "default": knob.default,
        "says": knob.says,
        "choices": list(knob.choices) or None,
        "least": knob.least,
        "most": knob.most,
    }
