"""What ``benchmark --paper`` prints: the paper's evaluation done again, its averages beside ours, what decides them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from instances.numbers import UNKNOWN
from solver.benchmark import paper
from solver.benchmark.record import Record
from solver.cli.sheets import Sheet

_NO_PLAN = "no plan"
GAINING = paper.WAYS[1:]


def paper_sheets(records: Sequence[Record]) -> Iterator[Sheet]:
    """All tables of the evaluation."""
    yield _values("End-to-end latency: mean over the requests, in seconds", records, _latency)
    yield _values("Throughput: requests a second", records, _throughput)
    yield _averages(records)
    yield _lengths(records)
    yield _sensitivity("latency", records, lambda pair: _change(pair.latency))
    yield _sensitivity("throughput", records, lambda pair: _factor(pair.throughput))
    rows = [(str(number), text) for number, text in enumerate(paper.ASSUMPTIONS, start=1)]
    yield Sheet("Assumptions: what the paper's text leaves open", ("", "assumed"), rows)


def paper_data(records: Sequence[Record]) -> dict[str, Any]:
    """The evaluation as plain data."""
    return {
        "paper": paper.PAPER,
        "averages": [asdict(average) for average in paper.averages(records)],
        "assumptions": list(paper.ASSUMPTIONS),
        "sensitivity": [
            {"assumption": name, **{m: asdict(paper.against_reference(row, m)) for m in row if m != paper.REFERENCE}}
            for name, row in paper.by_method(records, paper.VARIED).items()
        ],
        "longest_request": paper.lengths(records),
        "records": [record.model_dump(mode="json", exclude={"plan"}) for record in records],
    }


def _values(title: str, records: Sequence[Record], number: Callable[[Record], str]) -> Sheet:
    rows = [
        (name, *(number(row[method]) if method in row else "" for method in paper.METHODS))
        for name, row in paper.by_method(records, paper.SUITE).items()
    ]
    return Sheet(title, ("instance", *paper.METHODS), rows, paper.METHODS)


def _averages(records: Sequence[Record]) -> Sheet:
    rows = [
        ("paper: MOCAP", _change(paper.PAPER["latency"]), f"{paper.PAPER['throughput']:.2f}x", "its own"),
        *(
            (average.method, _change(average.latency), _factor(average.throughput), _counted(average))
            for average in paper.averages(records)
        ),
    ]
    columns = ("against GPipe", "latency", "throughput", "instances")
    return Sheet("Averages against GPipe, over the instances on which both run", columns, rows, columns[1:])


def _lengths(records: Sequence[Record]) -> Sheet:
    rows = [
        (
            name,
            *(_tokens(row.get(way)) for way in paper.WAYS),
            *(_factor(paper.length_gain(row, way)) for way in GAINING),
        )
        for name, row in paper.lengths(records).items()
    ]
    rows.append(("paper: MOCAP, at most", *[""] * len(paper.WAYS), f"{paper.PAPER['length']:.2f}x", ""))
    columns = ("longest request", *paper.WAYS, *(f"{way}, gain" for way in GAINING))
    title = (
        f"Longest request in tokens with {paper.CHUNKS} chunks: no lending, MBKR's pairs, pooled; gains over no lending"
    )
    return Sheet(title, columns, rows, columns[1:])


def _sensitivity(what: str, records: Sequence[Record], shown: Callable[[paper.Against], str]) -> Sheet:
    methods = [method for method in paper.METHODS if method != paper.REFERENCE]
    rows = [
        (name, *(shown(paper.against_reference(row, method)) for method in methods))
        for name, row in paper.by_method(records, paper.VARIED).items()
    ]
    title = f"Sensitivity on {paper.BASE}: {what} against GPipe with one assumption changed at a time"
    return Sheet(title, ("assumption", *methods), rows, tuple(methods))


def _tokens(count: int | None) -> str:
    return UNKNOWN if count is None else str(count)


def _latency(record: Record) -> str:
    return _NO_PLAN if record.metrics is None else f"{record.metrics.mean_latency_s:.4g}"


def _throughput(record: Record) -> str:
    return _NO_PLAN if record.metrics is None else f"{record.metrics.throughput_rps:.4g}"


def _change(share: float | None) -> str:
    return UNKNOWN if share is None else f"{100 * share:+.1f} %"


def _factor(factor: float | None) -> str:
    return UNKNOWN if factor is None else f"{factor:.2f}x"


def _counted(average: paper.Average) -> str:
    return f"{average.compared} of {average.instances}"
