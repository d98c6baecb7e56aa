"""What clashes, found without an engine: all splits, sets of dies and chunk lists of a tiny instance."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import accumulate, combinations, pairwise, permutations, product

import networkx as nx

from instances.instance import Instance
from instances.workload import Shape
from tests.brute_force import cut_lists

Die = tuple[int, int]


def some_plan_keeps(instance: Instance, kept: Collection[str]) -> bool:
    """Whether dies, a split and chunk lists keep these rules; all dies, splits and lists are looked at."""
    return any(
        _keeps(instance, kept, split, dies, chunks)
        for dies in _placements(instance, kept)
        for split in _splits(instance, kept)
        for chunks in _chunk_lists(instance, kept)
    )


def _splits(instance: Instance, kept: Collection[str]) -> Iterator[tuple[int, ...]]:
    layers, stages = instance.model.layer_count, instance.pipeline.stages
    for ends in combinations(range(1, layers), stages - 1):
        split = tuple(stop - start for start, stop in pairwise((0, *ends, layers)))
        if "layers_given" in kept and instance.fixed_layers not in (None, split):
            continue
        if "forbidden_cuts" in kept and set(ends) & set(instance.pipeline.forbidden_cuts):
            continue
        yield split


def _placements(instance: Instance, kept: Collection[str]) -> Iterator[tuple[Die, ...]]:
    hardware = instance.hardware
    dead = set(hardware.disabled_dies) if "placement_live" in kept else set()
    rows, columns = hardware.total_rows, hardware.total_columns
    graph: nx.Graph[Die] = nx.grid_2d_graph(rows, columns)
    graph.remove_nodes_from(dead)
    graph.remove_edges_from(hardware.disabled_links)
    alike = not hardware.dies
    choices = combinations if alike else permutations
    for dies in choices(sorted(graph.nodes), instance.pipeline.stages):
        joined = nx.node_connected_component(graph, dies[0])
        if "placement_connected" not in kept or joined.issuperset(dies):
            yield dies


def _chunk_lists(instance: Instance, kept: Collection[str]) -> Iterator[dict[Shape, tuple[int, ...]]]:
    """All chunk lists, the same for requests with as many uncached tokens."""
    relaxed = instance.with_pipeline(
        **({} if "chunk_count" in kept else {"max_chunks": 10**6}),
        **({} if "chunk_quantum" in kept else {"chunk_quantum": 1}),
    )
    counts = instance.workload.uncached_counts
    for chosen in product(*(cut_lists(relaxed, count) for count in counts)):
        lists = dict(zip(counts, chosen, strict=True))
        yield {shape: lists[shape[0] - shape[1]] for shape in instance.workload.shapes}


def _keeps(
    instance: Instance,
    kept: Collection[str],
    split: tuple[int, ...],
    dies: tuple[Die, ...],
    chunks: dict[Shape, tuple[int, ...]],
) -> bool:
    cost, hardware = instance.stage_cost, instance.hardware
    layers = instance.model.layer_count
    parts = [(stop - count, stop) for stop, count in zip(accumulate(split), split, strict=True)]
    largest = max(max(sizes) for sizes in chunks.values())
    weights = [cost.weight_bytes(*part, embedding=part[0] == 0, head=part[1] == layers) for part in parts]
    static = [held + cost.workspace_bytes(*part, 1, largest) for held, part in zip(weights, parts, strict=True)]
    memory = [hardware.die_at(die).hbm_bytes for die in dies]
    if "capacity_at_rest" in kept and any(need > size for need, size in zip(static, memory, strict=True)):
        return False
    if "memory_admission" not in kept:
        return True
    host = 0.0 if hardware.host is None else hardware.host.host_bytes
    for (tokens, cached), sizes in chunks.items():
        for part, need, size in zip(parts, static, memory, strict=True):
            done = cached
            grows = cost.spillable_bytes_per_token(*part)
            for chunk in sizes:
                done += chunk
                # What may be elsewhere by then: earlier chunks of this request in layers that spill.
                held = float(cost.kv_held_bytes(*part, 1, done, chunk)) - grows * (done - chunk - cached)
                if need + held > size * (1 + 1e-12):
                    return False
            everything = float(cost.kv_held_bytes(*part, 1, tokens, sizes[-1]))
            if sum(static) + everything > (sum(memory) + host) * (1 + 1e-12):
                return False
    return True
