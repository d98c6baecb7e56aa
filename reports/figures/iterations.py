"""Iterations of a serving policy: when each stage runs them, how many tokens they have, how long they take."""

from __future__ import annotations

import numpy as np

from instances.numbers import time_text, time_unit
from reports.figure import SHORT_COUNTS, Figure, bottom, category, numbers, quantity, rows_of, tips
from reports.figures.gantt import MOST_MARKS, marks_of, timeline_of, together_caption
from reports.palette import BLUE, VERMILION
from reports.served import Served
from reports.source import Int64s

SERIES = {"through all stages": BLUE, "on the slowest stage": VERMILION}
MOST_POINTS = 3000
"""Iterations beyond which only some are drawn in the pictures over time."""


def iterations_timeline(view: Served, most_marks: int = MOST_MARKS) -> Figure:
    """Stages by time; with more tasks than ``most_marks`` neighbours become one mark."""
    unit = time_unit(view.makespan_s)
    stages, count = view.program.stages, view.iterations
    # By stage, then by time: the order of the iterations, which each die keeps.
    start, end, compute = (view.times_s(name).T.ravel() for name in ("start_s", "end_s", "compute_s"))
    stage = np.repeat(np.arange(stages, dtype=np.int32), count)
    number = np.tile(np.arange(count), stages)
    marks = marks_of(start, end, compute, stage, np.zeros_like(stage), unit, most_marks)
    tokens = marks.sums(view.tokens[number])
    rows = rows_of(
        {
            **marks.columns,
            "iteration": marks.ranges(number),
            "tokens": tokens,
            "mean": tokens / (marks.last - marks.first + 1),
        }
    )
    captions = [
        "Every stage's iterations, coloured by their tokens, prompts and decodes alike; what stays grey is idle."
    ]
    if marks.most > 1:
        captions += [together_caption(len(start), "computations", marks.most), "Their colour is that of their mean."]
    return timeline_of(
        rows,
        stages=stages,
        makespan_s=view.makespan_s,
        unit=unit,
        colour=quantity(
            "mean",
            "tokens of an iteration",
            scale={"domainMin": 0},
            legend=bottom(gradientLength=200, labelExpr=SHORT_COUNTS),
        ),
        shown=[*tips(iteration="iteration", stage="stage"), *numbers(",", tokens="tokens")],
        captions=captions,
    )


def tokens_figure(view: Served) -> Figure:
    """Tokens of the iterations over time."""
    clock = time_unit(view.makespan_s)
    chosen, caption = _some(view)
    start, end = view.times_s("start_s")[:, 0], view.times_s("end_s")[:, 0]
    rows = rows_of(
        {
            "iteration": chosen,
            "start": start[chosen] / clock.size,
            "end": end[chosen] / clock.size,
            "tokens": view.tokens[chosen],
        }
    )
    return Figure(
        name="iteration-tokens",
        title="Tokens of the iterations",
        caption="Each bar is an iteration at the first stage: its width is its time there, its height its tokens, "
        "prompts and decodes alike." + caption,
        layout={
            "data": {"name": "iterations"},
            "mark": {"type": "rect", "color": BLUE, "stroke": BLUE, "strokeWidth": 0.6},
            "encoding": {
                "x": quantity("start", f"time ({clock.name})", scale={"nice": False}, axis={"grid": False}),
                "x2": {"field": "end"},
                "y": quantity(
                    "tokens",
                    "tokens",
                    scale={"zero": True, "domainMin": 0},
                    axis={"labelExpr": SHORT_COUNTS, "tickCount": 5},
                ),
                "y2": {"datum": 0},
                "tooltip": [
                    *tips(iteration="iteration"),
                    *numbers(",", tokens="tokens"),
                    *numbers(".6~g", start=f"from ({clock.name})", end=f"to ({clock.name})"),
                ],
            },
        },
        data={"iterations": rows},
        height=240,
        heavy=True,
    )


def times_figure(view: Served) -> Figure:
    """How long iterations take: on the slowest stage, and from the first stage's start to the last stage's end."""
    clock = time_unit(view.makespan_s)
    chosen, caption = _some(view)
    start, end = view.times_s("start_s"), view.times_s("end_s")
    through, slowest = end[:, -1] - start[:, 0], view.times_s("compute_s").max(axis=1)
    unit = time_unit(float(through.max()))
    took = np.concatenate([through[chosen], slowest[chosen]])
    rows = rows_of(
        {
            "what": [name for name in SERIES for _ in chosen],
            "iteration": np.tile(chosen, 2),
            "start": np.tile(start[chosen, 0], 2) / clock.size,
            "took": took / unit.size,
            "shown": [time_text(value) for value in took.tolist()],
            "tokens": np.tile(view.tokens[chosen], 2),
        }
    )
    return Figure(
        name="iteration-times",
        title="Times of the iterations",
        caption="Every iteration at the moment when it starts: its time from the first stage to the end of the last, "
        "and its compute on the stage that is slowest with it." + caption,
        layout={
            "data": {"name": "iterations"},
            "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.9},
            "encoding": {
                "x": quantity(
                    "start", f"time ({clock.name})", scale={"nice": False, "padding": 6}, axis={"grid": False}
                ),
                "y": quantity("took", f"time of an iteration ({unit.name})", scale={"zero": True}),
                "color": category(
                    "what",
                    None,
                    scale={"domain": list(SERIES), "range": list(SERIES.values())},
                    legend={"orient": "top", "symbolSize": 60},
                ),
                "tooltip": [
                    *tips(iteration="iteration", what="time", shown="takes"),
                    *numbers(",", tokens="tokens"),
                ],
            },
        },
        data={"iterations": rows},
        height=280,
        heavy=True,
    )


def _some(view: Served) -> tuple[Int64s, str]:
    """Evenly chosen iterations, and what the caption says if these are not all."""
    step = -(-view.iterations // MOST_POINTS)
    few = "" if step == 1 else f" One iteration in {step} is drawn."
    return np.arange(0, view.iterations, step), few
