"""The page of one result, or of several side by side."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from instances.errors import InputError
from instances.instance import Instance
from instances.numbers import share_text, time_text
from reports.binding import usage_facts, usage_of, verdict
from reports.content import Cell, Fact, Page, Section, words
from reports.details import details_section
from reports.figure import Figure
from reports.figures.chunks import sizes_figure, times_figure
from reports.figures.gantt import MOST_MARKS
from reports.figures.memory import MOST_CELLS, memory_figure, memory_map
from reports.figures.mesh import mesh_figure
from reports.figures.progress import progress_figure
from reports.figures.timeline import timeline_figure
from reports.footer import footer_text
from reports.heuristic import heuristic_of
from reports.program_sections import decided_program, program_sections
from reports.result_tables import methods_table, results_table, sensitivity_table, stage_table
from reports.sensitivity import sensitivities
from reports.served import programmed
from reports.source import Replayed, Traced, replay_of
from reports.summary import FIRST, summary_section
from reports.wording import assumptions, decided
from solver.result import Result


@dataclass(frozen=True, eq=False)
class _Part:
    """A result with its replay, and the words that set it apart from others on the page."""

    result: Result
    instance: Instance
    view: Traced | None
    name: str
    prefix: str
    count: int
    files: tuple[str, str]


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
        own = [
            summary_section(part.instance, part.result, _answer(part)),
            *_pictures(part),
            *_methods(part),
            *_details(part),
            _assumed(part),
            _repeat(part),
        ]
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
    return _Part(result, instance, replay_of(result) or programmed(result), name, prefix, count, files)


def _numbered(section: Section, part: _Part) -> Section:
    """Figures and headings of one of several results get its number."""
    figures = [replace(figure, name=f"{part.prefix}{figure.name}") for figure in section.figures]
    title = f"{part.name}: {section.title.lower()}" if part.name else section.title
    link = None if not part.name else part.name if section.title == FIRST else ""
    return replace(section, title=title, figures=figures, link=link)


def _together(parts: Sequence[_Part]) -> Section:
    """The results in one table, and the chunks of plans of one instance in one picture."""
    figures: list[Figure] = []
    for fingerprint in dict.fromkeys(part.result.fingerprint for part in parts):
        same = [part for part in parts if part.result.fingerprint == fingerprint]
        views = [(f"{part.prefix.rstrip('-')}. {part.result.method}", part.view) for part in same]
        named = [(_with_batch(name, view), view) for name, view in views if isinstance(view, Replayed)]
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


def _answer(part: _Part) -> str | None:
    if isinstance(part.view, Replayed):
        return decided(part.view.plan)
    return None if part.view is None else decided_program(part.view)


def _pictures(part: _Part) -> Iterator[Section]:
    """What the answer looks like, each kind of answer with its own sections."""
    view, marks, cells = part.view, max(1000, MOST_MARKS // part.count), MOST_CELLS // part.count
    if isinstance(view, Replayed):
        yield from _plan_sections(view, marks, cells, several=part.count > 1)
    elif view is not None:
        yield from program_sections(view, marks, cells)


def _plan_sections(view: Replayed, most_marks: int, most_cells: int, *, several: bool) -> Iterator[Section]:
    usage, value = usage_of(view), view.result.objective.value
    found = [] if value is None else sensitivities(view.instance, view.plan, value)
    tables = [sensitivity_table(found)] if found else []
    paragraphs = [verdict(view, usage, found), *_differs(view)]
    yield Section("What binds", paragraphs, usage_facts(usage), tables=tables)
    yield Section("Placement", figures=[mesh_figure(view)], tables=[stage_table(view)])
    yield Section("Timeline", figures=[timeline_figure(view, most_marks)])
    yield Section("Memory", figures=[memory_figure(view), memory_map(view, most_cells)])
    yield Section("Chunks", figures=_chunks(view, None if several else heuristic_of(view)))


def _chunks(view: Replayed, heuristic: Replayed | None) -> list[Figure]:
    """Sizes and times of chunks, with those of the heuristic where its plan is known."""
    named = [(view.result.method, view)]
    if heuristic is not None:
        named = [(_with_batch(one.result.method, one), one) for one in (view, heuristic)]
    return [sizes_figure(named), times_figure(named)]


def _with_batch(name: str, view: Replayed) -> str:
    return f"{name}, batch {view.plan.batch}"


def _details(part: _Part) -> Iterator[Section]:
    """Programs come from methods that try several things and count more than others do."""
    section = None if part.result.program is None else details_section(part.result.details)
    if section is not None:
        yield section


def _differs(view: Traced) -> Iterator[str]:
    """A warning where the replay is not the one that the result's numbers come from."""
    metrics = view.result.metrics
    if metrics is not None and not math.isclose(metrics.makespan_s, view.makespan_s, rel_tol=1e-9):
        yield (
            f"Warning: replayed now, the plan has a makespan of {time_text(view.makespan_s)}, in the result it is "
            f"{time_text(metrics.makespan_s)}. The result was made by another version, or changed."
        )


def _methods(part: _Part) -> Iterator[Section]:
    if part.result.program is not None and not part.result.compared:
        return  # no search, and nothing beside it
    progress = progress_figure(part.result)
    paragraphs = list(_against_others(part.result))
    if progress is None:
        paragraphs.append("The result keeps no trace of the search.")
    figures = [] if progress is None else [progress]
    yield Section("Methods and search", paragraphs, figures=figures, tables=[methods_table(part.result)])


def _against_others(result: Result) -> Iterator[str]:
    """The best of the methods that ran beside this one."""
    value = result.objective.value
    others = [(row.value, row.method) for row in result.compared if row.value is not None]
    if value is not None and others and value > 0:
        best, method = min(others)
        loss = best / value - 1
        far = f"{share_text(abs(loss))} {'above' if loss >= 0 else 'below'} this plan's value"
        yield f"Best of the other methods that have a plan ({len(others)}): {method}, {far}."
    elif value is not None and result.compared:
        yield f"None of the other methods ({len(result.compared)}) has a plan."


def _assumed(part: _Part) -> Section:
    return Section("Assumptions", list(assumptions(part.instance)))


def _asked(result: Result) -> list[str]:
    """Options that were given: the number of chunks, and knobs."""
    chunks, knobs = result.asked.get("chunks"), result.asked.get("knobs", {})
    options = [] if chunks is None else ["--chunks", str(chunks)]
    return options + [word for name, value in knobs.items() for word in ("--set", f"{name}={value}")]


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
        *_asked(result),
        "--time-limit",
        str(seconds),
        "--out",
        "again.json",
    ]
    lines, replays = [shlex.join(command)], ""
    if result.plan is not None:
        lines.append(shlex.join(["waferplan", "simulate", instance_file, result_file]))
        replays = "; the second one replays the plan and prints the same numbers"
    elif result.program is not None:
        lines.append(shlex.join(["waferplan", "simulate", "--program", result_file, "--trace", "trace.json"]))
        replays = "; the second one replays the program and writes a trace for Perfetto (ui.perfetto.dev)"
    facts = [
        Fact("fingerprint", words(result.fingerprint), "fingerprint", "of the instance, names aside"),
        Fact("seed", Cell(str(result.seed), result.seed), "seed"),
        Fact("engine", words(f"{engine.name} {engine.version}".strip()), note=engine.native_status),
        Fact("solve time", Cell(time_text(result.runtime_s), result.runtime_s), "runtime_s"),
    ]
    paragraph = (
        "The instance and the result stand beside this page. The first command searches again, with what is not named "
        f"at its default{replays}."
    )
    return Section("How to repeat it", [paragraph], facts, code="\n".join(lines))
