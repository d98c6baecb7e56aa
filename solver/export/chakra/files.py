"""Writes Chakra execution traces: one file an NPU, metadata first, then nodes, each after its length as a varint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.proto import serialize_length_prefixed

from instances.errors import InfeasibleError
from solver.export.chakra.graph import PS_PER_US, chakra_nodes, whole_us
from solver.export.chakra.nodes import Node, NodeType
from solver.export.chakra.order import checked_order
from solver.export.chakra.schema import SCHEMA_VERSION, messages
from solver.export.source import Source
from solver.simulation.engine import Run
from solver.simulation.program import Program
from solver.simulation.waiting import describe

NAME = "plan"
"""Files are called plan.0.et, plan.1.et and so on: ASTRA-sim is told ``folder/plan``."""


def write(source: Source, folder: Path) -> str:
    """Write a file for every die of the source's mesh into a folder (see ``write_traces``)."""
    mesh = source.instance.hardware.mesh()
    nodes = write_traces(source.program, source.run, (mesh.rows, mesh.columns), source.origin, folder)
    error_us = np.abs(rounding_error_us(source.program))
    return (
        f"{mesh.rows * mesh.columns} traces with {nodes} nodes; rounding to whole microseconds moves the compute "
        f"time of a die by {error_us.max():.3g} us at most, of all dies by {error_us.sum():.3g} us"
    )


def write_traces(program: Program, run: Run, grid: tuple[int, int], origin: dict[str, str], folder: Path) -> int:
    """Write a file for every die of a grid of rows and columns, NPUs numbered row by row; return the number of nodes.

    A die that runs nothing, or is dead, has a file without nodes: ASTRA-sim opens one for each NPU of its network.
    Node numbers are unique over all files. Durations are rounded to the nearest microsecond, halves up, since the
    format has no finer ones; each file's metadata say by how much in total, and ``exact_ps`` of a node is its duration.
    Bytes are rounded up.

    Parameters
    ----------
    origin
        Attributes for the metadata of each file.

    Raises
    ------
    ValueError
        If the run was not traced.
    InfeasibleError
        If the run deadlocked, or ASTRA-sim would wait for ever (see ``checked_order``).
    """
    rows, columns = grid
    npu_of_die = [row * columns + column for row, column in program.network.dies.tolist()]
    if run.deadlock:
        raise InfeasibleError("deadlock", describe(program, run.waiting, int((run.end_ps < 0).sum())))
    nodes = chakra_nodes(program, run, npu_of_die)
    order = checked_order(nodes)
    number = np.argsort(order).tolist()
    at_npu: dict[int, list[int]] = defaultdict(list)
    for position in order:
        at_npu[nodes[position].npu].append(position)
    for npu in range(rows * columns):
        die = npu_of_die.index(npu) if npu in npu_of_die else None
        with (folder / f"{NAME}.{npu}.et").open("wb") as file:
            serialize_length_prefixed(_metadata(program, origin, divmod(npu, columns), die), file)
            for position in at_npu[npu]:
                serialize_length_prefixed(_node(program, nodes, number, position), file)
    return len(nodes)


def rounding_error_us(program: Program) -> Any:
    """Rounded minus exact compute time of each die. Shape [D], float64, microseconds."""
    error_ps = whole_us(program.duration_ps) * PS_PER_US - program.duration_ps
    return np.bincount(program.die, weights=error_ps, minlength=program.dies) / PS_PER_US


def _metadata(program: Program, origin: dict[str, str], place: tuple[int, int], die: int | None) -> Any:
    stages = [] if die is None else np.flatnonzero(program.die_of_stage() == die).tolist()
    error_us = 0.0 if die is None else float(rounding_error_us(program)[die])
    attributes = [_attribute(name, "string_val", value) for name, value in origin.items()]
    attributes += [
        _attribute("row", "int32_val", place[0]),
        _attribute("column", "int32_val", place[1]),
        _attribute("stages", "string_val", ",".join(map(str, stages))),
        _attribute("duration_rounding", "string_val", "to the nearest microsecond, halves up"),
        _attribute("duration_rounding_error_us", "double_val", error_us),
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
