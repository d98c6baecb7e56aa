"""The first section of a result's page: what was asked and decided, value, bound, gap, what the replay measured."""

from __future__ import annotations

from collections.abc import Iterator

from instances.instance import Instance
from reports.content import Cell, Fact, Section, words
from reports.result_tables import time_cell
from reports.wording import STATUS, STOPS, asked, decided
from solver.numbers import byte_text, share_text
from solver.result import Result

FIRST = "Summary"
"""Its title."""
_SERVING = {"time to first token": "ttft_s", "time between tokens": "tbt_s"}


def summary_section(instance: Instance, result: Result) -> Section:
    """First section of a result's page."""
    objective = result.objective
    paragraphs = [f"Asked: {asked(instance)}"]
    if result.plan is not None:
        paragraphs.append(f"Decided: {decided(result.plan)}")
    elif result.program is not None:
        paragraphs.append(
            "The answer is a program that no plan can express; it is in the result file, without pictures."
        )
    elif result.reason:
        paragraphs.append(f"No plan: {result.reason}")
    for finding in result.violations:
        paragraphs.append(f"Broken rule {finding.rule}: {finding.where} (by {finding.amount:.6g} {finding.unit})")
    name = objective.name.replace("_", " ")
    stop = f"stopped: {STOPS[result.stop_reason]}, after {result.runtime_s:.1f} s"
    facts = [
        Fact("value", time_cell(objective.value), "objective.value", f"{name}, measured by replay"),
        Fact("bound", time_cell(objective.bound), "objective.bound", "no plan in scope is better; proved"),
        Fact("gap", Cell(share_text(objective.gap), objective.gap), "objective.gap", "(value − bound) / value"),
        Fact("trivial bound", time_cell(objective.trivial_bound), "objective.trivial_bound", "for comparison"),
        Fact("status", words(STATUS[result.status]), "status", stop),
    ]
    if objective.bound_scope is not None:
        facts.append(Fact("scope of the bound", words(objective.bound_scope.describe())))
    return Section(FIRST, paragraphs, [*facts, *_metrics(result)])


def _metrics(result: Result) -> Iterator[Fact]:
    metrics = result.metrics
    if metrics is None:
        return
    for label, key in (("mean latency", "mean"), ("median latency", "p50"), ("95th percentile", "p95")):
        yield Fact(label, time_cell(getattr(metrics, f"{key}_latency_s")), f"metrics.{key}_latency_s")
    yield Fact("makespan", time_cell(metrics.makespan_s), "metrics.makespan_s")
    tokens = Cell(f"{metrics.tokens_per_s:,.0f} tokens/s".replace(",", "\u202f"), metrics.tokens_per_s)
    yield Fact("throughput", tokens, "metrics.tokens_per_s", f"{metrics.throughput_rps:.4g} requests/s")
    bubble = metrics.bubble
    for label, part, note in (
        ("bubble", "makespan", "idle share of the makespan, all dies in use"),
        ("bubble, own span", "span", "idle share between a die's first start and last end"),
        ("bubble, steady", "steady", "idle share while all dies are at work"),
    ):
        share = getattr(bubble, part)
        yield Fact(label, Cell(share_text(share), share), f"metrics.bubble.{part}", note)
    moved = f"{byte_text(metrics.byte_hops)} times hops"
    yield Fact("bytes over links", Cell(byte_text(metrics.link_bytes), metrics.link_bytes), "metrics.link_bytes", moved)
    for label, key in _SERVING.items():
        value = getattr(metrics, key)
        if value is not None:
            yield Fact(label, time_cell(value), f"metrics.{key}")
