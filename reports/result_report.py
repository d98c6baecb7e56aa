"""The page of one result, or of several side by side."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from instances.errors import InputError
from instances.instance import Instance
from reports.binding import usage_facts, usage_of, verdict
from reports.content import Cell, Fact, Page, Section, words
from reports.figure import Figure
from reports.figures.chunks import sizes_figure, times_figure
from reports.figures.memory import MOST_CELLS, memory_figure, memory_map
from reports.figures.mesh import mesh_figure
from reports.figures.progress import progress_figure
from reports.figures.timeline import MOST_MARKS, timeline_figure
from reports.footer import footer_text
from reports.numbers import byte_text, share_text, time_text
from reports.result_tables import methods_table, results_table, sensitivity_table, stage_table, time_cell
from reports.sensitivity import sensitivities
from reports.source import Replayed, replay_of
from reports.wording import STATUS, STOPS, asked, assumptions, decided
from solver.result import Result


@dataclass(frozen=True, eq=False)
class _Part:
    """A result with its replay, and the words that set it apart from others on the page."""

    result: Result
    instance: Instance
    view: Replayed | None
    name: str
    prefix: str
    count: int
    files: tuple[str, str]


_FIRST = "Summary"


def result_page(results: Sequence[Result], files: Sequence[tuple[str, str]]) -> Page:
    """All about one or several results.

    Parameters
    ----------
    files
        For each result, the names under which its instance and the result itself stand beside the page.
    """
    parts = [_part(number, result, len(results), files[number]) for number, result in enumerate(results)]
    sections: list[Section] = []
    if len(parts) > 1:
        sections.append(_together(parts))
    for part in parts:
        own = [_summary(part), *_pictures(part), _methods(part), _assumed(part), _repeat(part)]
        sections += [_numbered(section, part) for section in own]
    names = list(dict.fromkeys(part.instance.name for part in parts))
    methods = list(dict.fromkeys(part.result.method for part in parts))
    title = ", ".join(names[:3]) + (" and others" if len(names) > 3 else "")
    return Page(title, f"Placement report: {', '.join(methods)}", sections, footer_text())


def _part(number: int, result: Result, count: int, files: tuple[str, str]) -> _Part:
    instance = Instance.read(result.instance)
    if instance.fingerprint != result.fingerprint:
        allowed = f"the fingerprint of the instance in the file ({instance.fingerprint})"
        raise InputError("fingerprint", result.fingerprint, allowed)
    alone = count == 1
    name = "" if alone else f"{number + 1}. {instance.name}, {result.method}"
    prefix = "" if alone else f"{number + 1}-"
    return _Part(result, instance, replay_of(result), name, prefix, count, files)


def _numbered(section: Section, part: _Part) -> Section:
    """Figures and headings of one of several results get its number."""
    figures = [replace(figure, name=f"{part.prefix}{figure.name}") for figure in section.figures]
    title = f"{part.name}: {section.title.lower()}" if part.name else section.title
    link = None if not part.name else part.name if section.title == _FIRST else ""
    return replace(section, title=title, figures=figures, link=link)


def _together(parts: Sequence[_Part]) -> Section:
    """The results in one table, and the chunks of plans of one instance in one picture."""
    figures: list[Figure] = []
    for fingerprint in dict.fromkeys(part.result.fingerprint for part in parts):
        same = [part for part in parts if part.result.fingerprint == fingerprint]
        views = [(f"{part.prefix.rstrip('-')}. {part.result.method}", part.view) for part in same]
        named = [(f"{name}, batch {view.plan.batch}", view) for name, view in views if view is not None]
        if len(named) > 1:
            figures += [
                replace(
                    figure,
                    name=f"{figure.name}-{len(figures) // 2 + 1}",
                    title=f"{figure.title}: {same[0].instance.name}",
                )
                for figure in (sizes_figure(named), times_figure(named))
            ]
    return Section("Side by side", figures=figures, tables=[results_table([part.result for part in parts])])


def _summary(part: _Part) -> Section:
    result, objective = part.result, part.result.objective
    paragraphs = [f"Asked: {asked(part.instance)}"]
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
    return Section(_FIRST, paragraphs, [*facts, *_metrics(result)])


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


_SERVING = {"time to first token": "ttft_s", "time between tokens": "tbt_s"}


def _pictures(part: _Part) -> Iterator[Section]:
    view, result = part.view, part.result
    if view is None:
        return
    usage, value = usage_of(view), result.objective.value
    found = [] if value is None else sensitivities(part.instance, view.plan, value)
    tables = [sensitivity_table(found)] if found else []
    yield Section("What binds", [verdict(view, usage, found)], usage_facts(usage), tables=tables)
    stages = stage_table(part.instance, result)
    yield Section("Placement", figures=[mesh_figure(view)], tables=[] if stages is None else [stages])
    yield Section("Timeline", figures=[timeline_figure(view, max(1000, MOST_MARKS // part.count))])
    yield Section("Memory", figures=[memory_figure(view), memory_map(view, MOST_CELLS // part.count)])
    named = [(result.method, view)]
    yield Section("Chunks", figures=[sizes_figure(named), times_figure(named)])


def _methods(part: _Part) -> Section:
    progress = progress_figure(part.result)
    paragraphs = [] if progress is not None else ["The result keeps no trace of the search."]
    figures = [] if progress is None else [progress]
    return Section("Methods and search", paragraphs, figures=figures, tables=[methods_table(part.result)])


def _assumed(part: _Part) -> Section:
    return Section("Assumptions", list(assumptions(part.instance)))


def _repeat(part: _Part) -> Section:
    result, (instance_file, result_file) = part.result, part.files
    engine = result.engine
    seconds = max(1, round(result.runtime_s + 0.5))
    command = [
        "waferplan",
        "solve",
        instance_file,
        "--method",
        result.method,
        "--seed",
        str(result.seed),
        "--time-limit",
        str(seconds),
        "--out",
        "again.json",
    ]
    lines = [shlex.join(command)]
    if result.plan is not None:
        lines.append(shlex.join(["waferplan", "simulate", instance_file, result_file]))
    facts = [
        Fact("fingerprint", words(result.fingerprint), "fingerprint", "of the instance, names aside"),
        Fact("seed", Cell(str(result.seed), result.seed), "seed"),
        Fact("engine", words(f"{engine.name} {engine.version}".strip()), note=engine.native_status),
        Fact("solve time", Cell(time_text(result.runtime_s), result.runtime_s), "runtime_s"),
    ]
    paragraph = (
        "The instance and the result stand beside this page. The second command replays the plan and prints the same "
        "numbers; the first one searches again, with knobs and options at their defaults."
    )
    return Section("How to repeat it", [paragraph], facts, code="\n".join(lines))
