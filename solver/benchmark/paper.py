"""The MOCAP paper's evaluation (arXiv 2606.22968) done again: its methods, models and wafer, our assumptions."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from instances.instance import Instance
from instances.suites import find_suite
from solver.benchmark.record import Record
from solver.benchmark.task import CAPACITY, Choice, RunLimits, Task, grid, label_of, read_choice

SUITE = "mocap-latency"
VARIED = "paper-sensitivity"
"""Suite name of the runs in which one assumption is changed; it has no folder."""
BASE = "llama3-70b-128k"
"""Instance whose assumptions are changed one at a time."""
LENGTH, LENGTH_SUITE, CHUNKS = "paper-length", "mocap-capacity", 16
"""Suite name of the searches for the longest request, the suite whose instances they take, their number of chunks."""
LENGTH_TIMES = 3
"""Such a search tries many lengths, and has so many times the limit of a run."""
WAYS = ("none", "mocap", "pool")
"""Ways to spill, the first of them not at all."""
REFERENCE = "gpipe"
METHODS = ("gpipe", "terapipe", "mocap", "mocap:batch=best", "exact")
PAPER = {"latency": -0.764, "throughput": 3.24, "length": 1.31}
"""Averages of the paper's MOCAP against GPipe: change of latency, factors of throughput and (at most) of length."""
ASSUMPTIONS = (
    "1-byte weights (4.5 PFLOP/s a die is a Blackwell's dense fp8 rate; bf16: 2.25), 2-byte KV and activations",
    "16 requests, all at time 0; latency counts from there, waiting included; batches of up to 8",
    "lengths of 32K, 128K and 512K tokens: the text at hand gives none",
    "chunks: multiples of 1024 tokens (256 for 32K), at most 128; MOCAP's number is the best of the multiples of 8",
    "efficiencies of 0.7 (matrix products), 0.5 (attention) and 0.8 (memory); 5 us a layer and chunk, 20 us a chunk",
    "50 ns a hop; links first in, first out, cut-through; serving a fetch stops the creditor's compute",
    "GPipe: whole requests in micro-batches of the best size; TeraPipe: its dynamic program and uniform slices",
    "longest request: 16 chunks, batch 1, 4 requests, any latency; 180 GB hold weights, workspace and KV of a die",
    "mocap: the largest batch that runs, as the paper words it; mocap:batch=best: every batch is tried",
)


@dataclass(frozen=True)
class Against:
    """A method against GPipe on one instance; None where one of the two has no plan.

    ``latency`` is the change of the mean latency (-0.5: halved), ``throughput`` the factor of requests a second.
    """

    latency: float | None
    throughput: float | None


@dataclass(frozen=True)
class Average:
    """Means over the instances on which both run, and how many these are of how many."""

    method: str
    latency: float | None
    throughput: float | None
    compared: int
    instances: int


def main_tasks(limits: RunLimits) -> list[Task]:
    """GPipe, TeraPipe, MOCAP and exact on the four models and all lengths."""
    return grid(SUITE, find_suite(SUITE).load(), [read_choice(name) for name in METHODS], [0], limits)


def sensitivity_tasks(limits: RunLimits) -> list[Task]:
    """The same methods on one instance with one assumption changed at a time."""
    base = next(instance for instance in find_suite(SUITE).load() if instance.name == BASE)
    return grid(VARIED, variations(base), [read_choice(name) for name in METHODS], [0], limits)


def length_tasks(limits: RunLimits) -> list[Task]:
    """The longest request of each model with a given number of chunks, for each of ``WAYS`` to spill."""
    instances = [
        instance for instance in find_suite(LENGTH_SUITE).load() if instance.name.endswith(f"-{CHUNKS}-chunks")
    ]
    choices = [Choice(CAPACITY, {"way": way}) for way in WAYS]
    longer = replace(limits, time_s=LENGTH_TIMES * limits.time_s)
    tasks = grid(LENGTH, instances, choices, [0], longer, chunks=CHUNKS)
    return [replace(task, objective="max_tokens") for task in tasks]


def lengths(records: Iterable[Record]) -> dict[str, dict[str, int | None]]:
    """Longest request in tokens by instance and way, None where none was found."""
    found: dict[str, dict[str, int | None]] = {}
    for record in records:
        if record.suite == LENGTH:
            tokens = None if record.value is None else int(record.value)
            found.setdefault(record.instance, {})[str(record.knobs["way"])] = tokens
    return found


def length_gain(row: Mapping[str, int | None], way: str) -> float | None:
    """Length over that without lending."""
    mine, other = row.get(way), row.get(WAYS[0])
    return mine / other if mine and other else None


def variations(base: Instance) -> list[Instance]:
    """The instance as it is, and with other requests, chunks, batches, efficiencies and rates."""

    def varied(name: str, part: str, **changes: Any) -> Instance:
        document: Any = getattr(base, part)
        return base.model_copy(update={"name": name, part: document.model_copy(update=changes)})

    def with_die(name: str, **changes: float) -> Instance:
        die = base.hardware.die
        return varied(name, "hardware", die=die.model_copy(update=changes))

    effs = ("gemm_efficiency", "attention_efficiency", "hbm_efficiency")
    none = {"layer_overhead_s": 0.0, "chunk_overhead_s": 0.0}
    die = base.hardware.die
    return [
        base.model_copy(update={"name": "as assumed"}),
        *(varied(f"{count} request{'s' * (count > 1)}", "workload", requests=count) for count in (1, 4, 6, 8, 64)),
        *(varied(f"at most {count} chunks", "pipeline", max_chunks=count) for count in (4, 8, 16, 32)),
        *(varied(f"batches of up to {count}", "pipeline", max_batch=count) for count in (1, 4, 16)),
        with_die("no losses, no overheads", **dict.fromkeys(effs, 1.0), **none),
        with_die("half the efficiencies", **{name: getattr(die, name) / 2 for name in effs}),
        with_die("ten times the overheads", **{name: 10 * getattr(die, name) for name in none}),
        with_die("bf16 rate (2.25 PFLOP/s)", peak_flops=die.peak_flops / 2),
    ]


def by_method(records: Iterable[Record], suite: str) -> dict[str, dict[str, Record]]:
    """Records of a suite by instance name and method label, in their order."""
    found: dict[str, dict[str, Record]] = {}
    for record in records:
        if record.suite == suite:
            found.setdefault(record.instance, {})[label_of(record.method, record.knobs)] = record
    return found


def against_reference(row: Mapping[str, Record], method: str) -> Against:
    """A method against GPipe on one instance."""
    own, other = row.get(method), row.get(REFERENCE)
    if own is None or other is None or own.metrics is None or other.metrics is None:
        return Against(None, None)
    return Against(
        own.metrics.mean_latency_s / other.metrics.mean_latency_s - 1,
        own.metrics.throughput_rps / other.metrics.throughput_rps,
    )


def averages(records: Sequence[Record], suite: str = SUITE) -> list[Average]:
    """Every method against GPipe, averaged over the instances where both run."""
    rows = by_method(records, suite)
    methods = dict.fromkeys(method for row in rows.values() for method in row if method != REFERENCE)
    found = []
    for method in methods:
        pairs = [against_reference(row, method) for row in rows.values()]
        latency = [pair.latency for pair in pairs if pair.latency is not None]
        throughput = [pair.throughput for pair in pairs if pair.throughput is not None]
        found.append(
            Average(
                method,
                statistics.fmean(latency) if latency else None,
                statistics.fmean(throughput) if throughput else None,
                len(latency),
                len(rows),
            )
        )
    return found
