"""What the simulator measured, in the published form."""

from __future__ import annotations

from instances.instance import Instance
from solver.result import Bubble, Metrics
from solver.simulation.replay import Replay


def metrics_of(instance: Instance, replayed: Replay) -> Metrics | None:
    """Metrics of a replay; None if it deadlocked.

    ``tokens_per_s`` counts all prompt tokens, cached ones included, over the makespan; ``computed_tokens_per_s`` only
    those that were computed.
    """
    bubbles, makespan = replayed.bubbles, replayed.makespan_s
    mean, p50 = replayed.mean_latency_s, replayed.p50_latency_s
    p95, p99 = replayed.p95_latency_s, replayed.p99_latency_s
    if mean is None or p50 is None or p95 is None or p99 is None or bubbles is None or not makespan:
        return None
    requests = instance.workload.all_requests()
    cached = sum(request.cached_tokens for request in requests)
    tokens = sum(request.tokens for request in requests)
    return Metrics(
        mean_latency_s=mean,
        p50_latency_s=p50,
        p95_latency_s=p95,
        p99_latency_s=p99,
        makespan_s=makespan,
        throughput_rps=len(requests) / makespan,
        tokens_per_s=tokens / makespan,
        computed_tokens_per_s=(tokens - cached) / makespan,
        bubble=Bubble(makespan=bubbles.makespan or 0.0, span=bubbles.span or 0.0, steady=bubbles.steady),
        peak_memory_bytes=tuple(replayed.peak_memory_bytes),
        link_bytes=sum(link.size_bytes for link in replayed.links),
        byte_hops=replayed.byte_hops,
        stall_s=tuple(replayed.stall_s),
    )
