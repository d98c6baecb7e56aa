"""Layer split and placement that a policy starts from, and the table of its slowest stage."""

from __future__ import annotations

from itertools import accumulate

from formulations.layers.candidates import fastest_split
from formulations.tables import Table, fastest_die
from instances.pipeline import balanced_layers
from instances.workload import Shape
from solver.placing import paired_placement, pipeline_placement
from solver.search import Placement, Search


def layer_split(search: Search, placement: Placement | None = None) -> tuple[int, ...]:
    """The instance's split; where it is free, the one whose slowest stage is fastest (``formulations.layers``).

    Without a placement all dies count as good as the best.
    """
    fixed = search.instance.fixed_layers
    if fixed is not None:
        return fixed
    dies = None if placement is None else [search.instance.hardware.die_at(die) for die in placement]
    found = fastest_split(search.instance, search.batches()[-1], max(search.instance.workload.shapes), dies)
    return balanced_layers(search.instance.model.layer_count, search.stages) if found is None else found


def pipeline_layout(search: Search) -> tuple[tuple[int, ...], Placement]:
    """Split, and a placement that keeps pipeline neighbours close."""
    placement = pipeline_placement(search)
    return layer_split(search, placement), placement


def paired_layout(search: Search) -> tuple[tuple[int, ...], Placement]:
    """Split, and a placement with cross-half partners on neighbouring dies where the mesh admits it."""
    placement = paired_placement(search)
    return layer_split(search, placement), placement


def heaviest_table(search: Search, size: int, shape: Shape) -> Table:
    """Compute seconds of every chunk on the stage that is slowest on the whole request, head excluded."""
    split, die = layer_split(search), fastest_die(search.instance)
    stops = list(accumulate(split))
    tables = [
        search.tables.stage(die, stop - count, stop, size, shape, head=False)
        for stop, count in zip(stops, split, strict=True)
    ]
    return max(tables, key=lambda table: float(table[0, -1]))
