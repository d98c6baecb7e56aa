"""Tiny instances: every plan, and the joint model for what it proves and finds.

Local search and the relaxation's cuts miss the best plan of some tiny instances, where a layer or a quantum more or
less is a large step. There are few plans without spill, so all are replayed; spill and the bound are the model's part.
"""

from __future__ import annotations

import math
from itertools import combinations, islice, product

from formulations.interface import EngineLimits
from formulations.joint.choices import MOST_LISTED, Choices, choices_of, listed
from formulations.joint.solve import solve_joint
from formulations.joint.variables import stated
from solver.backends.cpsat import solve_cpsat
from solver.limits import Deadline
from solver.search import Search

MOST_PLANS = 3000
"""Plans without spill, of placements that look alike one, that are all replayed."""
AT_ONCE = 64
"""Plans replayed in one call."""
MOST_CHUNKS = 5000
"""Chunks times stages of an instance that is looked at by the model."""
MOST_VARIABLES = 4000
"""Variables of a model that is solved."""
SHARE = 0.3
"""Share of the time left for both."""
MOST_S = 5.0
"""Seconds for the models of all batches."""


def joint(search: Search) -> None:
    """Offer every plan without spill, then solve the joint model; each only if it is small, and in its time."""
    instance, quick = search.instance, search.evaluator.always_quick
    if search.closed or search.structural is not None or not search.plain:
        return
    if not quick or listed(instance) > MOST_LISTED // 10:
        return
    deadline, choices = search.deadline.part(SHARE, math.inf), choices_of(instance)
    lists = _cut_lists(search, MOST_PLANS)
    if lists is not None:
        count = len(search.batches()) * len(choices.configurations) * math.prod(map(len, lists))
        if count <= MOST_PLANS:
            search.note(f"all {count} plans without spill")
            if not _every_plan(search, choices, lists, deadline):
                return
            if _is_all(search, choices) and search.incumbent.value is not None:
                _raise_bound(search, search.incumbent.value)
    if not search.closed and not deadline.over:
        _model(search, choices, deadline)


def _cut_lists(search: Search, most: int) -> list[list[tuple[int, tuple[int, ...]]]] | None:
    """Every chunk list of each number of uncached tokens, those with as many chunks together; None if too many."""
    lists = []
    for shape in {shape[0] - shape[1]: shape for shape in search.instance.workload.shapes}.values():
        grid = search.tables.grid(shape)
        fewest, upmost = (1, search.instance.pipeline.max_chunks) if search.chunks is None else (search.chunks,) * 2
        counts = range(fewest, min(upmost, grid.quanta) + 1)
        if sum(math.comb(grid.quanta - 1, count - 1) for count in counts) > most:
            return None
        lists.append(
            [
                (shape[0] - shape[1], grid.sizes([*ends, grid.quanta]))
                for count in counts
                for ends in combinations(range(1, grid.quanta), count - 1)
            ]
        )
    return lists


def _every_plan(
    search: Search, choices: Choices, lists: list[list[tuple[int, tuple[int, ...]]]], deadline: Deadline
) -> bool:
    """Replay all plans without spill, one placement of those that look alike; False if time was up before."""
    for batch, configuration in product(search.batches(), choices.configurations):
        sizes = product(*lists)
        while some := list(islice(sizes, AT_ONCE)):
            plans = [search.plan(batch, dict(each), configuration.layers, configuration.placement) for each in some]
            if deadline.over or not search.incumbent.affords(plans[0], len(plans)):
                return False
            search.incumbent.offer_all(plans)
    return True


def _is_all(search: Search, choices: Choices) -> bool:
    """Whether there are no other plans: none can spill, and no two placements look alike."""
    instance = search.instance
    creditors = search.stages > 1 or instance.hardware.host is not None
    spills = creditors and instance.stage_cost.spillable_bytes_per_token(0, instance.model.layer_count) > 0
    return not spills and len(choices.configurations) == listed(instance)


def _model(search: Search, choices: Choices, deadline: Deadline) -> None:
    """Solve the joint model of every batch, offer its plans, and raise the bound where all batches have one."""
    instance, pipeline = search.instance, search.instance.pipeline
    quanta = [search.tables.grid(shape).quanta for shape in instance.workload.shapes]
    arcs = sum(count * count * min(pipeline.max_chunks, count) for count in quanta) * search.stages
    if arcs > MOST_CHUNKS:
        return
    counts = None if search.chunks is None else (search.chunks, search.chunks)
    batches = search.batches()
    problems = (stated(instance, batch, chunk_counts=counts, choices=choices) for batch in batches)
    if any(problem.size > MOST_VARIABLES for problem in problems):
        return
    search.note("joint model")
    limits = EngineLimits(
        time_s=deadline.share(1.0, MOST_S) / len(batches),
        workers=search.limits.workers,
        deterministic=search.limits.deterministic,
    )
    start = search.incumbent.plan
    found = solve_joint(
        instance,
        "cpsat",
        solve_cpsat,
        limits,
        start=start if start is not None and start.schedule == "chunked" else None,
        below_s=search.incumbent.value,
        batches=batches,
        chunk_counts=counts,
        choices=choices,
    )
    for plan in found.plans.values():
        search.offer(plan)
    if found.stop_reason == "interrupted":
        raise KeyboardInterrupt
    if found.stop_reason == "time_limit":
        search.deadline.cut_short()
    _raise_bound(search, found.bound_s)


def _raise_bound(search: Search, bound_s: float | None) -> None:
    """Take note of a bound on plain plans, of all in scope where V-shaped ones are bounded too."""
    folded = [search.folded.get(batch) for batch in search.batches()] if search.v_shaped else []
    if bound_s is None or any(found is None or (found.bound_s is None and found.reason is None) for found in folded):
        return
    others = [found.bound_s for found in folded if found is not None and found.bound_s is not None]
    search.incumbent.raise_bound(min([bound_s, *others]))
