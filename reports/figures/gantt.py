"""What timelines share: stages by time with bands, marks and thin bars, and how too many marks become fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from instances.numbers import Unit, count_text
from reports.figure import Figure, Row, Spec, category, numbers, quantity, tips
from reports.figures.waiting import KINDS
from reports.source import Floats, Int64s
from solver.simulation.program import Int32s

MOST_MARKS = 12_000
"""Tasks beyond which neighbours are drawn as one; the files stay small and the page quick. Of waits, stalls and
transfers half as many are drawn, the longest ones."""
_GAP = 1 / 500
"""Share of the makespan; a longer gap is drawn over only where there would be too many marks."""
_LEAST_LOST_S = 1e-11
"""Less is rounding."""
_ZOOM = "Drag to move, turn the wheel over it to zoom, double-click to return."


def timeline_of(
    rows: Sequence[Row],
    *,
    stages: int,
    makespan_s: float,
    unit: Unit,
    colour: Spec,
    shown: Sequence[Spec],
    captions: Sequence[str],
    extras: Sequence[Row] = (),
) -> Figure:
    """The picture of a timeline.

    Parameters
    ----------
    rows
        Marks, with the columns of ``Marks`` and those that ``colour`` and ``shown`` name.
    unit
        Of the axis, and of all times in ``rows`` and ``extras``.
    colour, shown
        Encoding of the marks' colour, and what hovering over one shows beside its times.
    extras
        Thin bars of waits, stalls and transfers.
    """
    return Figure(
        name="timeline",
        title="Timeline",
        caption=" ".join([*captions, _ZOOM]),
        layout=_layout(stages, unit, makespan_s / unit.size, colour, [*shown, *_times(unit)], extras=bool(extras)),
        data={
            "chunks": rows,
            "extras": extras,
            # A band behind the marks of each stage: what shows of it is idle time.
            "stages": [{"top": stage - 0.46, "low": stage + 0.46} for stage in range(stages)],
        },
        height=max(220, min(900, 120 + (22 if stages <= 32 else 5) * stages)),
        heavy=True,
    )


def together_caption(computations: int, what: str, most: int) -> str:
    """Says that marks stand for several computations; ``what`` is theirs, such as "chunk computations"."""
    return (
        f"{count_text(computations)} {what} are too many to tell apart: up to {most} neighbours of a stage are drawn "
        "as one."
    )


def _layout(stages: int, unit: Unit, makespan: float, colour: Spec, shown: Sequence[Spec], *, extras: bool) -> Spec:
    x_scale, y_scale = {"domain": [0, makespan], "nice": False}, {"domain": [-0.6, stages - 0.4], "reverse": True}
    y_axis = {"grid": False, "format": "d", "tickMinStep": 1, "domain": False}
    start = quantity("start", f"time ({unit.name})", scale=x_scale, axis={"grid": False})
    top = quantity("top", "stage", scale={**y_scale, "nice": False}, axis=y_axis)
    span = {"x": start, "x2": {"field": "end"}, "y": top, "y2": {"field": "low"}}
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
                "color": colour,
                "tooltip": list(shown),
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


def _times(unit: Unit) -> list[Spec]:
    """What hovering over a chunk says of its times."""
    return [
        *numbers(".6~g", start=f"starts ({unit.name})", end=f"ends ({unit.name})"),
        *numbers(".4~g", compute=f"computes ({unit.name})", lost=f"waits and stalls ({unit.name})"),
    ]


@dataclass(frozen=True)
class Marks:
    """What is drawn as one, of tasks in order of stage and time.

    Attributes
    ----------
    first, last
        The first and the last task of each mark.
    columns
        Stage, start, end, compute, and waits and stalls of each mark, times in the unit of the axis.
    """

    first: Int64s
    last: Int64s
    columns: dict[str, Any]

    @property
    def most(self) -> int:
        """How many tasks are at most drawn as one."""
        return int((self.last - self.first).max(initial=0)) + 1

    def sums(self, amounts: NDArray[Any]) -> NDArray[Any]:
        """Amounts of tasks added up for each mark."""
        return np.add.reduceat(amounts, self.first)

    def ranges(self, labels: NDArray[Any]) -> list[str | int]:
        """Labels of tasks for each mark: one, or the first and the last."""
        pairs = zip(labels[self.first].tolist(), labels[self.last].tolist(), strict=True)
        return [low if low == high else f"{low} to {high}" for low, high in pairs]


def marks_of(start: Floats, end: Floats, compute: Floats, stage: Int32s, group: Int32s, unit: Unit, most: int) -> Marks:
    """Marks for tasks in order of stage and time; with more tasks than ``most`` neighbours become one.

    Gaps, and borders of groups, that would make many more marks than that are drawn over.
    """
    each = -(-len(start) // most)
    makespan_s = float(end.max())
    gap_s = makespan_s * _GAP
    first = _first_of_runs(start, end, stage, group, gap_s, each)
    while each > 1 and len(first) > 2 * most and gap_s < makespan_s:
        gap_s *= 4
        first = _first_of_runs(start, end, stage, np.zeros_like(group), gap_s, each)
    last = np.append(first[1:], len(start)) - 1
    lost = np.add.reduceat(end - start - compute, first)
    columns = {
        "stage": stage[first],
        "start": start[first] / unit.size,
        "end": end[last] / unit.size,
        "compute": np.add.reduceat(compute, first) / unit.size,
        "lost": np.where(lost > _LEAST_LOST_S, lost, 0.0) / unit.size,
    }
    return Marks(first, last, columns)


def _first_of_runs(start: Floats, end: Floats, stage: Int32s, group: Int32s, gap_s: float, each: int) -> Int64s:
    """Where runs of at most ``each`` tasks begin that follow one another without a gap."""
    breaks = np.ones(len(start), dtype=bool)
    breaks[1:] = (np.diff(stage) != 0) | (np.diff(group) != 0) | (start[1:] - end[:-1] > gap_s)
    begins = np.flatnonzero(breaks)
    place = np.arange(len(start)) - np.repeat(begins, np.diff(np.append(begins, len(start))))
    return np.flatnonzero(place % each == 0)
