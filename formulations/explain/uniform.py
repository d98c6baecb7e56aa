"""The same questions without an engine where all dies of a group are alike: which layers can a stage end with?

A dynamic program over stages, for the searches that ask the same for many amounts of memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from itertools import accumulate

from formulations.explain.needs import Chunks, StageNeeds, smallest_too_large
from formulations.explain.problem import RULES, ClashProblem, Group, clash_problem
from instances.instance import Instance


def memory_reason(instance: Instance) -> str | None:
    """Why memory rules out every plain plan, whatever the timing; None where that is not proved, or dies differ."""
    problem = clash_problem(instance)
    if not clash_of_equal_dies(problem, RULES):
        return None
    pipeline, size = instance.pipeline, problem.groups[0].memories[0][0]
    splits = "the layer split" if problem.given is not None else "every layer split"
    chunk = problem.needs(Chunks(count=True, quantum=True)).largest_chunk
    chunks = f"at most {pipeline.max_chunks} chunks, the largest of at least {chunk} tokens"
    if clash_of_equal_dies(problem, [rule for rule in RULES if rule != "memory_admission"]):
        return f"capacity_at_rest: weights and workspace of {splits} do not fit dies of {size:.4g} bytes with {chunks}"
    return f"memory_admission: KV of {splits} does not fit beside weights and workspace with {chunks}"


def clash_of_equal_dies(problem: ClashProblem, kept: Collection[str]) -> bool | None:
    """Whether these rules clash; None where dies of a group that may be used differ in memory."""
    groups = [group for group in problem.groups if not set(group.forbidden_by) & set(kept)]
    if any(len(group.memories) > 1 for group in groups):
        return None
    needs = problem.needs(Chunks("chunk_count" in kept, "chunk_quantum" in kept))
    return not any(_splits(problem, needs, group, kept) for group in groups)


def _splits(problem: ClashProblem, needs: StageNeeds, group: Group, kept: Collection[str]) -> bool:
    """Whether some split keeps the rules on dies of a group."""
    layers, stages, room = problem.layers, problem.stages, group.memories[0][0]
    everywhere = [layers] * layers
    if "memory_admission" in kept:
        everywhere = _furthest(
            layers, smallest_too_large(layers, needs.everywhere, group.largest_sum(stages) + problem.host_bytes)
        )
    given = None
    if "layers_given" in kept and problem.given is not None:
        given = list(accumulate(problem.given))
    forbidden = problem.forbidden_cuts if "forbidden_cuts" in kept else frozenset()
    known: dict[tuple[bool, bool], list[int]] = {}
    starts, stops = {0}, set[int]()
    for s in range(stages):
        kind = s == 0, s == stages - 1
        if kind not in known:
            known[kind] = [
                min(pair) for pair in zip(everywhere, _on_its_die(problem, needs, s, room, kept), strict=True)
            ]
        furthest = known[kind]
        stops = _in_reach(starts, furthest)
        if given is not None:
            stops &= {given[s]}
        starts = {stop for stop in stops if stop < layers and stop not in forbidden}
    return layers in stops


def _on_its_die(problem: ClashProblem, needs: StageNeeds, stage: int, room: float, kept: Collection[str]) -> list[int]:
    furthest = [problem.layers] * problem.layers
    for rule, need in (("capacity_at_rest", needs.at_rest), ("memory_admission", needs.admitted)):
        if rule in kept:
            pairs = smallest_too_large(problem.layers, partial(need, stage), room)
            furthest = [min(both) for both in zip(furthest, _furthest(problem.layers, pairs), strict=True)]
    return furthest


def _furthest(layers: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each first layer, where a stage has to stop at the latest."""
    furthest = [layers] * layers
    for first, last in pairs:
        furthest[first] = last
    return furthest


def _in_reach(starts: Collection[int], furthest: list[int]) -> set[int]:
    """Where a stage that starts at one of these layers may stop."""
    change = [0] * (len(furthest) + 2)
    for start in starts:
        if furthest[start] > start:
            change[start + 1] += 1
            change[furthest[start] + 1] -= 1
    return {stop for stop, ways in enumerate(accumulate(change)) if ways > 0}
