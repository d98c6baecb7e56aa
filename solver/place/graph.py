"""Reads flow graphs: CSV files with the columns source, target, weight."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from formulations.placement.problem import Flow
from instances.base import read_text
from instances.errors import InputError

COLUMNS = ("source", "target", "weight")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
LEAST_WEIGHT, MOST_WEIGHT = 1e-30, 1e30
"""Sums and products of weights in this range stay numbers."""


@dataclass(frozen=True)
class FlowGraph:
    """A graph whose edges pay their weight once for each hop between their nodes, whatever the direction.

    The direction says only which links an edge loads.

    Attributes
    ----------
    nodes
        Names in the order in which they first appear.
    flows
        (source, target, weight) by index; rows with the same source and target are added up.
    """

    nodes: tuple[str, ...]
    flows: tuple[Flow, ...]


def read_graph(path: Path) -> FlowGraph:
    """Read a CSV file; the header may be missing, names and numbers serve as nodes, weights are >= 0 in any unit.

    Raises
    ------
    InputError
        Names the file, the line and the column of what cannot be used.
    """
    file = str(path)
    index: dict[str, int] = {}
    weights: dict[tuple[int, int], float] = {}
    try:
        for line, cells in _rows(read_text(path), file):
            source, target, weight = _edge(line, cells, file)
            ends = index.setdefault(source, len(index)), index.setdefault(target, len(index))
            weights[ends] = weights.get(ends, 0.0) + weight
    except InputError as error:
        raise error.in_file(file) from None
    if not weights:
        raise InputError("rows", 0, "at least one row source,target,weight", file=file)
    flows = tuple((s, t, weight) for (s, t), weight in weights.items())
    return FlowGraph(tuple(index), flows)


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row below the header that is not empty."""
    reader = csv.reader(text.splitlines())
    try:
        for number, cells in enumerate(reader):
            stripped = [cell.strip() for cell in cells]
            is_header = number == 0 and tuple(cell.lower() for cell in stripped) == COLUMNS
            if any(stripped) and not is_header:
                yield reader.line_num, stripped
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}", str(error), "cells separated by commas", file=file) from None


def _edge(line: int, cells: list[str], file: str) -> tuple[str, str, float]:
    if len(cells) != len(COLUMNS):
        raise InputError(f"line {line}", ",".join(cells), "three cells: source,target,weight", file=file)
    source, target, text = cells
    for column, name in zip(COLUMNS, (source, target), strict=False):
        if not name:
            raise InputError(f"line {line}, {column}", name, "the name or number of a node", file=file)
    if source == target:
        raise InputError(f"line {line}, target", target, "another node than the source", file=file)
    allowed = f"0, or a number from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
    weight = float(text) if NUMBER.fullmatch(text) else math.nan
    if weight != 0 and not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise InputError(f"line {line}, weight", text, allowed, file=file)
    return source, target, weight
