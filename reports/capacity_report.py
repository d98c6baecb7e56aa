"""The page of a capacity table."""

from __future__ import annotations

from collections.abc import Sequence

from instances.numbers import UNKNOWN, share_text
from reports.content import Cell, Page, Section, Table, words
from reports.figures.frontier import frontier_figure
from reports.footer import footer_text
from reports.result_tables import count, time_cell
from solver.capacity.result import CapacityResult, CapacityRow


def capacity_page(found: CapacityResult) -> Page:
    """The table and the frontier."""
    by_batch = found.batch is None
    what = "the largest batch" if by_batch else "the longest request"
    budget = (
        "at any latency"
        if found.latency_budget is None
        else f"at most {share_text(found.latency_budget)} slower than without memory limits"
    )
    chunks = "any number of chunks" if found.chunks is None else f"{found.chunks} chunks"
    figure = frontier_figure(found)
    paragraphs = [f"Asked: {what} for which a plan runs, with {chunks}, {budget}."]
    if figure is None:
        paragraphs.append("The file holds no sizes that ran, so there is no curve to draw.")
    section = Section(
        "Capacity",
        paragraphs,
        figures=[] if figure is None else [figure],
        tables=[_table(found.methods, by_batch=by_batch)],
    )
    return Page(found.instance, "Capacity report", [section], footer_text())


def _table(rows: Sequence[CapacityRow], *, by_batch: bool) -> Table:
    size = "largest batch" if by_batch else "longest request (tokens)"
    cells = []
    for row in rows:
        reached, at_all = (
            (row.max_batch, row.any_latency_batch) if by_batch else (row.max_tokens, row.any_latency_tokens)
        )
        slower = None if row.value_s is None or not row.optimum_s else row.value_s / row.optimum_s - 1
        gain = Cell(UNKNOWN if row.gain is None else f"{row.gain:.2f}×", row.gain)
        cells.append(
            [
                words(row.method),
                count(reached),
                gain,
                time_cell(row.value_s),
                Cell(share_text(slower), slower),
                count(row.next_size),
                count(at_all),
                count(row.bound_tokens),
                words(row.note),
            ]
        )
    columns = ("method", size, "gain", "latency", "slower", "fails at", "at any latency", "bound (tokens)", "remarks")
    return Table("Ways to spill", columns, cells, columns[1:-1])
