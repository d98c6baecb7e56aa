"""Incumbent and bound over solve time."""

from __future__ import annotations

from instances.numbers import time_text, time_unit
from reports.figure import Figure, Row, lines, quantity, tips
from reports.palette import BLUE, VERMILION
from solver.result import Result

SERIES = {"best plan": VERMILION, "proved bound": BLUE}
_LEAST_S = 0.01
"""Earlier moments are drawn here: an axis of logarithms has no zero."""
_TICKS_S = [digit * 10.0**power for power in range(-2, 5) for digit in (1, 2, 5)]
_SHOWN_GAPS = 4
_SHOWN_SHARE = 0.02
"""The axis reaches so many gaps, or so much of the value, beyond what was found in the end."""


def progress_figure(result: Result) -> Figure | None:
    """Draw the trace of a run; None if it has none."""
    rows: list[Row] = []
    for point in result.trace:
        for series, value in zip(SERIES, (point.value, point.bound), strict=True):
            if value is not None:
                rows.append({"t": max(point.t_s, _LEAST_S), "what": series, "value_s": value})
    if not rows:
        return None
    # Both are known until the run ends.
    for series in SERIES:
        last = next((row for row in reversed(rows) if row["what"] == series), None)
        if last is not None and last["t"] < result.runtime_s:
            rows.append({**last, "t": result.runtime_s})
    low, high = _shown(rows, result.objective.value, result.objective.bound)
    unit = time_unit(high)
    for row in rows:
        row.update(value=row["value_s"] / unit.size, shown=time_text(row["value_s"]), at=f"{row['t']:.2f} s")
    name = result.objective.name.replace("_", " ")
    times = [row["t"] for row in rows]
    ticks = _TICKS_S
    if sum(min(times) <= tick <= max(times) for tick in ticks) < 2:
        ticks = [float(f"{tick:.3g}") for tick in (min(times), max(times))]
    cut = any(not low <= row["value_s"] <= high for row in rows)
    return Figure(
        name="progress",
        title="Search: best plan and bound",
        caption="The proved bound rises, the best plan falls; what is left between them is the gap."
        + (" Early values far from these are cut off." if cut else ""),
        layout={
            "data": {"name": "trace"},
            "mark": {
                "type": "line",
                "interpolate": "step-after",
                "point": {"size": 30},
                "strokeWidth": 2,
                "clip": True,
            },
            "encoding": {
                "x": quantity(
                    "t",
                    "solve time (s)",
                    scale={"type": "log", "nice": False, "padding": 8},
                    axis={"format": "~g", "values": ticks, "labelOverlap": True},
                ),
                "y": quantity(
                    "value",
                    f"{name} ({unit.name})",
                    scale={"zero": False, "domain": [low / unit.size, high / unit.size], "padding": 8},
                ),
                **lines("what", list(SERIES), list(SERIES.values()), [[1, 0], [6, 3]]),
                "tooltip": tips(what="what", shown="value", at="after"),
            },
        },
        data={"trace": rows},
        height=280,
    )


def _shown(rows: list[Row], value: float | None, bound: float | None) -> tuple[float, float]:
    """Range of the axis: all there is, but not far beyond the end of the search where both ends are known."""
    low, high = min(row["value_s"] for row in rows), max(row["value_s"] for row in rows)
    if value is not None and bound is not None:
        reach = max(_SHOWN_GAPS * (value - bound), _SHOWN_SHARE * value)
        low, high = max(low, bound - reach), min(high, value + reach)
    return (low, high) if low < high else (low * 0.99, high * 1.01)
