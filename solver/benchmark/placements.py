"""Placement problems as a part of suites: flow graphs on a mesh, and quadratic assignment problems."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from instances.errors import InputError
from instances.mesh import Mesh
from solver.place.graph import FlowGraph, read_graph
from solver.place.qaplib import QuadraticAssignment, read_qaplib

Answer = dict[str, tuple[int, int]] | list[int]
"""Die of each node, or a permutation numbered from 1."""
Objective = Literal["weighted_hops", "assignment"]
OBJECTIVES: tuple[Objective, ...] = ("weighted_hops", "assignment")
SCOPE = "any placement"


@dataclass(frozen=True)
class Placing:
    """A problem whose answer is a placement alone.

    Attributes
    ----------
    objective
        "weighted_hops": the sum of weight times hops over the edges, each once; "assignment": over ordered pairs, as in
        QAPLIB.
    document
        The problem as plain data.
    """

    name: str
    objective: Objective
    document: Mapping[str, Any]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the document, 32 hexadecimal digits."""
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def value(self, answer: Answer) -> float | None:
        """Objective of an answer, from the problem itself; None if it is no answer."""
        if self.objective == "assignment":
            problem = assignment_of(self.document)
            if not isinstance(answer, list) or sorted(answer) != list(range(1, problem.size + 1)):
                return None
            return float(problem.value(answer))
        graph, mesh = graph_of(self.document)
        if not isinstance(answer, dict) or set(answer) != set(graph.nodes):
            return None
        at = [(answer[name][0], answer[name][1]) for name in graph.nodes]
        if len(set(at)) < len(at) or not set(at) <= set(mesh.live_dies):
            return None
        return float(sum(weight * mesh.hops(at[s], at[t]) for s, t, weight in graph.flows))


def read_placing(path: Path) -> Placing:
    """Read NAME-RxC.csv, a flow graph for a mesh of R rows and C columns, or a QAPLIB NAME.dat.

    Raises
    ------
    InputError
        If the name of a graph does not say its mesh, or the file is not one.
    """
    if path.suffix == ".dat":
        problem = read_qaplib(path)
        matrices = {"first": problem.first.tolist(), "second": problem.second.tolist()}
        return Placing(path.stem, "assignment", matrices)
    match = re.search(r"-([1-9][0-9]{0,2})x([1-9][0-9]{0,2})$", path.stem)
    if match is None:
        raise InputError("name", path.name, "a name that ends in its mesh, as vopd-4x4.csv", file=str(path))
    graph, mesh = read_graph(path), [int(match[1]), int(match[2])]
    if len(graph.nodes) > mesh[0] * mesh[1]:
        allowed = f"a mesh with room for the {len(graph.nodes)} nodes of the graph"
        raise InputError("name", path.name, allowed, file=str(path))
    document = {"mesh": mesh, "nodes": list(graph.nodes), "flows": [list(flow) for flow in graph.flows]}
    return Placing(path.stem, "weighted_hops", document)


def graph_of(document: Mapping[str, Any]) -> tuple[FlowGraph, Mesh]:
    """The graph and the mesh of a document."""
    flows = tuple((int(source), int(target), float(weight)) for source, target, weight in document["flows"])
    return FlowGraph(tuple(document["nodes"]), flows), Mesh(*document["mesh"])


def assignment_of(document: Mapping[str, Any]) -> QuadraticAssignment:
    """The assignment problem of a document."""
    return QuadraticAssignment(np.array(document["first"]), np.array(document["second"]))
