"""Capacity tables of the README: ``python -m tests.performance.capacity [--models A,B] [--chunks 4,16] [--links ...]``.

For each model of suite ``mocap-capacity`` and each number of chunks the longest request within 5 % of latency, for each
way to spill; with ``--links`` the same over link speeds. In equal chunks, for which there is a bound, lengths are
multiples of the number of chunks: the quantum is made small enough for lengths 3 % apart.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from instances.instance import Instance
from solver.capacity.api import capacity
from solver.capacity.result import CapacityRow
from solver.limits import Limits

SUITE = Path(__file__).parents[2] / "instances" / "data" / "suites" / "mocap-capacity"
METHODS = ("none", "head-to-tail", "mocap", "rematch", "pool", "pool+delays")
BUDGET = 0.05
EQUAL_STEP = 0.03
"""Lengths in equal chunks differ by about this share of the file's."""


def main() -> None:
    """Print one Markdown row for each model, number of chunks and link speed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--models", default="", help="names of files without .json; all by default")
    arguments.add_argument("--chunks", default="16", help="numbers of chunks")
    arguments.add_argument("--links", default="", help="link speeds as '900 GB/s'; those of the files by default")
    arguments.add_argument("--methods", default=",".join(METHODS), help="rows of a capacity table")
    arguments.add_argument("--equal-chunks", action="store_true", help="only equal chunks, which have a bound")
    arguments.add_argument("--time-limit", type=float, default=300.0, help="seconds for one row of this table")
    given = arguments.parse_args()
    names = given.models.split(",") if given.models else sorted(path.stem for path in SUITE.glob("*.json"))
    links = given.links.split(",") if given.links else [None]
    methods = given.methods.split(",")
    sys.stdout.write(
        "| instance | chunks | links | " + " | ".join(f"{name} (tokens)" for name in methods) + " | bound |\n"
    )
    sys.stdout.write("| --- | ---: | ---: |" + " ---: |" * (len(methods) + 1) + "\n")
    for name in names:
        if name == "best_known":
            continue
        for chunks in map(int, given.chunks.split(",")):
            for link in links:
                sys.stdout.write(_line(name, methods, chunks, link, given) + "\n")
                sys.stdout.flush()


def _line(name: str, methods: list[str], chunks: int, link: str | None, given: argparse.Namespace) -> str:
    instance = Instance.load(SUITE / f"{name}.json")
    if given.equal_chunks:
        assert instance.workload.tokens is not None
        finer = max(1, round(EQUAL_STEP * instance.workload.tokens / chunks))
        instance = instance.with_pipeline(chunk_quantum=min(finer, instance.pipeline.chunk_quantum))
    if link is not None:
        document = instance.canonical()
        document["hardware"]["link_bytes_per_s"] = link
        instance = Instance.read(document)
    found = capacity(
        instance,
        methods,
        chunks=chunks,
        latency_budget=BUDGET,
        equal_chunks=given.equal_chunks,
        limits=Limits(time_s=given.time_limit),
    )
    bound = next((row.bound_tokens for row in found.methods if row.bound_tokens is not None), None)
    cells = " | ".join(_cell(row) for row in found.methods)
    speed = instance.hardware.link_bytes_per_s / 1e9
    return f"| {name} | {chunks} | {speed:g} GB/s | {cells} | {'–' if bound is None else bound} |"


def _cell(row: CapacityRow) -> str:
    """The longest request within the budget and its gain; then the longest at any latency, where that is longer."""
    if row.max_tokens is None:
        return "–"
    gain = "" if row.gain is None or row.method == "none" else f" ({row.gain:.2f}x)"
    longer = row.any_latency_tokens is not None and row.any_latency_tokens > row.max_tokens
    anyway = f"; {row.any_latency_tokens}" if longer else ""
    late = " at least" if row.note.startswith("time was up") else ""
    return f"{row.max_tokens}{gain}{anyway}{late}"


if __name__ == "__main__":
    main()
