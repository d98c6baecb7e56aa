"""The timeline of a program whose requests' tokens are not known: stages by time, chunks coloured by their number."""

from __future__ import annotations

import numpy as np

from instances.numbers import time_unit
from reports.figure import Figure, bottom, quantity, rows_of, tips
from reports.figures.gantt import MOST_MARKS, marks_of, timeline_of, together_caption
from reports.source import Traced


def program_timeline(view: Traced, most_marks: int = MOST_MARKS) -> Figure:
    """Draw every task that computes; with more than ``most_marks`` neighbours become one mark."""
    unit = time_unit(view.makespan_s)
    tasks, program = view.tables["tasks"], view.program
    order = np.lexsort((tasks["start_s"], program.stage))
    order = order[tasks["compute_s"][order] > 0]
    start, end, compute = (tasks[name][order] for name in ("start_s", "end_s", "compute_s"))
    chunk, wave = program.chunk[order], program.wave[order]
    marks = marks_of(start, end, compute, program.stage[order], wave, unit, most_marks)
    rows = rows_of(
        {
            **marks.columns,
            "wave": marks.ranges(wave),
            "chunk": marks.ranges(chunk),
            "number": chunk[marks.first],
        }
    )
    captions = ["Every stage's chunks, coloured by their number; what stays grey is a bubble."]
    if marks.most > 1:
        captions.append(together_caption(len(order), "chunk computations", marks.most))
    return timeline_of(
        rows,
        stages=program.stages,
        makespan_s=view.makespan_s,
        unit=unit,
        colour=quantity("number", "number of the chunk", legend=bottom(gradientLength=200, tickMinStep=1, format="d")),
        shown=tips(chunk="chunk", wave="wave", stage="stage"),
        captions=captions,
    )
