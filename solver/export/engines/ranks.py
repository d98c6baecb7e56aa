"""Which rank runs on which device of which node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from instances.hardware import Hardware


@dataclass(frozen=True)
class Rank:
    """One pipeline rank.

    Attributes
    ----------
    stage
        Pipeline rank, and stage of the plan (the first of its two in a V).
    node
        Number of the wafer or node, row by row.
    device
        Number of the die inside the node, row by row.
    """

    stage: int
    node: int
    device: int


def ranks_of(hardware: Hardware, placement: Sequence[tuple[int, int]]) -> tuple[Rank, ...]:
    """The rank of each placed stage; a node is a wafer, and the whole grid where there is one."""
    rows, columns = hardware.rows, hardware.columns
    found = []
    for stage, (row, column) in enumerate(placement):
        node = row // rows * hardware.wafers[1] + column // columns
        found.append(Rank(stage, node, row % rows * columns + column % columns))
    return tuple(found)


def blocks_of(ranks: Sequence[Rank]) -> list[tuple[int, list[Rank]]]:
    """Runs of ranks on one node, in the order of stages."""
    return [(node, list(block)) for node, block in groupby(ranks, key=lambda rank: rank.node)]


def node_runs(ranks: Sequence[Rank]) -> str:
    """The nodes in the order of ranks, in a few words."""
    return ", ".join(f"{len(block)} on node {node}" for node, block in blocks_of(ranks))


def fills_nodes(ranks: Sequence[Rank]) -> bool:
    """Whether each node holds one run of ranks, equally many: what launchers without a placement group need."""
    blocks = blocks_of(ranks)
    nodes = [node for node, _ in blocks]
    return len(set(nodes)) == len(nodes) and len({len(block) for _, block in blocks}) == 1
