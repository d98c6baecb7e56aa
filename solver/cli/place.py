"""``waferplan place``: any flow graph on any mesh, and quadratic assignment problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from formulations.interface import EngineLimits
from formulations.placement.place import Listener
from formulations.placement.warmup import warm_up
from instances.errors import MISSING, InputError
from instances.mesh import Die, Mesh
from instances.numbers import UNKNOWN, share_text
from solver.backends.quiet import standard_output_turned_away
from solver.cli import options
from solver.cli.errors import DONE, INFEASIBLE, INTERRUPTED, NO_PLAN, one_line
from solver.cli.tables import pairs
from solver.cli.terminal import interruptible, progress, show, show_json
from solver.place.graph import FlowGraph, read_graph
from solver.place.qaplib import read_qaplib
from solver.place.run import Placed, UnconnectedError, place_graph, solve_assignment

app = typer.Typer(add_completion=False)

Task = Callable[[EngineLimits, Listener], Placed]
MOST_DIES = 1024
MOST_SEAM_HOPS = 1000
PICTURE_WIDTH = 78
SHORTEST_NAME = 3
EMPTY = "."


@app.command("place", epilog="Example: waferplan place vopd.csv --mesh 4x4")
def place_command(
    graph: Annotated[
        Path, typer.Argument(metavar="GRAPH", help="CSV with source,target,weight, or a QAPLIB .dat file.")
    ],
    mesh: Annotated[str | None, typer.Option(metavar="RxC", help="Dies of a wafer; not for .dat files.")] = None,
    wafers: Annotated[str | None, typer.Option(metavar="RxC", help="Wafers. (default: 1x1)")] = None,
    seam_hops: Annotated[
        str | None, typer.Option(metavar="H", help="Hops that a link between wafers counts as. (default: 1)")
    ] = None,
    disabled: Annotated[
        list[str] | None, typer.Option(metavar="R,C", help="A dead die: row and column from 0; repeatable.")
    ] = None,
    time_limit: Annotated[str, typer.Option(metavar="S", help="Seconds, or a time as 10min.")] = "60",
    gap: Annotated[str, typer.Option(metavar="G", help="Stop at this gap, as 0.01 or 1%.")] = "0",
    seed: Annotated[str, typer.Option(metavar="K", help="Seed of all random choices.")] = "0",
    workers: Annotated[str, typer.Option(metavar="W", help="Threads an engine may use.")] = "1",
    deterministic: Annotated[bool, typer.Option("--deterministic", help="Same input, same output.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, nothing else.")] = False,
) -> int:
    """Place the nodes of a graph on the dies of a mesh so that the sum of weight times hops is least.

    A .dat file brings its own distances, and its value counts ordered pairs. Among placements of the same value one
    with a small largest link load is taken. Ctrl-C ends the search with the best placement so far.
    """
    limits = EngineLimits(
        time_s=options.time_limit("--time-limit", time_limit),
        workers=options.whole("--workers", workers, least=1, most=1024),
        seed=options.whole("--seed", seed, least=0, most=2**31 - 1),
        deterministic=deterministic,
        relative_gap=options.share("--gap", gap),
    )
    task = _task(graph, mesh, wafers, seam_hops, disabled or ())
    try:
        with interruptible(), progress() as shown, standard_output_turned_away():
            shown.note("compiling")
            warm_up()
            shown.note(f"placing {graph.name}")
            placed = task(limits, lambda value, bound: shown.note(f"placing {graph.name}: {_known(value, bound)}"))
    except KeyboardInterrupt:  # before there was a first placement
        return INTERRUPTED
    if as_json:
        show_json(document(placed))
    else:
        show(*summary(placed))
    return exit_code(placed)


def _task(graph: Path, mesh: str | None, wafers: str | None, seam_hops: str | None, disabled: Sequence[str]) -> Task:
    """What is to be solved, read and checked."""
    if graph.suffix.lower() == ".dat":
        given = {"--mesh": mesh, "--wafers": wafers, "--seam-hops": seam_hops, "--disabled": " ".join(disabled) or None}
        for option, text in given.items():
            if text is not None:
                raise InputError(option, text, "none with a .dat file, which has its own distances")
        return partial(solve_assignment, read_qaplib(graph))
    whole = _mesh(mesh, "1x1" if wafers is None else wafers, disabled)
    seam = Fraction(1) if seam_hops is None else _seam(seam_hops)
    flows = read_graph(graph)
    if len(flows.nodes) > len(whole.live_dies):
        allowed = f"at least {len(flows.nodes)} enabled dies, one for each node in {graph}"
        raise InputError("--mesh", mesh, f"{allowed}; there are {len(whole.live_dies)}")
    return partial(_on_mesh, flows, whole, seam)


def _seam(text: str) -> Fraction:
    """A decimal number, exactly."""
    allowed = f"a number from 1 to {MOST_SEAM_HOPS} with at most three decimals, as 2.5"
    if (
        not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", text.strip())
        or not 1 <= Fraction(text.strip()) <= MOST_SEAM_HOPS
    ):
        raise InputError("--seam-hops", text, allowed)
    return Fraction(text.strip())


def _on_mesh(flows: FlowGraph, whole: Mesh, seam: Fraction, limits: EngineLimits, listen: Listener) -> Placed:
    try:
        return place_graph(flows, whole, seam, limits, listen)
    except UnconnectedError as error:
        disabled = " ".join(f"{row},{column}" for row, column in sorted(whole.disabled_dies))
        raise InputError("--disabled", disabled, f"enabled dies that are joined ({error})") from None


def _mesh(mesh: str | None, wafers: str, disabled: Sequence[str]) -> Mesh:
    if mesh is None:
        raise InputError("--mesh", MISSING, "ROWSxCOLUMNS, as 4x4, for a graph without distances")
    rows, columns = options.grid("--mesh", mesh)
    wafer_rows, wafer_columns = options.grid("--wafers", wafers)
    all_rows, all_columns = rows * wafer_rows, columns * wafer_columns
    if all_rows * all_columns > MOST_DIES:
        raise InputError("--mesh", mesh, f"at most {MOST_DIES} dies in all")
    dead = frozenset(_die(text, all_rows, all_columns) for text in disabled)
    return Mesh(all_rows, all_columns, rows, columns, disabled_dies=dead)


def _die(text: str, rows: int, columns: int) -> Die:
    match = re.fullmatch(r"([0-9]{1,6}),([0-9]{1,6})", text.strip())
    if match is None or int(match[1]) >= rows or int(match[2]) >= columns:
        raise InputError("--disabled", text, f"ROW,COLUMN inside the {rows}x{columns} grid, counted from 0")
    return int(match[1]), int(match[2])


def document(placed: Placed) -> dict[str, Any]:
    """What ``--json`` prints."""
    placement: Any = placed.placement
    load = placed.largest_load
    if isinstance(placement, dict):
        placement = {name: list(die) for name, die in placement.items()}
    return {
        "status": placed.status,
        "stop_reason": placed.stop_reason,
        "value": _plain(placed.value),
        "bound": _plain(placed.bound),
        "gap": placed.gap,
        "bound_by": placed.bound_by,
        "largest_link": None
        if load is None
        else {"load": _plain(load.load), "from": [*load.link[0]], "to": [*load.link[1]]},
        "runtime_s": round(placed.runtime_s, 3),
        "placement": placement,
    }


def summary(placed: Placed) -> Iterator[Any]:
    """What people see: a picture where there is a grid, and value, bound, status."""
    if placed.cells is not None and placed.grid is not None:
        yield picture(placed.cells, *placed.grid)
        yield ""
    elif placed.placement is not None:
        yield f"permutation  {' '.join(map(str, placed.placement))}"
        yield ""
    bound = UNKNOWN if placed.bound is None else f"{_shown(placed.bound)} (by {placed.bound_by})"
    yield pairs(
        [
            ("value", _shown(placed.value)),
            ("bound", bound),
            ("gap", share_text(placed.gap)),
            *_load(placed),
            ("status", f"{placed.status}; stopped: {placed.stop_reason}, after {placed.runtime_s:.1f} s"),
        ]
    )


def _load(placed: Placed) -> Iterator[tuple[str, str]]:
    if placed.largest_load is not None:
        (row, column), (other_row, other_column) = placed.largest_load.link
        where = f"from {row},{column} to {other_row},{other_column}"
        yield "largest link load", f"{_shown(placed.largest_load.load)} {where}"


def picture(cells: dict[str, tuple[int, int]], rows: int, columns: int) -> str:
    """The grid with a name on each die that holds one, names cut so that a row fits a terminal."""
    room = max(SHORTEST_NAME, PICTURE_WIDTH // columns - 1)
    name_at = {die: one_line(name) for name, die in cells.items()}
    short = {die: name if len(name) <= room else f"{name[: room - 1]}…" for die, name in name_at.items()}
    width = max(len(name) for name in short.values())
    lines = (
        " ".join(short.get((row, column), EMPTY).rjust(width) for column in range(columns)).rstrip()
        for row in range(rows)
    )
    return "\n".join(lines)


def exit_code(placed: Placed) -> int:
    """What the command answers with."""
    if placed.stop_reason == "interrupted":
        return INTERRUPTED
    if placed.status == "infeasible":
        return INFEASIBLE
    return NO_PLAN if placed.placement is None else DONE


def _known(value: float | None, bound: float) -> str:
    return f"value {_shown(value)}, bound {_shown(bound)}"


def _plain(number: float | None) -> float | int | None:
    """A whole number without its decimals."""
    return int(number) if number is not None and number.is_integer() else number


def _shown(number: float | None) -> str:
    return UNKNOWN if number is None else str(_plain(number))
