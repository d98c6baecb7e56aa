"""One length of the requests: the instance, cuts worth a try, and what is possible without memory limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from formulations.bounds import TimeBounds
from instances.instance import Instance
from instances.plan import Plan
from instances.workload import Shape
from solver.exact.pool import Unlimited, unlimited_run
from solver.limits import Deadline, Limits
from solver.policies.layout import paired_layout
from solver.search import Placement, Search

SMALLER = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Largest chunks tried, between that of the fastest cuts (1) and that of equal chunks (0): workspace takes room."""

MOST_QUANTA = 400
"""Quanta of a request on the grid of the cuts that are looked for."""
MOST_CUTS_S = 10.0
"""Seconds for the cuts of one length and one largest chunk."""
UNLIMITED_BYTES = 1e15
"""Memory that no request fills."""


@dataclass(frozen=True)
class Setting:
    """What stays the same at every length.

    Attributes
    ----------
    instance
        Equal requests; its tokens are replaced.
    chunks
        Number of chunks, or None: any.
    batch
        Requests of a wave.
    equal
        Whether plans have equal chunks only; with a number of them, lengths are multiples of it.
    """

    instance: Instance
    chunks: int | None
    batch: int
    limits: Limits
    deadline: Deadline
    seed: int = 0
    equal: bool = False

    @property
    def step(self) -> int:
        """Tokens by which lengths differ: a quantum, or one for each of a fixed number of equal chunks."""
        quantum = self.instance.pipeline.chunk_quantum
        return quantum * self.chunks if self.equal and self.chunks is not None else quantum

    def tokens(self, steps: int) -> int:
        """Tokens of a request of so many steps: what is cached comes on top."""
        return self.instance.workload.cached_tokens + steps * self.step

    def resized(self, tokens: int, *, host: bool, unlimited: bool = False) -> Instance:
        """The instance with requests of so many tokens, with or without its host, with or without memory limits."""
        resized = self.instance.with_tokens(tokens)
        hardware = resized.hardware if host else resized.hardware.model_copy(update={"host": None})
        if unlimited:
            die = hardware.die.model_copy(update={"hbm_bytes": UNLIMITED_BYTES})
            dies = tuple(other.model_copy(update={"hbm_bytes": None}) for other in hardware.dies)
            hardware = hardware.model_copy(update={"die": die, "dies": dies})
        return resized.model_copy(update={"hardware": hardware})


@dataclass(frozen=True)
class Reference:
    """A plan without spill and what its replay gives without memory limits."""

    plan: Plan
    value_s: float


class Length:
    """Requests of one length.

    Parameters
    ----------
    layout
        Split and placement that all lengths share; None: looked for.
    """

    def __init__(self, setting: Setting, tokens: int, layout: tuple[tuple[int, ...], Placement] | None = None) -> None:
        self.setting, self.tokens = setting, tokens
        self._layout = layout

    def search(self, *, host: bool = False) -> Search:
        """A search of its own for each method, on the instance with or without host memory."""
        instance = self.setting.resized(self.tokens, host=host)
        return make_search(self.setting, instance)

    @cached_property
    def shape(self) -> Shape:
        """The only request shape."""
        found: Shape = self.search().instance.workload.shapes[0]
        return found

    @cached_property
    def layout(self) -> tuple[tuple[int, ...], Placement]:
        """Layers and placement, partners on neighbouring dies."""
        return self._layout or paired_layout(self.search())

    @cached_property
    def references(self) -> list[Reference]:
        """Cuts without spill: the fastest without memory limits, those with smaller largest chunks, and equal ones.

        Fastest first; empty where the quantum leaves no such cuts.
        """
        setting = self.setting
        unlimited = setting.resized(self.tokens, host=False, unlimited=True)
        fine = make_search(setting, unlimited)
        quanta = fine.tables.grid(self.shape).quanta
        count = min(setting.chunks or setting.instance.pipeline.max_chunks, quanta)
        if setting.chunks is not None and setting.chunks > quanta:
            return []
        equal = fine.equal_sizes(self.shape, count)
        tried = [equal]
        # Tables grow with the square of the quanta: cuts are looked for on a coarser grid where there are many.
        coarser = unlimited.pipeline.chunk_quantum * max(1, min(-(-quanta // MOST_QUANTA), quanta // count))
        search = make_search(setting, unlimited.with_pipeline(chunk_quantum=coarser))
        bounds = TimeBounds(search.instance, search.tables, setting.chunks)
        largest: int | None = None
        for share in SMALLER[:-1]:
            if setting.deadline.over:
                break
            cap = None if largest is None else round(equal[0] + share * (largest - equal[0]))
            found = bounds.batch(
                setting.batch, setting.deadline.share(1.0, MOST_CUTS_S), largest_chunk_tokens=cap, thorough=False
            )
            if found.cuts:
                sizes = search.sizes(found.cuts)[self.shape[0] - self.shape[1]]
                largest = largest or max(sizes)
                tried.append(sizes)
        layers, placement = self.layout
        plans = [
            fine.plan(setting.batch, {self.shape[0] - self.shape[1]: sizes}, layers, placement)
            for sizes in dict.fromkeys(tried)
        ]
        values = fine.evaluator.values(plans)
        known = [Reference(plan, value) for plan, value in zip(plans, values, strict=True) if value is not None]
        return sorted(known, key=lambda reference: reference.value_s)

    @property
    def optimum_s(self) -> float | None:
        """The best of these: what a plan without memory limits takes."""
        return self.references[0].value_s if self.references else None

    @property
    def _admitted(self) -> list[Reference]:
        """Those that a method may use."""
        if not self.setting.equal:
            return self.references
        return [found for found in self.references if _is_equal(found.plan, exactly=self.setting.chunks is not None)]

    def plans(self, search: Search) -> Iterator[tuple[Plan, Unlimited | None]]:
        """The reference plans as plans of a search's instance, run as they are asked for."""
        for reference in self._admitted:
            plan = reference.plan.model_copy(update={"instance": search.instance.fingerprint})
            yield plan, unlimited_run(search, plan)


def _is_equal(plan: Plan, *, exactly: bool) -> bool:
    """Whether all chunks have one size; unless ``exactly`` the last may be smaller."""
    (sizes,) = plan.chunks.values()
    return set(sizes[:-1]) <= {sizes[0]} and (sizes[-1] == sizes[0] if exactly else sizes[-1] <= sizes[0])


def make_search(setting: Setting, instance: Instance) -> Search:
    """A search of an instance at one length under the common deadline."""
    return Search.begin(instance, setting.limits, deadline=setting.deadline, chunks=setting.chunks, seed=setting.seed)
