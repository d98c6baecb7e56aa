"""The answer of a serving policy: its program, replayed, and what the replay says of requests and tokens."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from instances.instance import Instance
from solver.result import Bubble, Metrics
from solver.serving.jobs import Iteration, Log
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program_file import read_program
from solver.simulation.replay import Replay, replay


@dataclass(frozen=True)
class Served:
    """A program that replays to its end.

    Attributes
    ----------
    program
        The document; ``waferplan simulate --program`` replays it to the same times.
    value
        The instance's objective in seconds, over requests from arrival to their last token.
    error_s
        Largest difference between a replayed end of an iteration and the time that the scheduler counted with.
    """

    program: dict[str, Any]
    metrics: Metrics
    value: float
    error_s: float


@dataclass(frozen=True)
class Tokens:
    """When tokens came out, by request: seconds of each."""

    at_s: Mapping[int, Sequence[float]]

    def gaps_s(self) -> list[float]:
        """Times between successive tokens of a request, all requests."""
        return [later - earlier for times in self.at_s.values() for earlier, later in pairwise(times)]


def token_times(iterations: Sequence[Iteration], ends_ps: Sequence[int]) -> Tokens:
    """When tokens came out, given the end of each iteration at the last stage."""
    times: dict[int, list[float]] = defaultdict(list)
    for iteration, end in zip(iterations, ends_ps, strict=True):
        for piece in iteration.batch.pieces:
            if piece.emits:
                times[piece.job].append(end / PICOSECONDS_PER_S)
    return Tokens(times)


def nearest_rank(values: Sequence[float], percent: int) -> float | None:
    """Percentile by nearest rank; None of nothing."""
    ranked = sorted(values)
    return ranked[max(1, math.ceil(percent * len(ranked) / 100)) - 1] if ranked else None


def mean(values: Sequence[float]) -> float | None:
    """Mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def judge(
    instance: Instance, document: dict[str, Any], log: Log, expert_bytes: float, extra: Mapping[str, Any]
) -> Served | str:
    """Replay a program and measure it; or the deadlock in words.

    Parameters
    ----------
    extra
        Further metrics of the policy, by name.
    """
    program = read_program(document)
    replayed = replay(program, [[arrival] for arrival in document["arrivals_s"]])
    if replayed.deadlock or replayed.completion_s is None:
        return f"deadlock: {replayed.reason}"
    requests = len(log.jobs)
    iteration_waves = (program.wave >= requests) & (program.wave < requests + len(log.iterations))
    leads = iteration_waves & (program.stage == program.stages - 1)
    ends = replayed.run.end_ps[leads].tolist()
    expected = [iteration.ends_ps[-1] for iteration in log.iterations]
    error_ps = max(abs(a - b) for a, b in zip(ends, expected, strict=True))
    arrivals = np.array(document["arrivals_s"][:requests])
    latencies: list[float] = (replayed.completion_s[:requests] - arrivals).tolist()
    metrics = _metrics(replayed, log, latencies, token_times(log.iterations, ends), expert_bytes, extra)
    makespan = metrics.makespan_s
    value = {
        "makespan": makespan,
        "p95_latency": metrics.p95_latency_s,
    }.get(instance.objective, metrics.mean_latency_s)
    return Served(document, metrics, value, error_ps / PICOSECONDS_PER_S)


def _metrics(
    replayed: Replay, log: Log, latencies: list[float], tokens: Tokens, expert_bytes: float, extra: Mapping[str, Any]
) -> Metrics:
    makespan, bubbles = replayed.makespan_s, replayed.bubbles
    assert makespan and bubbles is not None
    ranks = {f"p{percent}_latency_s": nearest_rank(latencies, percent) for percent in (50, 95, 99)}
    first = [times[0] - log.jobs[job].arrival_ps / PICOSECONDS_PER_S for job, times in tokens.at_s.items()]
    gaps = tokens.gaps_s()
    prompt = sum(job.prompt for job in log.jobs)
    produced = sum(job.produced for job in log.jobs)
    measured: dict[str, Any] = {
        "mean_latency_s": mean(latencies),
        **ranks,
        "makespan_s": makespan,
        "throughput_rps": len(log.jobs) / makespan,
        "tokens_per_s": prompt / makespan,
        "prompt_tokens_per_s": prompt / makespan,
        "computed_tokens_per_s": sum(job.computed for job in log.jobs) / makespan,
        "output_tokens_per_s": produced / makespan if produced else None,
        "bubble": Bubble(makespan=bubbles.makespan or 0.0, span=bubbles.span or 0.0, steady=bubbles.steady),
        "peak_memory_bytes": tuple(replayed.peak_memory_bytes),
        "link_bytes": sum(link.size_bytes for link in replayed.links),
        "byte_hops": replayed.byte_hops,
        "stall_s": tuple(replayed.stall_s),
        "ttft_s": mean(first),
        "p50_ttft_s": nearest_rank(first, 50),
        "p99_ttft_s": nearest_rank(first, 99),
        "tbt_s": mean(gaps),
        "p50_tbt_s": nearest_rank(gaps, 50),
        "p99_tbt_s": nearest_rank(gaps, 99),
        "max_tbt_s": max(gaps, default=None),
        "expert_bytes": expert_bytes or None,
        **extra,
    }
    return Metrics(**measured)
