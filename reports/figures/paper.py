"""The paper's evaluation done again: averages against GPipe beside the paper's own."""

from __future__ import annotations

from collections.abc import Sequence

from reports.figure import Figure, Row, category, quantity, tips
from reports.palette import BLUE, GREY
from solver.benchmark.paper import PAPER, REFERENCE, SUITE, averages
from solver.benchmark.record import Record

OWN, OURS = "the paper says", "measured here"


def paper_figure(records: Sequence[Record]) -> Figure | None:
    """Bars of latency and throughput; None if the runs are not of the paper's suite, or GPipe is missing."""
    found = [average for average in averages(records) if average.compared]
    if not any(record.suite == SUITE and record.method == REFERENCE for record in records) or not found:
        return None
    latency, throughput = "mean latency, of GPipe's", "requests a second, of GPipe's"
    rows: list[Row] = [
        {"method": "mocap (paper)", "what": latency, "factor": 1 + PAPER["latency"], "source": OWN},
        {"method": "mocap (paper)", "what": throughput, "factor": PAPER["throughput"], "source": OWN},
    ]
    for average in found:
        for what, factor in (
            (latency, None if average.latency is None else 1 + average.latency),
            (throughput, average.throughput),
        ):
            if factor is not None:
                rows.append({"method": average.method, "what": what, "factor": factor, "source": OURS})
    for row in rows:
        row["shown"] = f"{row['factor']:.2f}×"
    names = list(dict.fromkeys(str(row["method"]) for row in rows))
    bars = {
        "y": category("method", None, sort=None, scale={"domain": names}),
        "x": quantity("factor", "times GPipe's", scale={"domainMin": 0}, axis={"tickCount": 6}),
    }
    return Figure(
        name="paper",
        title="The paper's comparison, done again",
        caption="Averages over the instances on which both run; the paper's are of its own instances, whose lengths, "
        "batches and precision its text does not give.",
        layout={
            "data": {"name": "paper"},
            "facet": {"field": "what", "type": "nominal", "title": None, "sort": [latency, throughput]},
            "resolve": {"scale": {"x": "independent"}},
            "spec": {
                "layer": [
                    {
                        "mark": "bar",
                        "encoding": {
                            **bars,
                            "color": category(
                                "source",
                                None,
                                scale={"domain": [OWN, OURS], "range": [GREY, BLUE]},
                                legend={"orient": "top"},
                            ),
                            "tooltip": tips(method="method", what="what", shown="factor"),
                        },
                    },
                    {
                        "mark": {"type": "text", "align": "left", "dx": 4, "style": "ink"},
                        "encoding": {**bars, "text": {"field": "shown"}},
                    },
                ]
            },
        },
        data={"paper": rows},
        panels=2,
        least_panel=400,
        margin=200,
    )
