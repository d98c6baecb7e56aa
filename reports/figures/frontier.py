"""Length against latency: what each way to spill reaches, and at what price."""

from __future__ import annotations

from instances.numbers import time_text, time_unit
from reports.figure import SHORT_COUNTS, Figure, Row, lines, numbers, quantity, tips
from reports.palette import GREY, SERIES
from solver.capacity.result import CapacityResult

LIMIT = "no memory limit"


def frontier_figure(found: CapacityResult) -> Figure | None:
    """Draw all sizes that were tried; None if none was, or none ran."""
    rows: list[Row] = []
    optima: dict[int, float] = {}
    for way in found.methods:
        for point in way.frontier:
            optima[point.size] = point.optimum_s
            if point.value_s is not None:
                rows.append({"method": way.method, "size": point.size, "value_s": point.value_s})
    if not rows:
        return None
    methods = list(dict.fromkeys(str(row["method"]) for row in rows))
    rows += [{"method": LIMIT, "size": size, "value_s": value} for size, value in optima.items()]
    rows.sort(key=lambda row: (row["method"], row["size"]))
    unit = time_unit(max(row["value_s"] for row in rows))
    for row in rows:
        row.update(value=row["value_s"] / unit.size, shown=time_text(row["value_s"]))
    names = [*methods, LIMIT]
    colours = [SERIES[place % (len(SERIES) - 1)] for place in range(len(methods))]
    # Colours come again after so many lines, with a dash then.
    dashes = [[1, 0] if place < len(SERIES) - 1 else [2, 2] for place in range(len(methods))]
    what = "batch" if found.batch is None else "request length (tokens)"
    return Figure(
        name="frontier",
        title="Length against latency" if found.batch is not None else "Batch against latency",
        caption="Every size that was tried and ran, with the latency of its plan; a line that ends ends for want of "
        "memory, or of time within the budget. The dashed line is what no memory limit would give.",
        layout={
            "data": {"name": "frontier"},
            "mark": {"type": "line", "point": {"size": 45}, "strokeWidth": 2},
            "encoding": {
                "x": quantity("size", what, scale={"zero": False}, axis={"labelExpr": SHORT_COUNTS}),
                "y": quantity("value", f"latency of the plan ({unit.name})"),
                **lines("method", names, [*colours, GREY], [*dashes, [6, 4]]),
                "tooltip": [*tips(method="method"), *numbers(",", size="size"), *tips(shown="latency")],
            },
        },
        data={"frontier": rows},
        height=380,
    )
