"""How instances and plans show themselves in a notebook: tables, and the mesh as a grid of cells. HTML fragments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from instances.hardware import Hardware
from instances.model import Model
from instances.numbers import byte_text, count_text
from instances.pipeline import Pipeline
from instances.workload import Workload

Position = tuple[int, int]
MOST_DIES = 1024
"""Dies of the largest mesh that is drawn; a larger one is left to reports."""
MOST_CHUNKS = 8
"""Chunk sizes shown of a list."""


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text; everything is escaped."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if header else ''}<tbody>{body}</tbody></table>"


def mesh_words(hardware: Hardware) -> str:
    """The grid and its wafers."""
    mesh, wafers = f"{hardware.rows}x{hardware.columns} {hardware.topology}", hardware.wafers
    return mesh if wafers == (1, 1) else f"{wafers[0]}x{wafers[1]} wafers, each a {mesh}"


def requests_words(workload: Workload) -> str:
    """How many requests of what size."""
    if workload.trace is not None:
        sizes = [request.tokens for request in workload.trace]
        return f"a trace of {len(sizes)} requests ({min(sizes)} to {max(sizes)} tokens)"
    cached = f", {workload.cached_tokens} of them cached" if workload.cached_tokens else ""
    return f"{workload.requests} requests of {workload.tokens} tokens{cached}"


def facts_of(
    hardware: Hardware, model: Model, workload: Workload, pipeline: Pipeline, objective: str
) -> list[tuple[str, str]]:
    """An instance in a few lines."""
    die = hardware.die
    layers = pipeline.layers if isinstance(pipeline.layers, str) else ", ".join(map(str, pipeline.layers))
    return [
        ("model", f"{model.name}, {model.layer_count} layers"),
        ("dies", f"{mesh_words(hardware)}, {len(hardware.live_dies)} enabled"),
        ("a die", f"{byte_text(die.peak_flops, 'FLOP/s')}, {byte_text(die.hbm_bytes)}"),
        ("links", byte_text(hardware.link_bytes_per_s, "B/s")),
        ("requests", requests_words(workload)),
        ("stages", f"{pipeline.stages}; layers {layers}"),
        ("chunks", f"at most {pipeline.max_chunks}, of a multiple of {pipeline.chunk_quantum} tokens"),
        ("batch", f"at most {pipeline.max_batch}"),
        ("objective", objective.replace("_", " ")),
    ]


def plan_facts(
    schedule: str,
    batch: int,
    layers: Sequence[int],
    chunks: Mapping[str, Sequence[int]],
    spill: Iterable[tuple[int, object, int]],
) -> list[tuple[str, str]]:
    """A plan in a few lines; ``spill`` has stage, creditor and tokens of each row."""
    facts = [("schedule", schedule), ("batch", str(batch)), ("layers", ", ".join(map(str, layers)))]
    for tokens, sizes in chunks.items():
        shown = ", ".join(map(str, sizes[:MOST_CHUNKS])) + (", …" if len(sizes) > MOST_CHUNKS else "")
        facts.append((f"chunks of {count_text(int(tokens))} tokens", f"{len(sizes)}: {shown}"))
    rows = list(spill)
    spilled, links = sum(row[2] for row in rows), len({row[:2] for row in rows})
    facts.append(("spill", f"{count_text(spilled)} tokens over {links} creditor links" if rows else "none"))
    return facts


def stage_labels(placement: Iterable[Position]) -> dict[Position, str]:
    """The stages on each die."""
    labels: dict[Position, list[str]] = defaultdict(list)
    for stage, position in enumerate(placement):
        labels[position].append(str(stage))
    return {position: ", ".join(stages) for position, stages in labels.items()}


def mesh_html(hardware: Hardware, labels: Mapping[Position, str]) -> str:
    """The mesh as a grid of cells: labels of dies, crosses for disabled ones, thick lines between wafers.

    Empty for a mesh of more than ``MOST_DIES`` dies.
    """
    if hardware.total_rows * hardware.total_columns > MOST_DIES:
        return ""
    dead = set(hardware.disabled_dies)
    rows = [
        "".join(_cell(hardware, (row, column), dead, labels) for column in range(hardware.total_columns))
        for row in range(hardware.total_rows)
    ]
    return '<table style="border-collapse: collapse">' + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def placement_html(placement: Sequence[Position]) -> str:
    """The dies in use, as far as the plan alone tells; empty for a mesh of more than ``MOST_DIES`` dies."""
    if not placement:
        return ""
    rows, columns = (1 + max(position[axis] for position in placement) for axis in range(2))
    if rows * columns > MOST_DIES:
        return ""
    labels = stage_labels(placement)
    cells = [[labels.get((row, column), "") for column in range(columns)] for row in range(rows)]
    return html_table((), cells)


def _cell(hardware: Hardware, position: Position, dead: set[Position], labels: Mapping[Position, str]) -> str:
    row, column = position
    style = "border: 1px solid #8888; min-width: 2em; text-align: center; height: 1.6em; padding: 0.3em"
    if row and row % hardware.rows == 0:
        style += "; border-top: 3px solid"
    if column and column % hardware.columns == 0:
        style += "; border-left: 3px solid"
    text = "×" if position in dead else labels.get(position, "")
    return f'<td title="die {row}, {column}" style="{style}">{escape(text)}</td>'
