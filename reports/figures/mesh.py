"""The mesh: where the stages sit, how full dies are, what links carry, who lends memory to whom."""

from __future__ import annotations

import math

import numpy as np

from instances.mesh import SWITCH
from instances.numbers import UNKNOWN, byte_text, share_text
from reports.figure import Figure, Row, rows_of
from reports.figures.mesh_layers import mesh_layers
from reports.source import Traced
from solver.simulation.network import HOST

HALF = 0.3
"""Half the side of a die; dies are one apart."""
_SIDE = 0.08
_STUB = 0.18
_WIDTH = 760
MOST_ARCS = 200
"""Spill links that are drawn; the largest ones are taken."""


def mesh_figure(view: Traced) -> Figure:
    """Draw the mesh of a replayed answer."""
    hardware = view.instance.hardware
    rows, columns = hardware.total_rows, hardware.total_columns
    arcs, left_out = _arcs(view)
    hosts = _hosts(view)
    data = {
        "dies": _dies(view),
        "dead": [{"row": row, "column": column} for row, column in hardware.disabled_dies],
        "dead_links": [_middle(a, b) for a, b in hardware.disabled_links],
        "seams": _seams(view),
        "links": _links(view),
        "arcs": arcs,
        "hosts": hosts,
    }
    links = view.tables["links"]
    hottest = float((links["busy_s"] / view.makespan_s).max(initial=0.0))
    layers = mesh_layers(rows, columns, hottest=hottest, arcs=len(arcs) // 3, kept=view.kept_words)
    return Figure(
        name="mesh",
        title="Placement, memory and link load",
        caption=" ".join(_captions(view, arcs=bool(arcs), left_out=left_out, hosts=bool(hosts))),
        layout={
            "resolve": {"scale": {"color": "independent", "strokeWidth": "independent"}},
            "layer": [layer for layer in layers if data[layer["data"]["name"]]],
        },
        data=data,
        height=round(60 + (_WIDTH - 60) * min(2.0, rows / columns)) + 50,
        most_width=_WIDTH,
        square=True,
    )


def _captions(view: Traced, *, arcs: bool, left_out: int, hosts: bool) -> list[str]:
    hardware = view.instance.hardware
    captions = [
        "Each square is a die with the number of its stage; the fuller its memory at its peak, the darker.",
        "Lines are links, one for each direction, side by side: the more bytes, the wider; the longer in use, the "
        "redder.",
    ]
    if arcs:
        captions.append(
            "Dashed curves lead from a stage to the dies that keep part of its KV; point at a die to see its own."
        )
    if left_out:
        captions.append(f"Only the {MOST_ARCS} largest of {MOST_ARCS + left_out} spill links are drawn.")
    if hosts:
        captions.append("H marks a stage that keeps KV at its host.")
    if hardware.disabled_dies or hardware.disabled_links:
        captions.append("Crosses are dead dies and dead links.")
    if hardware.wafers != (1, 1):
        captions.append("Dotted lines are the seams between wafers.")
    if hardware.topology != "mesh":
        captions.append(f"Links of the {hardware.topology} that lead out of the picture are short ends.")
    return captions


def _dies(view: Traced) -> list[Row]:
    run, program, hardware = view.run, view.program, view.instance.hardware
    idle = 1 - np.bincount(program.die, weights=program.duration_ps, minlength=program.dies) / (view.makespan_s * 1e12)
    layers = view.layers
    rows: list[Row] = []
    for die, (row, column) in enumerate(program.network.dies.tolist()):
        peak, capacity = program.bytes_of(run.peak_units[die]), hardware.die_at((row, column)).hbm_bytes
        stages = view.stages_of_die[die]
        rows.append(
            {
                **_square(row, column),
                "stage": view.stage_name(die),
                "layers": UNKNOWN if layers is None else " + ".join(str(layers[stage]) for stage in stages),
                "share": round(peak / capacity, 6),
                "peak": byte_text(peak),
                "of": share_text(peak / capacity),
                "idle": share_text(float(idle[die])),
            }
        )
    used = {(row["row"], row["column"]) for row in rows}
    spare = {"stage": "", "layers": "none, this die is spare", "share": 0, "peak": "0 B", "of": "0 %", "idle": "100 %"}
    return rows + [{**_square(*place), **spare} for place in hardware.live_dies if place not in used]


def _square(row: int, column: int) -> Row:
    edges = {"x1": column - HALF, "x2": column + HALF, "y1": row - HALF, "y2": row + HALF}
    return {"die": f"{row},{column}", "row": row, "column": column, **edges}


def _links(view: Traced) -> list[Row]:
    table, makespan_s = view.tables["links"], view.makespan_s
    ends = [
        _line(*row)
        for row in zip(
            table["from_row"].tolist(),
            table["from_column"].tolist(),
            table["to_row"].tolist(),
            table["to_column"].tolist(),
            strict=True,
        )
    ]
    busy = table["busy_s"] / makespan_s
    rows = rows_of(
        {
            "name": table["link"],
            "bytes": table["carried_bytes"],
            "busy": busy,
            "carried": [byte_text(value) for value in table["carried_bytes"].tolist()],
            "held": [share_text(value) for value in busy.tolist()],
            "speed": [f"{byte_text(value)}/s" for value in table["bandwidth_bytes_per_s"].tolist()],
            "x1": [line[0] for line in ends],
            "y1": [line[1] for line in ends],
            "x2": [line[2] for line in ends],
            "y2": [line[3] for line in ends],
        }
    )
    # Busy links last, so that they lie on top.
    return sorted((row for row in rows if row["bytes"]), key=lambda row: float(row["busy"]))


def _line(row: int, column: int, to_row: int, to_column: int) -> tuple[float, float, float, float]:
    """Ends x, y, x, y of a directed link; right-hand traffic."""
    outside = (HOST, SWITCH[0])
    if row in outside:
        return _short_end(to_column, to_row, 1, down=row == HOST)
    if to_row in outside:
        return _short_end(column, row, -1, down=to_row == HOST)
    down, right = to_row - row, to_column - column
    if abs(down) + abs(right) > 1:  # the way round of a torus
        down, right = -int(math.copysign(1, down)) if down else 0, -int(math.copysign(1, right)) if right else 0
        reach = HALF + _STUB
    else:
        reach = 1 - HALF
    x, y = column - down * _SIDE, row + right * _SIDE
    return x + right * HALF, y + down * HALF, x + right * reach, y + down * reach


def _short_end(column: int, row: int, side: int, *, down: bool) -> tuple[float, float, float, float]:
    """A short end above a die (switch) or below it (host)."""
    way, x = (1 if down else -1), column + side * _SIDE
    return x, row + way * HALF, x, row + way * (HALF + _STUB)


def _arcs(view: Traced) -> tuple[list[Row], int]:
    """Three points for each pair of stage and creditor, and how many pairs are left out."""
    kept = [(stage, creditor, amount) for (stage, creditor), amount in view.kept.items() if creditor != "host"]
    largest = sorted(kept, key=lambda item: -item[2])[:MOST_ARCS]
    rows = []
    for stage, creditor, amount in largest:
        (row, column), (to_row, to_column) = view.placement[stage], view.placement[creditor]
        down, right = to_row - row, to_column - column
        length = math.hypot(down, right) or 1.0
        inset, bow = HALF * 0.75 / length, 0.3 + 0.08 * length
        points = (
            (row + down * inset, column + right * inset),
            (row + down / 2 + bow * right / length, column + right / 2 - bow * down / length),
            (to_row - down * inset, to_column - right * inset),
        )
        for step, (y, x) in enumerate(points):
            rows.append(
                {
                    "link": f"stage {stage} to stage {creditor}",
                    "stage": str(stage),
                    "step": step,
                    "row": round(y, 4),
                    "column": round(x, 4),
                    "tokens": amount,
                    "kept": view.kept_text(amount),
                }
            )
    return rows, len(kept) - len(largest)


def _hosts(view: Traced) -> list[Row]:
    return [
        {
            "stage": str(stage),
            "row": view.placement[stage][0] + HALF * 0.65,
            "column": view.placement[stage][1] + HALF * 0.7,
            "kept": view.kept_text(amount),
        }
        for (stage, creditor), amount in view.kept.items()
        if creditor == "host"
    ]


def _middle(a: tuple[int, int], b: tuple[int, int]) -> Row:
    return {"row": (a[0] + b[0]) / 2, "column": (a[1] + b[1]) / 2}


def _seams(view: Traced) -> list[Row]:
    hardware = view.instance.hardware
    rows, columns = hardware.total_rows, hardware.total_columns
    across = [
        {"x1": -0.5, "x2": columns - 0.5, "y1": row - 0.5, "y2": row - 0.5}
        for row in range(hardware.rows, rows, hardware.rows)
    ]
    down = [
        {"x1": column - 0.5, "x2": column - 0.5, "y1": -0.5, "y2": rows - 0.5}
        for column in range(hardware.columns, columns, hardware.columns)
    ]
    return across + down
