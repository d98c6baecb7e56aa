"""Writes Chakra execution traces: one file an NPU, metadata first, then nodes, each after its length as a varint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.proto import serialize_length_prefixed

from instances.mesh import Mesh
from solver.export.chakra.graph import PS_PER_US, chakra_nodes, whole_us
from solver.export.chakra.nodes import Node, NodeType
from solver.export.chakra.order import checked_order
from solver.export.chakra.schema import SCHEMA_VERSION, messages
from solver.export.source import Source
from solver.simulation.program import Program

NAME = "plan"
"""Files are called plan.0.et, plan.1.et and so on: ASTRA-sim is told ``folder/plan``."""


def write(source: Source, folder: Path) -> str:
    """Write a file for every die of the mesh into a folder, NPUs numbered row by row.

    A die that runs nothing, or is dead, has a file without nodes: ASTRA-sim opens one for each NPU of its network.
    Node numbers are unique over all files. Durations are rounded to the nearest microsecond, halves up, since the
    format has no finer ones; each file's metadata say by how much in total, and ``exact_ps`` of a node is its duration.
    Bytes are rounded up.

    Raises
    ------
    InfeasibleError
        If ASTRA-sim would wait for ever (see ``checked_order``).
    """
    program, mesh = source.program, source.instance.hardware.mesh()
    npu_of_die = [row * mesh.columns + column for row, column in program.network.dies.tolist()]
    nodes = chakra_nodes(program, source.run, npu_of_die)
    order = checked_order(nodes)
    number = np.argsort(order).tolist()
    at_npu: dict[int, list[int]] = defaultdict(list)
    for position in order:
        at_npu[nodes[position].npu].append(position)
    error_us = rounding_error_us(program)
    for npu in range(mesh.rows * mesh.columns):
        die = npu_of_die.index(npu) if npu in npu_of_die else None
        with (folder / f"{NAME}.{npu}.et").open("wb") as file:
            serialize_length_prefixed(_metadata(source, mesh, npu, die, error_us), file)
            for position in at_npu[npu]:
                serialize_length_prefixed(_node(program, nodes, number, position), file)
    total_us = float(np.abs(error_us).sum())
    largest_us = float(np.abs(error_us).max(initial=0.0))
    return (
        f"{mesh.rows * mesh.columns} traces, {len(nodes)} nodes; durations rounded to 1 us: "
        f"{largest_us:.3g} us off at most over a die's tasks, {total_us:.3g} us over all"
    )


def rounding_error_us(program: Program) -> Any:
    """Rounded minus exact compute time of each die. Shape [D], float64, microseconds."""
    error_ps = whole_us(program.duration_ps) * PS_PER_US - program.duration_ps
    return np.bincount(program.die, weights=error_ps, minlength=program.dies) / PS_PER_US


def _metadata(source: Source, mesh: Mesh, npu: int, die: int | None, error_us: Any) -> Any:
    row, column = divmod(npu, mesh.columns)
    stages = [] if die is None else np.flatnonzero(source.program.die_of_stage() == die).tolist()
    attributes = [_attribute(name, "string_val", value) for name, value in source.origin.items()]
    attributes += [
        _attribute("row", "int32_val", row),
        _attribute("column", "int32_val", column),
        _attribute("stages", "string_val", ",".join(map(str, stages))),
        _attribute("duration_rounding", "string_val", "to the nearest microsecond, halves up"),
        _attribute("duration_rounding_error_us", "double_val", 0.0 if die is None else float(error_us[die])),
    ]
    return messages().metadata(version=SCHEMA_VERSION, attr=attributes)


def _node(program: Program, nodes: list[Node], number: list[int], position: int) -> Any:
    node = nodes[position]
    return messages().node(
        id=number[position],
        name=node.name,
        type=int(node.type),
        data_deps=sorted(number[other] for other in node.deps),
        duration_micros=node.duration_us,
        attr=list(_attributes(program, node)),
    )


def _attributes(program: Program, node: Node) -> Iterator[Any]:
    """Attributes with the types in which ASTRA-sim reads them."""
    yield _attribute("is_cpu_op", "bool_val", node.on_cpu)
    if node.type in (NodeType.SEND, NodeType.RECV):
        yield _attribute("comm_size", "int64_val", node.size_bytes)
        yield _attribute("comm_src", "int32_val", node.source)
        yield _attribute("comm_dst", "int32_val", node.target)
        yield _attribute("comm_tag", "int32_val", node.tag)
    elif node.type in (NodeType.MEM_LOAD, NodeType.MEM_STORE):
        yield _attribute("tensor_size", "uint64_val", node.size_bytes)
    elif node.task >= 0:
        for name in ("wave", "stage", "chunk"):
            yield _attribute(name, "int32_val", int(getattr(program, name)[node.task]))
        yield _attribute("exact_ps", "int64_val", int(program.duration_ps[node.task]))


def _attribute(name: str, field: str, value: object) -> Any:
    return messages().attribute(name=name, **{field: value})
