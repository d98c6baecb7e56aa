"""Performance profile: how many runs come how close to the best known (Dolan and Moré, 2002)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.figure import Figure, Row, lines, numbers, quantity, tips
from reports.palette import SERIES
from solver.benchmark.record import Record
from solver.benchmark.statistics import Reference, loss
from solver.benchmark.task import label_of

LEAST_LOSS = 1e-5
"""Losses below are drawn here: an axis of logarithms has no zero."""


def profile_figure(records: Sequence[Record], known: Mapping[str, Reference]) -> Figure | None:
    """One line a method over all runs; None if no run has a value to compare."""
    methods = list(dict.fromkeys(label_of(record.method, record.knobs, record.chunks) for record in records))
    rows: list[Row] = []
    for method in methods:
        own = [record for record in records if label_of(record.method, record.knobs, record.chunks) == method]
        losses = sorted(found for record in own if (found := loss(record, known)) is not None)
        for place, found in enumerate(losses, start=1):
            rows.append({"method": method, "loss": max(found, LEAST_LOSS), "share": place / len(own), "runs": len(own)})
    if not rows:
        return None
    most = max(1.0, *(float(row["loss"]) for row in rows))
    for method in methods:
        own_rows = [row for row in rows if row["method"] == method]
        if own_rows:
            rows.append({**own_rows[-1], "loss": most * 1.1})
    return Figure(
        name="profile",
        title="Performance profile",
        caption="How large a share of all its runs, also those without a plan, a method brings within a loss against "
        "the best known value; further up and further left is better. Losses below 0.001 % stand at the left edge.",
        layout={
            "data": {"name": "profile"},
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2.5, "clip": True},
            "encoding": {
                "x": quantity(
                    "loss",
                    "loss against the best known value, at most",
                    scale={"type": "log", "domain": [LEAST_LOSS, most * 1.1], "nice": False},
                    axis={"format": "~%", "values": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100]},
                ),
                "y": quantity("share", "share of runs", scale={"domain": [0, 1]}, axis={"format": ".0%"}),
                **lines("method", methods, colours_of(methods)),
                "tooltip": [
                    *tips(method="method"),
                    *numbers(".4%", loss="loss at most"),
                    *numbers(".1%", share="share of runs"),
                    *tips(runs="runs"),
                ],
            },
        },
        data={"profile": rows},
        height=380,
    )


def colours_of(methods: Sequence[str]) -> list[str]:
    """A colour for each method, in the order of the records."""
    return [SERIES[place % len(SERIES)] for place in range(len(methods))]
