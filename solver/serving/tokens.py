"""When tokens come out, and what follows for first tokens and for the times between them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from solver.serving.jobs import Iteration, Job, Log
from solver.simulation.network import PICOSECONDS_PER_S


@dataclass(frozen=True)
class Tokens:
    """When tokens came out, by request: seconds of each."""

    at_s: Mapping[int, Sequence[float]]

    def gaps_s(self) -> list[float]:
        """Times between successive tokens of a request, all requests."""
        return [later - earlier for times in self.at_s.values() for earlier, later in pairwise(times)]

    def first_s(self, jobs: Sequence[Job]) -> list[float]:
        """From arrival to first token, of each request that has one."""
        return [times[0] - jobs[job].arrival_ps / PICOSECONDS_PER_S for job, times in self.at_s.items()]


def token_times(iterations: Sequence[Iteration], ends_ps: Sequence[int]) -> Tokens:
    """When tokens came out, given the end of each iteration at the last stage."""
    times: dict[int, list[float]] = defaultdict(list)
    for iteration, end in zip(iterations, ends_ps, strict=True):
        for piece in iteration.batch.pieces:
            if piece.emits:
                times[piece.job].append(end / PICOSECONDS_PER_S)
    return Tokens(times)


def measured(log: Log) -> dict[str, float | None]:
    """First tokens, times between tokens and throughput, in the scheduler's times; None where not all were served."""
    ends = [iteration.ends_ps[-1] for iteration in log.iterations]
    tokens = token_times(log.iterations, ends)
    first, gaps = tokens.first_s(log.jobs), tokens.gaps_s()
    makespan = max(ends, default=0) / PICOSECONDS_PER_S
    found = {
        "ttft_s": mean(first),
        "p99_ttft_s": nearest_rank(first, 99),
        "p50_tbt_s": nearest_rank(gaps, 50),
        "p99_tbt_s": nearest_rank(gaps, 99),
        "max_tbt_s": max(gaps, default=None),
        "output_tokens_per_s": sum(job.produced for job in log.jobs) / makespan if makespan else None,
        "prompt_tokens_per_s": sum(job.prompt for job in log.jobs) / makespan if makespan else None,
    }
    return found if log.stuck is None else dict.fromkeys(found)


def nearest_rank(values: Sequence[float], percent: int) -> float | None:
    """Percentile by nearest rank; None of nothing."""
    ranked = sorted(values)
    return ranked[max(1, math.ceil(percent * len(ranked) / 100)) - 1] if ranked else None


def mean(values: Sequence[float]) -> float | None:
    """Mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None
