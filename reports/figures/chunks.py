"""Chunk sizes and chunk times along the request, one plan below the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from instances.numbers import count_text, time_text, time_unit
from reports.figure import SHORT_COUNTS, Figure, Row, Spec, category, quantity, rows_of, tips
from reports.palette import SERIES
from reports.source import Replayed

Named = Sequence[tuple[str, Replayed]]


def sizes_figure(views: Named) -> Figure:
    """How long every chunk is, along the longest kind of request."""
    return Figure(
        name="chunk-sizes",
        title="Chunk sizes",
        caption="Each bar is a chunk: its width is its place in the request, its height its number of tokens."
        + _which(views),
        layout=_layout(views, "tokens", "tokens a chunk", axis={"labelExpr": SHORT_COUNTS, "tickCount": 4}),
        data={"chunks": _rows(views)},
        height=240,
        panels=None if len(views) == 1 else 1,
    )


def times_figure(views: Named) -> Figure:
    """How long the slowest stage computes each of these chunks, per request, so that batches can be compared."""
    rows = _rows(views)
    unit = time_unit(max(row["request_s"] for row in rows))
    return Figure(
        name="chunk-times",
        title="Chunk times",
        caption="The same chunks: how long the stage that is slowest with it computes each, divided by the requests of "
        "the batch." + _which(views),
        layout=_layout(views, "time", f"time a request ({unit.name})", axis={"tickCount": 4}),
        data={"chunks": [{**row, "time": row["request_s"] / unit.size} for row in rows]},
        height=240,
        panels=None if len(views) == 1 else 1,
    )


def _layout(views: Named, field: str, title: str, axis: Spec) -> Spec:
    names = [name for name, _ in views]
    along = {"labelExpr": SHORT_COUNTS, "grid": False, "tickCount": 8}
    colour = category(
        "plan", None, scale={"domain": names, "range": [SERIES[place % len(SERIES)] for place in range(len(names))]}
    )
    bars: Spec = {
        "mark": {"type": "rect", "opacity": 0.75, "strokeWidth": 1, "strokeOpacity": 1},
        "encoding": {
            "x": quantity(
                "start", "position in the request (tokens)", scale={"nice": False, "zero": False}, axis=along
            ),
            "x2": {"field": "end"},
            "y": quantity(field, title, axis=axis, scale={"zero": True, "domainMin": 0}),
            "y2": {"datum": 0},
            "color": {**colour, "legend": None},
            "stroke": {**colour, "legend": None},
            "tooltip": tips(
                plan="plan",
                chunk="chunk",
                size="tokens",
                prefix="tokens before",
                computes="slowest stage, whole batch",
                slowest="which is stage",
            ),
        },
    }
    data = {"data": {"name": "chunks"}}
    if len(names) == 1:
        return {**data, **bars}
    return {
        **data,
        "facet": {"field": "plan", "type": "nominal", "title": None, "sort": {"field": "order", "op": "min"}},
        "spec": bars,
    }


def _rows(views: Named) -> list[Row]:
    return [{**row, "order": order} for order, (name, view) in enumerate(views) for row in _chunks(name, view)]


def _chunks(name: str, view: Replayed) -> list[Row]:
    """Chunks of the first wave whose requests are longest."""
    program, tasks = view.program, view.tables["tasks"]
    total = np.zeros(program.waves, dtype=np.int64)
    np.maximum.at(total, program.wave, view.prefix_tokens + view.chunk_tokens)
    own = np.flatnonzero(program.wave == int(np.argmax(total)))
    # The slowest stage of each chunk comes last in this order.
    own = own[np.lexsort((tasks["compute_s"][own], program.chunk[own]))]
    own = own[np.append(np.diff(program.chunk[own]) != 0, True)]
    size, prefix, compute = view.chunk_tokens[own], view.prefix_tokens[own], tasks["compute_s"][own]
    return rows_of(
        {
            "plan": [name] * len(own),
            "chunk": program.chunk[own],
            "tokens": size,
            "start": prefix,
            "end": prefix + size,
            "compute_s": compute,
            "request_s": compute / view.plan.batch,
            "slowest": program.stage[own],
            "size": [count_text(value) for value in size.tolist()],
            "prefix": [count_text(value) for value in prefix.tolist()],
            "computes": [time_text(value) for value in compute.tolist()],
        }
    )


def _which(views: Named) -> str:
    several = any(len(view.plan.chunks) > 1 for _, view in views)
    return " Of several kinds of request, the longest one is shown." if several else ""
