"""The first section of a result's page: what was asked and decided, value, bound, gap, what the replay measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instances.instance import Instance
from instances.numbers import byte_text, count_text, share_text
from instances.rules import Finding
from reports.content import Cell, Fact, Section, Table, words
from reports.result_tables import time_cell
from reports.wording import STATUS, STOPS, asked
from solver.result import Metrics, Result

FIRST = "Summary"
"""Its title."""
_SERVING = {
    "time to first token": ("ttft_s", "mean"),
    "to first token, median": ("p50_ttft_s", ""),
    "to first token, 99th percentile": ("p99_ttft_s", ""),
    "time between tokens": ("tbt_s", "mean"),
    "between tokens, median": ("p50_tbt_s", ""),
    "between tokens, 99th percentile": ("p99_tbt_s", ""),
    "between tokens, longest": ("max_tbt_s", ""),
}
_RATES = {
    "prompt tokens": ("prompt_tokens_per_s", "with cached ones"),
    "computed tokens": ("computed_tokens_per_s", "prompts and decodes that were computed"),
    "output tokens": ("output_tokens_per_s", "that came out"),
}


def summary_section(instance: Instance, result: Result, answer: str | None) -> Section:
    """First section of a result's page.

    Parameters
    ----------
    answer
        Plan or program in words; None without either.
    """
    objective = result.objective
    paragraphs = [f"Asked: {asked(instance)}"]
    if answer is not None:
        paragraphs.append(f"Decided: {answer}")
    elif result.reason:
        paragraphs.append(f"No plan: {result.reason}")
    name = objective.name.replace("_", " ")
    stop = f"stopped: {STOPS[result.stop_reason]}, after {result.runtime_s:.1f} s"
    measured = f"{name}, measured by replay" if objective.value is not None else f"{name}; no plan to measure"
    facts = [
        Fact("value", time_cell(objective.value), "objective.value", measured),
        _bound("bound", objective.bound, "objective.bound", "no plan in scope is better; proved"),
        Fact("gap", Cell(share_text(objective.gap), objective.gap), "objective.gap", "(value − bound) / value"),
        _bound("trivial bound", objective.trivial_bound, "objective.trivial_bound", "for comparison"),
        Fact("status", words(STATUS[result.status]), "status", stop),
    ]
    if objective.bound_scope is not None:
        facts.append(Fact("scope of the bound", words(objective.bound_scope.describe())))
    tables = [_broken_table(result.violations)] if result.violations else []
    return Section(FIRST, paragraphs, [*facts, *_metrics(result)], tables=tables)


def _broken_table(findings: Sequence[Finding]) -> Table:
    """Which rules are broken: of a rule over dies or stages there are as many rows as there are of these."""
    rows = []
    for finding in findings:
        amount, unit = finding.amount, finding.unit
        text = byte_text(amount) if unit == "bytes" else f"{amount:.6g} {unit}".strip()
        rows.append([words(finding.rule.replace("_", " ")), Cell(text, amount), words(finding.where)])
    return Table("Broken rules", ("rule", "by", "where"), rows, ("by",))


def _bound(label: str, value: float | None, key: str, note: str) -> Fact:
    return Fact(label, time_cell(value), key, "none is known" if value is None else note)


def _metrics(result: Result) -> Iterator[Fact]:
    metrics = result.metrics
    if metrics is None:
        return
    for label, key in (("mean latency", "mean"), ("median latency", "p50"), ("95th percentile", "p95")):
        yield Fact(label, time_cell(getattr(metrics, f"{key}_latency_s")), f"metrics.{key}_latency_s")
    yield Fact("makespan", time_cell(metrics.makespan_s), "metrics.makespan_s")
    requests = f"{metrics.throughput_rps:.4g} requests/s"
    yield Fact("throughput", _rate(metrics.tokens_per_s), "metrics.tokens_per_s", requests)
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
    if result.program is not None:
        yield from _served(metrics)


def _served(metrics: Metrics) -> Iterator[Fact]:
    """Numbers of systems that serve token by token."""
    for label, (key, note) in _SERVING.items():
        value = getattr(metrics, key)
        if value is not None:
            yield Fact(label, time_cell(value), f"metrics.{key}", note)
    for label, (key, note) in _RATES.items():
        value = getattr(metrics, key)
        if value is not None:
            yield Fact(label, _rate(value), f"metrics.{key}", note)
    if metrics.expert_bytes is not None:
        expert = Cell(byte_text(metrics.expert_bytes), metrics.expert_bytes)
        yield Fact("expert weights read", expert, "metrics.expert_bytes", "all stages and iterations")
    if metrics.good_hit_rate is not None:
        hits = Cell(share_text(metrics.good_hit_rate), metrics.good_hit_rate)
        yield Fact("good hits", hits, "metrics.good_hit_rate", "requests that reused at least 80 % of their prefix")


def _rate(per_s: float) -> Cell:
    return Cell(f"{count_text(per_s)} tokens/s", per_s)
