"""Requests of a serving policy, from arrival to last token."""

from __future__ import annotations

import numpy as np

from instances.numbers import count_text, time_text, time_unit
from reports.figure import Figure, numbers, quantity, rows_of, tips
from reports.palette import BLUE
from reports.served import Served

MOST_REQUESTS = 2000


def requests_figure(view: Served) -> Figure:
    """One bar a request, in the order of the input."""
    clock = time_unit(view.makespan_s)
    step = -(-view.requests // MOST_REQUESTS)
    chosen = np.arange(0, view.requests, step)
    asked = view.instance.workload.all_requests()
    took = view.done_s - view.arrived_s
    rows = rows_of(
        {
            "request": chosen,
            "top": chosen - 0.42 * step,
            "low": chosen + 0.42 * step,
            "arrived": view.arrived_s[chosen] / clock.size,
            "done": view.done_s[chosen] / clock.size,
            "took": [time_text(value) for value in took[chosen].tolist()],
            "prompt": [count_text(asked[number].tokens) for number in chosen.tolist()],
        }
    )
    few = "" if step == 1 else f" One request in {step} is drawn."
    return Figure(
        name="requests",
        title="Requests",
        caption=f"Each bar is a request, from its arrival to its last token: its latency.{few}",
        layout={
            "data": {"name": "requests"},
            "mark": {"type": "rect", "color": BLUE},
            "encoding": {
                "x": quantity("arrived", f"time ({clock.name})", scale={"nice": False, "domainMin": 0}),
                "x2": {"field": "done"},
                "y": quantity(
                    "top",
                    "request",
                    scale={"domain": [-0.5, view.requests - 0.5], "reverse": True, "nice": False},
                    axis={"grid": False, "format": "d", "tickMinStep": 1},
                ),
                "y2": {"field": "low"},
                "tooltip": [
                    *tips(request="request", prompt="prompt tokens", took="latency"),
                    *numbers(".6~g", arrived=f"arrives ({clock.name})", done=f"done ({clock.name})"),
                ],
            },
        },
        data={"requests": rows},
        height=max(160, min(500, 90 + 14 * view.requests)),
        heavy=True,
    )
