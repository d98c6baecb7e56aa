"""WavePP as a method, with the four cumulative rows of its ablation and a budget in predicted time beside it.

Prompts alone are served: output tokens of a trace are left to other workers, as in the paper.
"""

from __future__ import annotations

from typing import Any

from instances.layers import LinearAttention
from instances.workload import Request
from solver.search import Search
from solver.serving.jobs import Log
from solver.serving.kv_tier import checked_prefixes
from solver.serving.setting import Setting, answer, setting_of
from solver.serving.tokens import measured
from solver.serving.wavepp.admission import Admission, Control
from solver.serving.wavepp.cache import StageCache
from solver.serving.wavepp.scheduler import WavePP, Waves, prefix_of
from solver.simulation.network import whole_ps

ROWS: dict[str, dict[str, str]] = {
    "naive": {"admission": "blocking", "protection": "none", "waves": "static"},
    "admission": {"admission": "overlapped", "protection": "none", "waves": "static"},
    "leases": {"admission": "overlapped", "protection": "leases", "waves": "static"},
    "mpu": {"admission": "overlapped", "protection": "leases", "waves": "mpu"},
    "time": {"admission": "overlapped", "protection": "leases", "waves": "time"},
}
"""The ablation, each row with all of those before it; the last one is an extension."""


def wavepp(search: Search) -> None:
    """Serve with the knobs' row; with ``ablation`` all rows beside it."""
    checked_prefixes(search.evaluator.requests)
    knobs = search.knobs
    setting = setting_of(search, knobs["largest"])
    row = {name: knobs[name] for name in ("admission", "protection", "waves")}
    log, scheduler = run(setting, {**knobs, **row})
    admission = scheduler.admission
    search.details.update(
        stale_hints=admission.stale_hints,
        rechecks=admission.rechecks,
        preemptions=scheduler.preemptions,
        lost_tokens=admission.lost_blocks * admission.block,
        evicted_blocks=[cache.evicted for cache in admission.caches],
        waves=len(log.iterations),
    )
    if knobs["ablation"] == "yes":
        search.details["ablation"] = {
            name: _row(*run(setting, {**knobs, **changes}))
            for name, changes in ROWS.items()
            if not search.deadline.over
        }
    answer(search, setting.judged(log, {"good_hit_rate": good_hit_rate(scheduler)}))


def run(setting: Setting, knobs: dict[str, Any]) -> tuple[Log, WavePP]:
    """Serve all requests with these knobs."""
    requests, block = setting.instance.workload.all_requests(), int(knobs["block"])
    sizes, caches = caches_of(setting, block, int(knobs["snapshot"]))
    seed_caches(caches, requests, block)
    host = setting.instance.hardware.host
    control = Control(
        walk_ps=whole_ps(knobs["walk_us"] * 1e-6),
        round_ps=whole_ps(2 * (setting.stages - 1) * knobs["hop_us"] * 1e-6),
        block_ps=whole_ps(knobs["block_us"] * 1e-6),
        offload_ps=tuple(0 if host is None else whole_ps(size / host.host_bytes_per_s) for size in sizes),
        hint_age_ps=whole_ps(knobs["hint_age_ms"] * 1e-3),
    )
    admission = Admission(
        caches,
        control,
        protected=knobs["protection"] == "leases",
        most_held=knobs["held"] or 2 * setting.stages,
        headroom=knobs["headroom"],
        block=block,
    )
    waves = Waves(
        mode=knobs["waves"],
        largest=knobs["largest"],
        smallest=min(knobs["smallest"], knobs["largest"]),
        target=knobs["target"] or setting.stages,
        deadline_ps=whole_ps(knobs["deadline_ms"] * 1e-3),
        equal=knobs["packing"] == "equal",
    )
    scheduler = WavePP(
        admission,
        setting.cost,
        requests,
        waves,
        sizes,
        blocking=knobs["admission"] == "blocking",
        preempts=knobs["stall"] == "preempt",
    )
    return setting.run(scheduler, setting.prompts()), scheduler


def caches_of(setting: Setting, block: int, snapshot: int) -> tuple[list[int], list[StageCache]]:
    """Bytes of a block and an empty cache of each stage.

    Blocks keep the KV of all their tokens, in sliding layers too. On stages with layers that have a recurrent state a
    snapshot is kept every ``snapshot`` tokens; its bytes are spread over the blocks between two of them.
    """
    every = max(1, snapshot // block)
    states = setting.cost.held_bytes(1, 0)
    grown = setting.cost.held_bytes(1 + block, block)
    sizes: list[int] = []
    caches: list[StageCache] = []
    for stage, free in zip(setting.cost.stages, setting.free_bytes, strict=True):
        kinds = setting.instance.model.kind_counts(stage.start, stage.stop)
        attentions = [(setting.instance.model.kinds[kind].attention, count) for kind, count in kinds.items()]
        recurrent = [(each, count) for each, count in attentions if isinstance(each, LinearAttention)]
        state = sum(count * (each.state_bytes or 0) for each, count in recurrent)
        number = len(sizes)
        size = grown[number] - states[number] + -(-int(state) // every)
        sizes.append(max(1, size))
        caches.append(StageCache(max(0, free) // sizes[-1], every if recurrent else 0))
    return sizes, caches


def seed_caches(caches: list[StageCache], requests: list[Request], block: int) -> None:
    """Cached tokens of requests are on every stage from the start, as far as it has room; earlier ones go first."""
    for number, request in enumerate(requests):
        if request.cached_tokens:
            shared, prefix = prefix_of(request, number)
            for cache in caches:
                cache.seed(prefix, min(shared, request.cached_tokens) // block)


def good_hit_rate(scheduler: WavePP) -> float | None:
    """Share of the requests with an expected prefix that reused at least 80 % of it; None without any."""
    hits = scheduler.hits.values()
    return sum(hits) / len(hits) if hits else None


def _row(log: Log, scheduler: WavePP) -> dict[str, Any]:
    found = measured(log)
    numbers = {name: found[name] for name in ("prompt_tokens_per_s", "ttft_s")}
    return {**numbers, "good_hit_rate": good_hit_rate(scheduler), "waves": len(log.iterations), "reason": log.stuck}
