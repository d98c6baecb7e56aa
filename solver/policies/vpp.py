"""VPP (Shi et al., "Virtual Pipeline Parallelism", vLLM-Ascend): equal chunks through a V of two parts a die."""

from __future__ import annotations

from collections.abc import Iterator

from formulations.layers.candidates import even_split, fastest_split
from formulations.virtual.split import fixed_parts, virtual_reason
from instances.errors import InputError
from instances.plan import Plan, Schedule
from solver.placing import pipeline_placement
from solver.policies.uniform import uniform_plans
from solver.policies.vpp_engine import EngineRuns, engine_of
from solver.search import Placement, Search

Split = tuple[int, ...]


def vpp(search: Search, schedule: Schedule) -> None:
    """Equal chunks in a V-shaped schedule: the number asked for, or the best of a ladder under replay.

    The layers are split over 2N parts, of which die r holds r and 2N-1-r: balanced, or where the split is free the best
    under replay of an even one and the one with the fastest slowest part. Knob ``batch``: ``best`` tries every batch,
    ``largest`` ends with the largest one that runs. ``chunk`` is the size of chunks, of which the last takes the rest.
    With ``order`` or ``handoff`` as an engine has them the answer is a program (``vpp_engine``).
    """
    reason = virtual_reason(search.instance)
    if reason is not None:
        search.structural = reason
        return
    engine = engine_of(search)
    if engine is None:
        _try_plans(search, search, schedule)
        return
    runs = EngineRuns(search, engine)
    _try_plans(search, runs, schedule)
    runs.answer()


def _try_plans(search: Search, runs: Search | EngineRuns, schedule: Schedule) -> None:
    for split in folded_splits(search):
        ran = 0
        for plan in _plans(search, schedule, split):
            if search.knobs["batch"] == "largest" and plan.batch < ran:
                break
            if runs.offer(plan) is not None:
                ran = plan.batch
            if search.deadline.over:
                return


def _plans(search: Search, schedule: Schedule, split: Split) -> Iterator[Plan]:
    """Plans for every batch and number of chunks worth a try, or for chunks of the size asked for."""
    changes = {"layers": split, "placement": folded_placement(search), "schedule": schedule}
    largest_first = search.knobs["batch"] == "largest"
    if search.knobs["chunk"]:
        lists = chunk_lists(search, search.knobs["chunk"])
        for batch in search.batches()[:: -1 if largest_first else 1]:
            yield search.plan(batch, lists, split, folded_placement(search), schedule=schedule)
        return
    for plan in uniform_plans(search, largest_batch_first=largest_first):
        yield plan.model_copy(update=changes)


def chunk_lists(search: Search, chunk: int) -> dict[int, tuple[int, ...]]:
    """Chunks of a given size and a last one with the rest, per number of uncached tokens.

    Raises
    ------
    InputError
        For a size that is no multiple of the quantum, or beside a given number of chunks.
    """
    quantum = search.instance.pipeline.chunk_quantum
    if chunk % quantum:
        raise InputError("chunk", chunk, f"a multiple of chunk_quantum, {quantum} tokens")
    if search.chunks is not None:
        raise InputError("chunk", chunk, "0 where the number of chunks is given")
    counts = search.instance.workload.uncached_counts
    return {
        tokens: (*((chunk,) * ((tokens - 1) // chunk)), tokens - (tokens - 1) // chunk * chunk) for tokens in counts
    }


def folded_placement(search: Search) -> Placement:
    """Dies of all 2N parts: there and back again along a placement of the plain pipeline's."""
    dies = pipeline_placement(search)
    return dies + dies[::-1]


def folded_splits(search: Search) -> list[Split]:
    """Splits over 2N parts worth a try: the balanced one where the instance asks for it, else a few near it."""
    fixed = fixed_parts(search.instance)
    if fixed is not None:
        return [fixed]
    twice = search.instance.with_pipeline(stages=2 * search.stages, layers="free")
    longest = max(search.instance.workload.shapes)
    found = (even_split(twice), fastest_split(twice, search.batches()[-1], longest), fastest_split(twice, 1, longest))
    return list(dict.fromkeys(split for split in found if split is not None))
