"""Placements for a search: pipeline neighbours close together, partners side by side."""

from __future__ import annotations

from solver.search import Placement, Search


def pipeline_placement(search: Search) -> Placement:
    hardware = search.instance.hardware
    live = set(hardware.live_dies)
    snake = [
        (r, c if r % 2 == 0 else hardware.total_columns - 1 - c)
        for r in range(hardware.total_rows)
        for c in range(hardware.total_columns)
    ]
    return tuple(die for die in snake if die in live)[: search.stages]


def paired_placement(search: Search) -> Placement:
    return pipeline_placement(search)
