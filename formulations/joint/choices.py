"""Layer splits and placements of an instance, told apart by what the models see of them.

Two placements are the same choice if every stage has the same die and every pair of neighbouring stages the same links
between them: as fast, and as many hops. Of those that are the same one is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise, permutations
from math import comb, perm

from formulations.structure import structural_reason
from instances.errors import InputError
from instances.hardware import Die
from instances.instance import Instance
from instances.mesh import Mesh

Position = tuple[int, int]

MOST_LISTED = 50_000
"""Layer splits times placements that are looked at."""


@dataclass(frozen=True)
class StageChoice:
    """Layers ``start .. stop-1`` on a die."""

    start: int
    stop: int
    die: Die
    embedding: bool
    head: bool


@dataclass(frozen=True)
class Way:
    """The way between the dies of two stages: its smallest bandwidth, and its hops."""

    bytes_per_s: float
    hops: int


@dataclass(frozen=True)
class Configuration:
    """Layers of each stage and a placement, and what the models see of them.

    Attributes
    ----------
    stages
        What each stage is, N.
    ways
        Between neighbouring stages, N - 1.
    """

    layers: tuple[int, ...]
    placement: tuple[Position, ...]
    stages: tuple[StageChoice, ...]
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class Choices:
    """All configurations, and the best way between any two stages in any of them.

    Attributes
    ----------
    best_ways
        For each ordered pair of stages: the largest bandwidth and the fewest hops that any placement gives it.
    """

    configurations: tuple[Configuration, ...]
    best_ways: dict[tuple[int, int], Way]


def listed(instance: Instance) -> int:
    """Layer splits times placements."""
    stages, layers = instance.pipeline.stages, instance.model.layer_count
    allowed = layers - 1 - len(set(instance.pipeline.forbidden_cuts))
    split = comb(max(allowed, 0), stages - 1) if instance.fixed_layers is None else 1
    return split * perm(len(instance.hardware.live_dies), stages)


def choices_of(instance: Instance) -> Choices:
    """The choices that an instance leaves; none where rules of connectivity and cuts leave none.

    Raises
    ------
    InputError
        For more than can be listed.
    """
    if structural_reason(instance) is not None:
        return Choices((), {})
    if listed(instance) > MOST_LISTED:
        raise InputError(
            "pipeline.stages", instance.pipeline.stages, f"at most {MOST_LISTED} layer splits times placements"
        )
    found: dict[tuple[tuple[StageChoice, ...], tuple[Way, ...]], Configuration] = {}
    best: dict[tuple[int, int], Way] = {}
    mesh, splits = instance.hardware.mesh(), list(layer_splits(instance))
    for placement in permutations(instance.hardware.live_dies, instance.pipeline.stages):
        ways = _ways(instance, mesh, placement)
        if ways is None:
            continue
        for pair, way in ways.items():
            other = best.get(pair, way)
            best[pair] = Way(max(way.bytes_per_s, other.bytes_per_s), min(way.hops, other.hops))
        beside = tuple(ways[s, s + 1] for s in range(len(placement) - 1))
        dies = [instance.hardware.die_at(position) for position in placement]
        for layers in splits:
            stages = tuple(
                StageChoice(stop - count, stop, die, stop == count, stop == instance.model.layer_count)
                for stop, count, die in zip(accumulate(layers), layers, dies, strict=True)
            )
            found.setdefault((stages, beside), Configuration(layers, placement, stages, beside))
    return Choices(tuple(found.values()), best)


def layer_splits(instance: Instance) -> Iterator[tuple[int, ...]]:
    """The layer split, or all that the forbidden cuts allow where it is free."""
    if instance.fixed_layers is not None:
        yield instance.fixed_layers
        return
    layers, forbidden = instance.model.layer_count, set(instance.pipeline.forbidden_cuts)
    inner = [cut for cut in range(1, layers) if cut not in forbidden]
    for ends in combinations(inner, instance.pipeline.stages - 1):
        yield tuple(stop - start for start, stop in pairwise((0, *ends, layers)))


def _ways(instance: Instance, mesh: Mesh, placement: tuple[Position, ...]) -> dict[tuple[int, int], Way] | None:
    """Ways between all pairs of stages; None if links do not join them."""
    hardware = instance.hardware
    ways = {}
    for s, a in enumerate(placement):
        for k, b in enumerate(placement):
            if a == b:
                continue
            try:
                route = mesh.route(a, b, instance.pipeline.routing)
            except ValueError:
                return None
            speeds = [
                hardware.seam_bytes_per_s if mesh.crosses_wafers(link) else hardware.link_bytes_per_s for link in route
            ]
            ways[s, k] = Way(min(speeds), mesh.hops(a, b))
    return ways
