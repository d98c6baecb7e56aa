"""The timeline: stages by time, chunks coloured by prefix, and what keeps stages from computing."""

from __future__ import annotations

import numpy as np

from instances.numbers import Unit, count_text, time_unit
from reports.figure import SHORT_COUNTS, Figure, Row, bottom, numbers, quantity, rows_of, tips
from reports.figures.gantt import MOST_MARKS, marks_of, timeline_of, together_caption
from reports.figures.waiting import waits_and_transfers
from reports.source import Replayed


def timeline_figure(view: Replayed, most_marks: int = MOST_MARKS) -> Figure:
    """Draw the timeline of a replayed plan; with more tasks than ``most_marks`` neighbours become one mark."""
    unit = time_unit(view.makespan_s)
    chunks, each = _chunks(view, unit, most_marks)
    extras, left_out = waits_and_transfers(view, unit, most_marks // 2)
    captions = ["Every stage's chunks, coloured by the tokens before them; what stays grey is a bubble."]
    if each > 1:
        captions += [
            together_caption(view.program.tasks, "chunk computations", each),
            "An export to Perfetto shows each.",
        ]
    if extras:
        captions.append("Thin bars: KV on its way (upper edge), stalls and waits (lower edge).")
    if left_out:
        captions.append(f"Only the {count_text(len(extras))} longest of these are drawn.")
    colour = quantity("before", "tokens before the chunk", legend=bottom(gradientLength=200, labelExpr=SHORT_COUNTS))
    shown = [*tips(chunk="chunk", wave="wave", stage="stage"), *numbers(",", tokens="tokens", before="tokens before")]
    return timeline_of(
        chunks,
        stages=view.program.stages,
        makespan_s=view.makespan_s,
        unit=unit,
        colour=colour,
        shown=shown,
        captions=captions,
        extras=extras,
    )


def _chunks(view: Replayed, unit: Unit, most_marks: int) -> tuple[list[Row], int]:
    """Marks, and how many tasks are at most drawn as one."""
    tasks, program = view.tables["tasks"], view.program
    order = np.lexsort((tasks["start_s"], program.stage))
    start, end, compute = (tasks[name][order] for name in ("start_s", "end_s", "compute_s"))
    wave = program.wave[order]
    marks = marks_of(start, end, compute, program.stage[order], wave, unit, most_marks)
    rows = rows_of(
        {
            **marks.columns,
            "wave": wave[marks.first],
            "chunk": marks.ranges(program.chunk[order]),
            "before": view.prefix_tokens[order][marks.first],
            "tokens": marks.sums(view.chunk_tokens[order]),
        }
    )
    return rows, marks.most
