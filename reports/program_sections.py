"""Sections about an answer that is a program: what is used how far, and its pictures."""

from __future__ import annotations

from collections.abc import Iterator

from instances.numbers import count_text
from reports.binding import memory_sentence, usage_facts, usage_of
from reports.content import Section
from reports.figures.iterations import iterations_timeline, times_figure, tokens_figure
from reports.figures.memory import memory_figure, memory_map
from reports.figures.mesh import mesh_figure
from reports.figures.program_timeline import program_timeline
from reports.figures.requests import requests_figure
from reports.result_tables import stage_table
from reports.served import Served
from reports.source import Traced


def decided_program(view: Traced) -> str:
    """The program in a sentence or two."""
    stages = f"{view.program.stages} stages"
    if not isinstance(view, Served):
        return f"A program of {count_text(view.program.tasks)} tasks in {stages}, which no plan can express."
    tokens = view.tokens
    sizes = f"{count_text(int(tokens.min()))} to {count_text(int(tokens.max()))} tokens"
    return (
        f"{count_text(view.requests)} requests are served in {count_text(view.iterations)} iterations of {sizes} "
        f"({tokens.mean():,.0f} in the mean) over {stages}; as a program, since no plan can express it."
    )


def program_sections(view: Traced, most_marks: int, most_cells: int) -> Iterator[Section]:
    """Sections of a replayed program, in order."""
    usage = usage_of(view)
    paragraphs = [
        f"{memory_sentence(view, usage)}Stage {usage.stage} computes most.",
        "On other hardware the policy would decide anew, so that replaying this program there would say little.",
    ]
    yield Section("What binds", paragraphs, usage_facts(usage))
    yield Section("Placement", figures=[mesh_figure(view)], tables=[stage_table(view)])
    if isinstance(view, Served):
        yield Section("Timeline", figures=[iterations_timeline(view, most_marks)])
        yield Section("Iterations", figures=[tokens_figure(view), times_figure(view)])
        yield Section("Requests", figures=[requests_figure(view)])
    else:
        yield Section("Timeline", figures=[program_timeline(view, most_marks)])
    yield Section("Memory", figures=[memory_figure(view), memory_map(view, most_cells)])
