"""The timeline: stages by time, chunks coloured by prefix, and what keeps stages from computing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reports.figure import SHORT_COUNTS, Figure, Row, Spec, bottom, category, numbers, quantity, rows_of, tips
from reports.figures.waiting import KINDS, waits_and_transfers
from reports.palette import PREFIX_SCHEME
from reports.source import Floats, Replayed
from solver.numbers import Unit, count_text, time_unit
from solver.simulation.program import Int32s

MOST_MARKS = 12_000
"""Tasks beyond which neighbours are drawn as one; the files stay small and the page quick. Of waits, stalls and
transfers half as many are drawn, the longest ones."""
_GAP = 1 / 500
"""Share of the makespan; a longer gap is drawn over only where there would be too many marks."""


def timeline_figure(view: Replayed, most_marks: int = MOST_MARKS) -> Figure:
    """Draw the timeline of a replayed plan; with more tasks than ``most_marks`` neighbours become one mark."""
    unit = time_unit(view.makespan_s)
    chunks, each = _chunks(view, unit, most_marks)
    extras, left_out = waits_and_transfers(view, unit, most_marks // 2)
    captions = ["Every stage's chunks, coloured by the tokens before them; what stays grey is a bubble."]
    if each > 1:
        captions.append(
            f"{count_text(view.program.tasks)} chunk computations are too many to tell apart: up to {each} neighbours "
            "of a stage are drawn as one (export to Perfetto shows each)."
        )
    if extras:
        captions.append("Thin bars: KV on its way (upper edge), stalls and waits (lower edge).")
    if left_out:
        captions.append(f"Only the {count_text(len(extras))} longest of these are drawn.")
    captions.append("Drag to move, turn the wheel over it to zoom, double-click to return.")
    stages = view.program.stages
    return Figure(
        name="timeline",
        title="Timeline",
        caption=" ".join(captions),
        layout=_layout(stages, unit, view.makespan_s / unit.size, bool(extras)),
        data={
            "chunks": chunks,
            "extras": extras,
            "stages": [{"top": stage - 0.46, "low": stage + 0.46} for stage in range(stages)],
        },
        height=max(220, min(900, 120 + (22 if stages <= 32 else 5) * stages)),
        heavy=True,
    )


def _layout(stages: int, unit: Unit, makespan: float, extras: bool) -> Spec:
    x_scale, y_scale = {"domain": [0, makespan], "nice": False}, {"domain": [-0.6, stages - 0.4], "reverse": True}
    y_axis = {"grid": False, "format": "d", "tickMinStep": 1, "domain": False}
    start = quantity("start", f"time ({unit.name})", scale=x_scale, axis={"grid": False})
    top = quantity("top", "stage", scale={**y_scale, "nice": False}, axis=y_axis)
    span = {"x": start, "x2": {"field": "end"}, "y": top, "y2": {"field": "low"}}
    chunk_tips = [
        *tips(chunk="chunk", wave="wave", stage="stage"),
        *numbers(",", tokens="tokens", before="tokens before"),
        *numbers(".6~g", start=f"starts ({unit.name})", end=f"ends ({unit.name})"),
        *numbers(".4~g", compute=f"computes ({unit.name})", lost=f"waits and stalls ({unit.name})"),
    ]
    layers: list[Spec] = [
        {
            "data": {"name": "stages"},
            "mark": {"type": "rect", "style": "faint", "clip": True},
            "encoding": {
                **span,
                "x": {"datum": 0, "type": "quantitative", "scale": x_scale},
                "x2": {"datum": makespan},
            },
        },
        {
            "data": {"name": "chunks"},
            "params": [{"name": "zoom", "select": {"type": "interval"}, "bind": "scales"}],
            "transform": [
                {"calculate": "datum.stage - 0.42", "as": "top"},
                {"calculate": "datum.stage + 0.42", "as": "low"},
            ],
            "mark": {"type": "rect", "clip": True},
            "encoding": {
                **span,
                "color": quantity(
                    "before",
                    "tokens before the chunk",
                    scale={"scheme": PREFIX_SCHEME},
                    legend=bottom(gradientLength=200, labelExpr=SHORT_COUNTS),
                ),
                "tooltip": chunk_tips,
            },
        },
    ]
    if extras:
        layers.append(
            {
                "data": {"name": "extras"},
                "mark": {"type": "rect", "clip": True},
                "encoding": {
                    **span,
                    "color": category(
                        "kind",
                        None,
                        scale={"domain": list(KINDS), "range": list(KINDS.values())},
                        legend={"orient": "top", "columns": 4},
                    ),
                    "tooltip": [
                        *tips(kind="what", stage="stage"),
                        *numbers(".6~g", start=f"from ({unit.name})", end=f"to ({unit.name})"),
                        *tips(size="size"),
                    ],
                },
            }
        )
    return {"resolve": {"scale": {"color": "independent"}}, "layer": layers}


def _chunks(view: Replayed, unit: Unit, most_marks: int) -> tuple[list[Row], int]:
    """Marks, and how many tasks are at most drawn as one."""
    tasks, program = view.tables["tasks"], view.program
    order = np.lexsort((tasks["start_s"], program.stage))
    start, end = tasks["start_s"][order], tasks["end_s"][order]
    stage, wave = program.stage[order], program.wave[order]
    each = -(-program.tasks // most_marks)
    first = _few_runs(start, end, stage, wave, view.makespan_s * _GAP, each, most_marks)
    last = np.append(first[1:], len(order)) - 1
    chunk, prefix, tokens = program.chunk[order], view.prefix_tokens[order], view.chunk_tokens[order]
    compute = tasks["compute_s"][order]
    computed = np.add.reduceat(compute, first)
    lost = np.add.reduceat(end - start - compute, first)
    rows = rows_of(
        {
            "start": start[first] / unit.size,
            "end": end[last] / unit.size,
            "stage": stage[first],
            "wave": wave[first],
            "chunk": chunk[first]
            if each == 1
            else [_range(a, b) for a, b in zip(chunk[first].tolist(), chunk[last].tolist(), strict=True)],
            "before": prefix[first],
            "tokens": np.add.reduceat(tokens, first),
            "compute": computed / unit.size,
            "lost": np.where(lost > 1e-11, lost, 0.0) / unit.size,
        }
    )
    return rows, int((last - first).max()) + 1


def _few_runs(
    start: Floats, end: Floats, stage: Int32s, wave: Int32s, gap_s: float, each: int, most: int
) -> NDArray[np.int64]:
    """Where runs begin; gaps and borders of waves that would make too many of them are drawn over."""
    first = _first_of_runs(start, end, stage, wave, gap_s, each)
    while each > 1 and len(first) > 2 * most and gap_s < end.max():
        gap_s *= 4
        first = _first_of_runs(start, end, stage, np.zeros_like(wave), gap_s, each)
    return first


def _first_of_runs(
    start: Floats, end: Floats, stage: Int32s, wave: Int32s, gap_s: float, each: int
) -> NDArray[np.int64]:
    """Where runs of at most ``each`` tasks begin that follow one another without a gap."""
    breaks = np.ones(len(start), dtype=bool)
    breaks[1:] = (np.diff(stage) != 0) | (np.diff(wave) != 0) | (start[1:] - end[:-1] > gap_s)
    begins = np.flatnonzero(breaks)
    place = np.arange(len(start)) - np.repeat(begins, np.diff(np.append(begins, len(start))))
    return np.flatnonzero(place % each == 0)


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"
