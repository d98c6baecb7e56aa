"""The commands by name; each one's module is imported when it is called, so that ``--help`` does not load engines."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from instances.errors import InfeasibleError, InputError
from solver.cli.errors import BAD_INPUT, DONE, INFEASIBLE, complain, usage_message

COMMANDS = {
    "solve": "Find a plan, prove a bound, verify by simulation.",
    "check": "Check a plan against every rule.",
    "simulate": "Replay a plan, or a program file, and measure it.",
    "explain": "Say why nothing is feasible, and what would help.",
    "place": "Place any flow graph on a mesh, or solve a QAPLIB problem.",
    "export": "Write a plan in another tool's format.",
    "report": "Draw results, capacity tables or benchmarks as a page.",
    "new": "Write an instance.",
    "capacity": "Find the longest request, or the largest batch, that fits.",
    "benchmark": "Run methods on suites and compare them.",
    "suites": "List the suites of instances.",
    "methods": "List the methods and their knobs.",
    "fit": "Fit costs to measured chunk times.",
    "models": "List the models of the catalogue, or size one.",
    "schema": "Print the JSON schema of a document.",
}


class Commands(TyperGroup):
    """Commands that load when called, answer with an exit code, and report bad input in one message."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Replace the entry of the help page by the command itself."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            command = typer.main.get_command(importlib.import_module(f"solver.cli.{name}").app)
        return name, command, rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run and exit; ``standalone_mode`` makes no difference. Nothing asked for is a question for help."""
        _prepare_streams()
        name = prog_name or "waferplan"
        args = list(sys.argv[1:] if args is None else args) or ["--help"]
        try:
            answer = super().main(args, name, complete_var, False, windows_expand_args, **extra)
            code = answer if isinstance(answer, int) else DONE
            sys.stdout.flush()
        except typer.TyperException as error:
            complain(usage_message(error, name))
            code = BAD_INPUT
        except InputError as error:
            complain(f"{name}: {error}")
            code = BAD_INPUT
        except InfeasibleError as error:
            complain(f"{name}: infeasible: {error}")
            code = INFEASIBLE
        except (BrokenPipeError, SystemExit):
            # The reader of a pipe has seen enough; the framework's own answer to that is an exit.
            _drop_output()
            code = DONE
        except OSError as error:
            # Nothing else writes here: a full disk behind standard output.
            _drop_output()
            complain(f"{name}: standard output: {error.strerror}")
            code = BAD_INPUT
        sys.exit(code)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Files of an installation to try: instances/data/suites/mocap-latency/llama3-70b-128k.json and others.",
)


def _version(wanted: bool) -> None:
    if wanted:
        try:
            print(importlib.metadata.version("waferplan"))
        except importlib.metadata.PackageNotFoundError:
            print("not installed")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Plan chunked pipeline prefill on wafer-scale meshes: heuristics, exact methods, replay.

    Exit codes: 0 done; 1 infeasible or a failed check; 2 bad input; 3 no plan within the limit; 130 interrupted.
    """


def _entry() -> None:
    """Stands for a command on the help page."""


for _name, _line in COMMANDS.items():
    app.command(_name, help=_line)(_entry)


def _prepare_streams() -> None:
    """Give closed streams somewhere to go, and let no character of a name stop a result from being printed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - lives as long as the process
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter's last flush stays quiet."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
