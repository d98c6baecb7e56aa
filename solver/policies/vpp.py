"""VPP (Shi et al., "Virtual Pipeline Parallelism", vLLM-Ascend): equal chunks through a V of two parts a die."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.layers.candidates import even_split, fastest_split
from formulations.virtual.split import fixed_parts, virtual_reason
from instances.plan import Plan, Schedule
from solver.placing import pipeline_placement
from solver.policies.uniform import uniform_plans
from solver.search import Placement, Search

Split = tuple[int, ...]


def vpp(search: Search, schedule: Schedule) -> None:
    """Equal chunks in a V-shaped schedule: the number asked for, or the best of a ladder under replay.

    The layers are split over 2N parts, of which die r holds r and 2N-1-r: balanced, or where the split is free the best
    under replay of an even one and the one with the fastest slowest part. Knob ``batch``: ``best`` tries every batch,
    ``largest`` ends with the largest one that runs.
    """
    reason = virtual_reason(search.instance)
    if reason is not None:
        search.structural = reason
        return
    for split in folded_splits(search):
        ran = 0
        for plan in _equal_chunks(search, schedule, split):
            if search.knobs["batch"] == "largest" and plan.batch < ran:
                break
            if search.offer(plan) is not None:
                ran = plan.batch
            if search.deadline.over:
                return


def _equal_chunks(search: Search, schedule: Schedule, split: Split) -> Iterator[Plan]:
    """Plans for every batch and number of chunks worth a try."""
    changes = {"layers": split, "placement": folded_placement(search), "schedule": schedule}
    largest_first = search.knobs["batch"] == "largest"
    for plan in uniform_plans(search, largest_batch_first=largest_first):
        yield plan.model_copy(update=changes)


def folded_placement(search: Search) -> Placement:
    """Dies of all 2N parts: there and back again along a placement of the plain pipeline's."""
    dies = pipeline_placement(search)
    return dies + dies[::-1]


def folded_splits(search: Search) -> list[Split]:
    """Splits over 2N parts worth a try: the balanced one where the instance asks for it, else a few near it."""
    fixed = fixed_parts(search.instance)
    if fixed is not None:
        return [fixed]
    pipeline = search.instance.pipeline
    twice = search.instance.model_copy(
        update={"pipeline": pipeline.model_copy(update={"stages": 2 * search.stages, "layers": "free"})}
    )
    longest = max(search.instance.workload.shapes)
    found = (even_split(twice), fastest_split(twice, search.batches()[-1], longest), fastest_split(twice, 1, longest))
    return list(dict.fromkeys(split for split in found if split is not None))
