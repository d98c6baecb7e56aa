"""The answer of a serving policy: its program, replayed, and what the replay says of requests and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from instances.instance import Instance
from solver.result import Bubble, Metrics
from solver.serving.jobs import Log
from solver.serving.tokens import Tokens, mean, nearest_rank, token_times
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
    return Served(document, metrics, metrics.value_s(instance.objective), error_ps / PICOSECONDS_PER_S)


def _metrics(
    replayed: Replay, log: Log, latencies: list[float], tokens: Tokens, expert_bytes: float, extra: Mapping[str, Any]
) -> Metrics:
    makespan = replayed.makespan_s
    assert makespan
    ranks = {f"p{percent}_latency_s": nearest_rank(latencies, percent) for percent in (50, 95, 99)}
    first = tokens.first_s(log.jobs)
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
        "bubble": _bubble(replayed, len(log.jobs), len(log.iterations)),
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


def _bubble(replayed: Replay, requests: int, iterations: int) -> Bubble:
    """Idle shares of the dies, by the tasks of iterations alone: the others compute nothing, and may start early."""
    program, run = replayed.program, replayed.run
    mine = (program.wave >= requests) & (program.wave < requests + iterations)
    # Tasks are numbered by wave, here iteration, and stage.
    duration, start, computes, end = (
        times[mine].reshape(iterations, program.stages)
        for times in (program.duration_ps, run.start_ps, run.compute_start_ps, run.end_ps)
    )
    first, last = start.min(axis=0), end.max(axis=0)
    busy, low, high = int(duration.sum()), int(first.max()), int(last.min())
    inside = np.maximum(np.minimum(computes + duration, high) - np.maximum(computes, low), 0)
    return Bubble(
        makespan=_idle_share(busy, program.stages * int(end.max())) or 0.0,
        span=_idle_share(busy, int((last - first).sum())) or 0.0,
        steady=_idle_share(int(inside.sum()), program.stages * (high - low)),
    )


def _idle_share(busy: int, available: int) -> float | None:
    return 1 - busy / available if available > 0 else None
