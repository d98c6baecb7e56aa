"""The rules that may clash, as data: stages, cuts, groups of dies, and parts of layers that are too large for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from formulations.explain.needs import Chunks, StageNeeds
from formulations.structure import Die, islands
from instances.instance import Instance

RULES = (
    "memory_admission",
    "chunk_quantum",
    "chunk_count",
    "layers_given",
    "forbidden_cuts",
    "placement_connected",
    "placement_live",
    "capacity_at_rest",
)
"""The rules that can clash, in the order in which a core is freed of them: later ones are kept where either would do.

The others (``layers_cover``, ``stage_nonempty``, ``placement_injective``, ``chunks_cover`` and what concerns spill) say
what a plan is, and always hold.
"""


@dataclass(frozen=True)
class Group:
    """Dies of which a plan may use any, while it keeps the rules named.

    Attributes
    ----------
    forbidden_by
        Rules against using this group.
    memories
        (bytes, number of dies), the largest first.
    """

    forbidden_by: tuple[str, ...]
    memories: tuple[tuple[float, int], ...]

    def largest_sum(self, dies: int) -> float:
        """Bytes of the so many largest memories."""
        total, left = 0.0, dies
        for size, count in self.memories:
            total += size * min(count, left)
            left -= min(count, left)
        return total


@dataclass(frozen=True)
class ClashProblem:
    """What a plan of the chunked schedule has to satisfy, whatever its timing.

    Attributes
    ----------
    needs
        What stages need under rules on chunks.
    host_bytes
        Of one die's host memory, 0 without a host tier.
    """

    stages: int
    layers: int
    given: tuple[int, ...] | None
    forbidden_cuts: frozenset[int]
    groups: tuple[Group, ...]
    needs: Callable[[Chunks], StageNeeds]
    host_bytes: float

    def with_memory(self, change: Callable[[float], float]) -> ClashProblem:
        """The same with every die's memory changed."""
        groups = tuple(
            replace(group, memories=tuple((change(size), count) for size, count in group.memories))
            for group in self.groups
        )
        return replace(self, groups=groups)


def clash_problem(instance: Instance) -> ClashProblem:
    """The problem of an instance."""
    pipeline, host = instance.pipeline, instance.hardware.host
    return ClashProblem(
        stages=pipeline.stages,
        layers=instance.model.layer_count,
        given=instance.fixed_layers,
        forbidden_cuts=frozenset(pipeline.forbidden_cuts),
        groups=tuple(_groups(instance)),
        needs=lru_cache(maxsize=4)(partial(StageNeeds, instance)),
        host_bytes=0.0 if host is None else host.host_bytes,
    )


def joined_dies(instance: Instance, *, live_only: bool) -> list[list[Die]]:
    """Dies that links join, the largest group first; disabled dies count as enabled unless ``live_only``."""
    if live_only:
        return islands(instance)
    whole = instance.hardware.model_copy(update={"disabled_dies": ()})
    return islands(instance.model_copy(update={"hardware": whole}))


def _groups(instance: Instance) -> list[Group]:
    hardware, stages = instance.hardware, instance.pipeline.stages
    found: list[Group] = []
    for live_only, against in ((True, ()), (False, ("placement_live",))):
        islands = joined_dies(instance, live_only=live_only)
        parts: list[tuple[tuple[str, ...], list[Die]]] = [(against, island) for island in islands]
        parts.append(((*against, "placement_connected"), [die for island in islands for die in island]))
        for rules, dies in parts:
            if len(dies) >= stages:
                memories = Counter(hardware.die_at(die).hbm_bytes for die in dies)
                group = Group(rules, tuple(sorted(memories.items(), reverse=True)))
                if not any(
                    set(known.forbidden_by) <= set(rules) and known.memories == group.memories for known in found
                ):
                    found.append(group)
    return found
