"""What each method loses on each instance, beside what the bounds leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.figure import Figure, Row, category, numbers, quantity, tips
from reports.figures.profile import LEAST_LOSS, colours_of
from reports.palette import GREY
from solver.benchmark.record import Record
from solver.benchmark.statistics import Reference, gap_of, loss
from solver.benchmark.task import label_of

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def losses_figure(records: Sequence[Record], known: Mapping[str, Reference]) -> Figure | None:
    """One line of dots an instance; None if no run has a value to compare."""
    methods = list(dict.fromkeys(label_of(record.method, record.knobs, record.chunks) for record in records))
    rows: list[Row] = []
    for record in records:
        found = loss(record, known)
        if found is not None:
            rows.append(
                {
                    "instance": f"{record.suite}: {record.instance}",
                    "method": label_of(record.method, record.knobs, record.chunks),
                    "loss": found,
                    "drawn": max(found, LEAST_LOSS),
                    "seed": record.seed,
                }
            )
    if not rows:
        return None
    names = list(dict.fromkeys(f"{record.suite}: {record.instance}" for record in records))
    gaps = {f"{record.suite}: {record.instance}": known.get(record.fingerprint) for record in records}
    open_rows = [
        {"instance": name, "gap": gap, "drawn": max(gap, LEAST_LOSS)}
        for name, reference in gaps.items()
        if reference is not None and (gap := gap_of(reference)) is not None
    ]
    scale = {"type": "log", "nice": True}
    axis = {"format": "~%", "values": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100]}
    # Names come from outside: as a domain they are data, whereas a list to sort by would become part of a program.
    y = category("instance", None, sort=None, scale={"domain": names}, axis={"labelLimit": 240})
    return Figure(
        name="losses",
        title="Losses, instance by instance",
        caption="A mark is a run: how much its value is above the best known one. The grey bar is the gap that the "
        "bounds leave between the best known value and the best possible one. Below 0.001 % all stand at the left "
        "edge.",
        layout={
            "layer": [
                {
                    "data": {"name": "open"},
                    "mark": {"type": "bar", "color": GREY, "opacity": 0.4, "height": {"band": 0.7}},
                    "encoding": {
                        "y": y,
                        "x": quantity("drawn", "loss against the best known value", scale=scale, axis=axis),
                        "x2": {"datum": LEAST_LOSS},
                        "tooltip": [*tips(instance="instance"), *numbers(".4%", gap="open gap")],
                    },
                },
                {
                    "data": {"name": "losses"},
                    "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.85},
                    "encoding": {
                        "y": y,
                        "x": quantity("drawn", "loss against the best known value", scale=scale, axis=axis),
                        "color": category(
                            "method",
                            None,
                            scale={"domain": methods, "range": colours_of(methods)},
                            legend={"orient": "top", "columns": 4},
                        ),
                        "shape": category(
                            "method",
                            None,
                            scale={
                                "domain": methods,
                                "range": [_SHAPES[place % len(_SHAPES)] for place in range(len(methods))],
                            },
                        ),
                        "tooltip": [
                            *tips(instance="instance", method="method", seed="seed"),
                            *numbers(".4%", loss="loss"),
                        ],
                    },
                },
            ]
        },
        data={"losses": rows, "open": open_rows},
        height=90 + 20 * len(names),
    )
