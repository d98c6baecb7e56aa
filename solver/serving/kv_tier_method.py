"""KV tiering as a method: reuse from the host, or active requests that spill to it; prompts alone."""

from __future__ import annotations

from solver.exact.host_spill import bisected
from solver.policies.layout import pipeline_layout
from solver.search import Search
from solver.serving.kv_tier import HostCache, Tier, Tiered, checked_prefixes
from solver.serving.memory import Memory
from solver.serving.setting import answer, setting_of


def kv_tier(search: Search) -> None:
    """Serve with a host tier, if the hardware has one."""
    host = search.instance.hardware.host
    if host is None:
        search.unserved = "hardware.host: there is none, and kv-tier keeps KV there"
    elif search.knobs["mode"] == "active_spill":
        _spilled(search)
    else:
        _reused(search, int(host.host_bytes), host.host_bytes_per_s)


def _reused(search: Search, host_bytes: int, host_bytes_per_s: float) -> None:
    knobs, requests = search.knobs, search.evaluator.requests
    checked_prefixes(requests)
    setting = setting_of(search, knobs["chunk"])
    tier = Tier(setting, host_bytes_per_s, knobs["block"])
    memory, cache = Memory(setting.cost, setting.free_bytes), HostCache(host_bytes, setting)
    scheduler = Tiered(tier, memory, cache, requests, knobs["chunk"], knobs["decide"])
    log = setting.run(scheduler, setting.prompts())
    longest = max(request.tokens for request in requests)
    search.details.update(
        crossover_tokens=tier.crossover(longest),
        loaded_tokens=scheduler.loaded_tokens,
        computed_again_tokens=scheduler.computed_again_tokens,
        loaded_bytes=scheduler.loaded_bytes,
        stored_bytes=scheduler.stored_bytes,
        evictions=cache.evictions,
    )
    answer(search, setting.judged(log))


def _spilled(search: Search) -> None:
    """Equal chunks, and a plan: what a stage has no room for goes to its host and comes back for each later chunk."""
    instance, chunk = search.instance, search.knobs["chunk"]
    layers, placement = pipeline_layout(search)
    sizes = {}
    for shape in instance.workload.shapes:
        tokens = shape[0] - shape[1]
        count = min(-(-tokens // chunk), search.tables.grid(shape).quanta, instance.pipeline.max_chunks)
        sizes[tokens] = search.equal_sizes(shape, count)
    plan = search.plan(1, sizes, layers, placement)
    if search.offer(plan) is None:
        bisected(search, plan)
