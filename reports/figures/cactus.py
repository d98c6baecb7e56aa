"""Cactus plot: how many runs are proved within so much time."""

from __future__ import annotations

from collections.abc import Sequence

from reports.figure import Figure, Row, lines, numbers, quantity, tips
from reports.figures.profile import colours_of
from solver.benchmark.statistics import Row as Summary

_LEAST_S = 0.01


def cactus_figure(summary: Sequence[Summary]) -> Figure | None:
    """One line a method over all suites; None if nothing is proved."""
    times: dict[str, list[float]] = {}
    runs: dict[str, int] = {}
    for row in summary:
        times.setdefault(row.method, []).extend(row.proofs_s)
        runs[row.method] = runs.get(row.method, 0) + row.runs
    rows: list[Row] = [
        {"method": method, "time_s": max(time_s, _LEAST_S), "proved": place, "runs": runs[method]}
        for method, found in times.items()
        for place, time_s in enumerate(sorted(found), start=1)
    ]
    if not rows:
        return None
    methods = list(dict.fromkeys(row.method for row in summary))
    return Figure(
        name="cactus",
        title="Proofs over time",
        caption="How many runs a method proves (gap at most 0.01 %) if each may take so long. Methods without a single "
        "proof have no line.",
        layout={
            "data": {"name": "proofs"},
            "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2.5, "point": {"size": 25}},
            "encoding": {
                "x": quantity(
                    "time_s",
                    "time of a run (s)",
                    scale={"type": "log"},
                    axis={"format": "~g", "values": [0.01, 0.1, 1, 10, 100, 1000, 10_000]},
                ),
                "y": quantity("proved", "runs proved", scale={"domainMin": 0}, axis={"tickMinStep": 1}),
                **lines("method", methods, colours_of(methods)),
                "tooltip": [
                    *tips(method="method", proved="proved", runs="of runs"),
                    *numbers(".3~g", time_s="within (s)"),
                ],
            },
        },
        data={"proofs": rows},
        height=340,
    )
