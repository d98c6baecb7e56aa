"""Rules that no plan can keep whatever it decides: found before anything is searched."""

from __future__ import annotations

from itertools import accumulate

import networkx as nx

from instances.instance import Instance

Die = tuple[int, int]


def islands(instance: Instance) -> list[list[Die]]:
    """Enabled dies that links join, the largest group first; dies of a group in row order."""
    mesh = instance.hardware.mesh()
    if mesh.topology == "switch":
        return [list(mesh.live_dies)]
    graph: nx.Graph[Die] = nx.Graph()
    graph.add_nodes_from(mesh.live_dies)
    graph.add_edges_from((die, other) for die in mesh.live_dies for other in mesh.neighbours(die))
    groups = [sorted(group) for group in nx.connected_components(graph)]
    return sorted(groups, key=lambda group: (-len(group), group))


def structural_reason(instance: Instance) -> str | None:
    """Why no plan exists, for reasons of connectivity and layer cuts; None if there is none of these."""
    stages = instance.pipeline.stages
    most = len(islands(instance)[0])
    if most < stages:
        return f"placement_connected: {stages} stages, and links join at most {most} enabled dies"
    forbidden = set(instance.pipeline.forbidden_cuts)
    split = instance.fixed_layers
    if split is not None:
        clash = sorted(forbidden & set(list(accumulate(split))[:-1]))
        if clash:
            return f"forbidden_cuts: the layer split {list(split)} starts a stage at layer {clash[0]}"
        return None
    allowed = instance.model.layer_count - 1 - len(forbidden)
    if allowed < stages - 1:
        return f"forbidden_cuts: {stages - 1} cuts are needed, and {allowed} are allowed"
    return None
