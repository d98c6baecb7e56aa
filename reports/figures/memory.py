"""Memory over time against capacity: the fullest dies one by one, and all dies as a map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from instances.numbers import Unit, byte_unit, time_unit
from reports.figure import Figure, Row, bottom, category, numbers, quantity, rows_of, tips
from reports.palette import BLUE, FILLED, GREY, ORANGE, VERMILION
from reports.source import Floats, Traced

KINDS = {"weights and workspace": GREY, "own KV": BLUE, "KV kept for others": ORANGE}
_FIELDS = ("static", "own", "hosted")
MOST_PANELS = 16
_BINS = 120
_OVERLAP = 0.4
"""Cells reach into the next ones, which are drawn over them, so that no background shows between."""
MOST_CELLS = 20_000
_NEARLY_FULL = 0.7
"""Share of a memory from which on the map turns red."""


@dataclass(frozen=True)
class _Memory:
    """What every die held in each part of the time, at the fullest moment of the part; shape [dies, parts], bytes."""

    used: Floats
    hosted: Floats
    static: Floats
    capacity: Floats
    part_s: float


def memory_figure(view: Traced) -> Figure:
    """One small picture for each of the fullest dies."""
    memory = _sampled(view, _BINS)
    fullest = np.argsort(-(memory.used.max(axis=1) / memory.capacity), kind="stable")[:MOST_PANELS]
    chosen = sorted(fullest.tolist(), key=lambda die: view.stages_of_die[die])
    unit, clock = byte_unit(float(memory.capacity[chosen].max())), time_unit(view.makespan_s)
    rows: list[Row] = []
    for die in chosen:
        rows += _areas(view, memory, die, unit, clock)
    several = len(chosen) < view.program.dies
    which = f"the {len(chosen)} fullest of {view.program.dies} dies" if several else "every die"
    names = [_title(view, die) for die in chosen]
    return Figure(
        name="memory",
        title="Memory over time",
        caption=f"What {which} held: own and hosted KV apart, at the fullest moment of each of {_BINS} parts of the "
        "time. The red line is the capacity.",
        layout={
            "data": {"name": "memory"},
            "transform": [
                {"fold": list(_FIELDS), "as": ["field", "bytes"]},
                {"calculate": f"{dict(zip(_FIELDS, KINDS, strict=True))!r}[datum.field]", "as": "kind"},
                {"calculate": f"indexof({list(_FIELDS)!r}, datum.field)", "as": "layer"},
            ],
            "facet": {"field": "die", "type": "nominal", "title": None, "sort": names},
            "spec": {
                "layer": [
                    {
                        "mark": {"type": "area", "interpolate": "step-after"},
                        "encoding": {
                            "x": quantity(
                                "t", f"time ({clock.name})", scale={"nice": False}, axis={"grid": False, "tickCount": 4}
                            ),
                            "y": quantity("bytes", f"memory ({unit.name})", stack="zero", axis={"tickCount": 3}),
                            "color": category(
                                "kind",
                                None,
                                scale={"domain": list(KINDS), "range": list(KINDS.values())},
                                legend=bottom(),
                            ),
                            "order": {"field": "layer"},
                            "tooltip": [
                                *tips(die="die", kind="what"),
                                *numbers(".4~g", t=f"at ({clock.name})", bytes=f"held ({unit.name})"),
                            ],
                        },
                    },
                    {
                        "transform": [{"aggregate": [{"op": "max", "field": "capacity", "as": "limit"}]}],
                        "mark": {"type": "rule", "color": VERMILION, "strokeWidth": 2},
                        "encoding": {"y": quantity("limit", f"memory ({unit.name})")},
                    },
                ]
            },
        },
        data={"memory": rows},
        panels=4,
    )


def memory_map(view: Traced, most_cells: int = MOST_CELLS) -> Figure:
    """All dies by time: how full they are."""
    parts = max(20, min(200, most_cells // view.program.dies))
    memory = _sampled(view, parts)
    clock, unit = time_unit(view.makespan_s), byte_unit(float(memory.capacity.max()))
    order = sorted(range(view.program.dies), key=lambda die: view.stages_of_die[die])
    share = (memory.used / memory.capacity[:, None])[order].ravel()
    rows = rows_of(
        {
            "part": np.tile(np.arange(parts), len(order)),
            "row": np.repeat(np.arange(len(order)), parts),
            "share": np.round(share, 5),
            "hosted": np.round(memory.hosted[order].ravel() / unit.size, 3),
        }
    )
    names = [view.stage_name(die) for die in order]
    part = memory.part_s / clock.size
    stages = len(order)
    return Figure(
        name="memory-map",
        title="How full every die is",
        caption="Share of each die's memory in use, fixed parts included; red is full.",
        layout={
            "data": {"name": "cells"},
            "transform": [
                {"calculate": f"datum.part * {part!r}", "as": "start"},
                {"calculate": f"min(datum.part + {1 + _OVERLAP}, {parts}) * {part!r}", "as": "end"},
                {"calculate": "datum.row - 0.5", "as": "top"},
                {"calculate": f"min(datum.row + {0.5 + _OVERLAP / 4}, {stages - 0.5})", "as": "low"},
                {"calculate": f"{names!r}[datum.row]", "as": "stage"},
            ],
            "mark": {"type": "rect"},
            "encoding": {
                "x": quantity("start", f"time ({clock.name})", scale={"nice": False}, axis={"grid": False}),
                "x2": {"field": "end"},
                "y": quantity(
                    "top",
                    "stage" if len(order) == view.program.stages else "die, in order of stages",
                    scale={"domain": [-0.5, stages - 0.5], "reverse": True, "nice": False},
                    axis={"grid": False, "format": "d", "tickMinStep": 1},
                ),
                "y2": {"field": "low"},
                "color": quantity(
                    "share",
                    "memory in use",
                    scale={"range": [*FILLED, VERMILION], "domain": [0, _NEARLY_FULL, 1], "interpolate": "rgb"},
                    legend=bottom(format=".0%", gradientLength=200, values=[0, 0.35, _NEARLY_FULL, 1]),
                ),
                "tooltip": [
                    *tips(stage="stage"),
                    *numbers(".1%", share="in use"),
                    *numbers(".4~g", hosted=f"for others ({unit.name})", start=f"from ({clock.name})"),
                ],
            },
        },
        data={"cells": rows},
        height=max(200, min(700, 110 + (16 if stages <= 32 else 4) * stages)),
        heavy=True,
    )


def _areas(view: Traced, memory: _Memory, die: int, unit: Unit, clock: Unit) -> list[Row]:
    hosted, parts = memory.hosted[die], memory.used.shape[1]
    static = memory.static[die]
    return rows_of(
        {
            "die": [_title(view, die)] * parts,
            "t": np.round(np.arange(parts) * memory.part_s / clock.size, 6),
            "static": [static / unit.size] * parts,
            "own": (memory.used[die] - static - hosted) / unit.size,
            "hosted": hosted / unit.size,
            "capacity": [memory.capacity[die] / unit.size] * parts,
        }
    )


def _title(view: Traced, die: int) -> str:
    return f"stage {view.stage_name(die)} at {view.die_name(die)}"


def _sampled(view: Traced, parts: int) -> _Memory:
    """The fullest moment of each of so many equal parts of the time."""
    program, events = view.program, view.events.memory
    part_ps = view.makespan_s * 1e12 / parts
    shape = program.dies, parts
    used, hosted = np.zeros(shape), np.zeros(shape)
    events = events[np.argsort(events[:, 1], kind="stable")]
    first = np.searchsorted(events[:, 1], np.arange(program.dies + 1))
    for die in range(program.dies):
        own = events[first[die] : first[die + 1]]
        # Of several changes in one instant, the last one counts.
        own = own[np.append(np.diff(own[:, 0]) > 0, True)] if len(own) else own
        at = np.concatenate([[0], own[:, 0]])
        levels = np.concatenate([[program.static_units[die]], own[:, 2]])
        kept = np.concatenate([[0], own[:, 3]])
        edges = np.searchsorted(at, np.arange(parts) * part_ps, side="right") - 1
        stops = np.append(edges[1:], len(at) - 1)
        for part, (low, high) in enumerate(zip(edges.tolist(), stops.tolist(), strict=True)):
            best = low + int(np.argmax(levels[low : high + 1]))
            used[die, part], hosted[die, part] = levels[best], kept[best]
    dies = [tuple(place) for place in program.network.dies.tolist()]
    return _Memory(
        used / program.units_per_byte,
        hosted / program.units_per_byte,
        program.static_units / program.units_per_byte,
        np.array([view.instance.hardware.die_at(place).hbm_bytes for place in dies], dtype=np.float64),
        part_ps / 1e12,
    )
