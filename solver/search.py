"""What every method is handed: the instance, its tables, the incumbent, the clock, and ways to write plans down."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from formulations.admissible import admissible_chunk_tokens
from formulations.bounds import BatchBound, TimeBounds
from formulations.explain.uniform import memory_reason
from formulations.scope import PLAIN, V_SHAPED, BoundScope
from formulations.structure import structural_reason
from formulations.tables import StageTables
from formulations.virtual.bound import VirtualBounds
from instances.instance import Instance
from instances.plan import Plan, Schedule, SpillRow
from instances.workload import Shape
from solver.counts import growing_counts
from solver.evaluate import Evaluation, Evaluator
from solver.incumbent import Incumbent, Listener
from solver.limits import Deadline, Limits
from solver.result import Compared
from solver.serving.served import Served

Placement = tuple[tuple[int, int], ...]
Knobs = Mapping[str, Any]

MOST_FAILURES = 8
"""Plans that did not run, looked at again where none does."""
BUILDING_SHARE = 0.5
"""Share of the time limit after which bounds that are not known yet stay so."""


@dataclass
class Search:
    """One run of one method.

    Attributes
    ----------
    chunks
        Fixed number of chunks asked for, or None: the method chooses.
    knobs
        The method's own parameters, complete.
    seed
        Seed of ``rng``, for methods that start others.
    note
        Called with a line at the start of each part of the work.
    details, compared
        What the method wants its result to say besides the plan: thresholds found, other methods' values.
    failed
        A plan that did not run, kept to say why a method found none.
    failures
        The last ones that did not run, of which the best is shown where there is no plan.
    bounds, folded
        What is proved for each batch of plain and of V-shaped plans, as far as the scope has them; from ``prove``.
    structural
        Why no plain plan exists whatever is decided, from ``prove``.
    placements
        Placements found so far, by the partner stages that they keep together.
    served, unserved
        The answer of a policy that no plan can express, or why it has none.
    """

    instance: Instance
    evaluator: Evaluator
    tables: StageTables
    incumbent: Incumbent
    deadline: Deadline
    limits: Limits
    rng: np.random.Generator
    chunks: int | None
    knobs: Knobs
    seed: int
    note: Callable[[str], None]
    details: dict[str, Any] = field(default_factory=dict)
    compared: list[Compared] = field(default_factory=list)
    failed: Plan | None = None
    failures: deque[Plan] = field(default_factory=lambda: deque(maxlen=MOST_FAILURES))
    bounds: dict[int, BatchBound] = field(default_factory=dict)
    folded: dict[int, BatchBound] = field(default_factory=dict)
    structural: str | None = None
    placements: dict[tuple[tuple[int, int], ...], Placement] = field(default_factory=dict)
    served: Served | None = None
    unserved: str | None = None

    @classmethod
    def begin(
        cls,
        instance: Instance,
        limits: Limits,
        *,
        deadline: Deadline | None = None,
        scope: BoundScope | None = None,
        listener: Listener | None = None,
        chunks: int | None = None,
        knobs: Knobs | None = None,
        seed: int = 0,
        note: Callable[[str], None] | None = None,
    ) -> Self:
        """A search that knows nothing yet; its clock is a given deadline, or starts now."""
        deadline, evaluator = deadline or limits.start(), Evaluator(instance)
        return cls(
            instance=instance,
            evaluator=evaluator,
            tables=StageTables(instance),
            incumbent=Incumbent(evaluator, deadline, listener, scope=scope),
            deadline=deadline,
            limits=limits,
            rng=np.random.default_rng(seed),
            chunks=chunks,
            knobs=knobs or {},
            seed=seed,
            note=note or (lambda line: None),
        )

    @property
    def stages(self) -> int:
        """Number of stages N."""
        return self.instance.pipeline.stages

    def plan(
        self,
        batch: int,
        sizes: Mapping[int, tuple[int, ...]],
        layers: tuple[int, ...],
        placement: Placement,
        spill: Iterable[SpillRow] = (),
        schedule: Schedule = "chunked",
    ) -> Plan:
        """A plan of this instance; ``sizes`` has chunk sizes per number of uncached tokens."""
        return Plan(
            instance=self.instance.fingerprint,
            batch=batch,
            layers=layers,
            placement=placement,
            chunks={str(tokens): tuple(chunks) for tokens, chunks in sizes.items()},
            spill=tuple(spill),
            schedule=schedule,
        )

    def offer(self, plan: Plan) -> float | None:
        """Replay a plan; remembers one that did not run, to say why a method failed."""
        value = self.incumbent.offer(plan)
        # Of the plans that fail, those of the smallest batch with the most chunks come closest to running.
        failed = value is None and self.incumbent.skipped is not plan
        if failed and (self.failed is None or plan.batch <= self.failed.batch):
            self.failed = plan
            self.failures.append(plan)
        return value

    def nearest_failure(self) -> Evaluation | None:
        """Of the last plans that did not run, the one that came closest; None without any, or without time."""
        known = [self.evaluator.full(plan) for plan in self.failures if self.incumbent.affords(plan)]
        return min((failure for failure in known if failure.violations), key=_shortage, default=None)

    def why_not(self) -> str:
        """Why a plan that was tried did not run, in words."""
        return self._nothing_tried() if self.failed is None else self.evaluator.full(self.failed).reason

    def why_not_briefly(self) -> str:
        """The broken rule, by how much, and with how many chunks it was tried."""
        if self.failed is None or not self.incumbent.affords(self.failed):
            return self._nothing_tried()
        outcome = self.evaluator.full(self.failed)
        broken = outcome.violations
        if not broken:
            return outcome.reason or "no plan was found"
        worst = max(broken, key=lambda finding: finding.amount)
        amount = f"{worst.amount / 1e9:.3g} GB" if worst.unit == "bytes" else f"{worst.amount:g} {worst.unit}"
        chunks = max(len(sizes) for sizes in self.failed.chunks.values())
        return f"{worst.rule}: {amount} short with {chunks} chunk{'' if chunks == 1 else 's'}"

    def _nothing_tried(self) -> str:
        if self.structural is not None:
            return self.structural
        if math.isinf(self.incumbent.too_long_s):
            return "no plan was tried" if self.failed is None else "no plan ran"
        shortest = f"{self.incumbent.too_long_s:.2g} s"
        return f"time is too short: a replay takes about {shortest} for the shortest plan tried, twice for an answer"

    def batches(self) -> list[int]:
        """Batch sizes that differ in effect, smallest first."""
        return list(self.instance.batches)

    def chunk_counts(self, shape: Shape) -> list[int]:
        """Numbers of chunks worth a try for equal slices: the one asked for, or a ladder of growing steps."""
        grid = self.tables.grid(shape)
        if self.chunks is not None:
            return [min(self.chunks, grid.quanta)]
        most = min(self.instance.pipeline.max_chunks, grid.quanta)
        return sorted(growing_counts(most) | ({self.stages} if self.stages <= most else set()))

    def equal_sizes(self, shape: Shape, count: int) -> tuple[int, ...]:
        """So many chunks of equal size up to one quantum, or one for each quantum if that is less."""
        grid = self.tables.grid(shape)
        return grid.equal_sizes(min(count, grid.quanta))

    def equal_lists(self, count: int) -> dict[int, tuple[int, ...]]:
        """``equal_sizes`` of all request shapes, per number of uncached tokens."""
        return {shape[0] - shape[1]: self.equal_sizes(shape, count) for shape in self.instance.workload.shapes}

    @property
    def schedules(self) -> tuple[str, ...]:
        """Schedules in the scope of this search."""
        return PLAIN if self.incumbent.scope is None else self.incumbent.scope.schedules

    @property
    def plain(self) -> bool:
        """Whether the plain schedule is in scope."""
        return not set(PLAIN).isdisjoint(self.schedules)

    @property
    def v_shaped(self) -> bool:
        """Whether V-shaped schedules are in scope."""
        return not set(V_SHAPED).isdisjoint(self.schedules)

    def prove(self, time_s: float) -> None:
        """Bound every batch of every schedule in scope, and with that the instance; at most about ``time_s`` seconds.

        The bound of the instance is the least over the batches and schedules, so a batch whose trivial bound is above
        the least found so far needs no more work.
        """
        families: list[tuple[TimeBounds | VirtualBounds, dict[int, BatchBound]]] = []
        if self.plain:
            self.structural = structural_reason(self.instance)
            if self.structural is None:
                plain = TimeBounds(self.instance, self.tables, self.chunks, in_time=self._may_build)
                families.append((plain, self.bounds))
        if self.v_shaped:
            folded = VirtualBounds(self.instance, self.tables, self.chunks, in_time=self._may_build)
            families.append((folded, self.folded))
        todo = [(*family, batch) for family in families for batch in self.batches()]
        least = math.inf
        for number, (bounds, known, batch) in enumerate(todo):
            begun_s = self.deadline.elapsed_s
            share = max(0.0, (time_s - begun_s) / (len(todo) - number))
            found = bounds.batch(batch, share if self.deadline.by_clock else None, enough_s=least)
            if found.bound_s is None and found.reason is None:
                self.deadline.cut_short()
                least = math.inf  # without a bound for every batch there is none for the instance
                break
            self._note_share(found, share, begun_s)
            known[batch] = found
            if found.bound_s is not None:
                least = min(least, found.bound_s)
        if self.plain and self.structural is None and _common_reason(self.bounds) is None:
            self.structural = memory_reason(self.instance)
        if math.isfinite(least):
            self.incumbent.raise_bound(least)

    def restricted_bound(
        self,
        batch: int,
        *,
        largest_chunk_tokens: int | None = None,
        most_chunks: int | None = None,
        thorough: bool = True,
    ) -> BatchBound:
        """The bound of a batch, or what it would be for a restriction to smaller or to fewer chunks, with its cuts."""
        if largest_chunk_tokens is None and most_chunks is None and self.bounds[batch].cuts:
            return self.bounds[batch]
        bounds = TimeBounds(self.instance, self.tables, self.chunks, most_chunks, in_time=self.incumbent.affords_s)
        begun_s = self.deadline.elapsed_s
        share = self.deadline.share(0.2, 10.0) if self.deadline.by_clock else None
        found = bounds.batch(batch, share, largest_chunk_tokens=largest_chunk_tokens, thorough=thorough)
        self._note_share(found, math.inf if share is None else share, begun_s)
        return found

    def _note_share(self, found: BatchBound, share_s: float, begun_s: float) -> None:
        """Note where a search over cuts took all its share of the time: it may have been cut short."""
        if found.cuts and self.deadline.by_clock and self.deadline.elapsed_s - begun_s >= share_s:
            self.deadline.cut_short()

    def sizes(self, cuts: Mapping[Shape, list[int]]) -> dict[int, tuple[int, ...]]:
        """Chunk sizes in tokens, per number of uncached tokens, of end positions on the grid."""
        return {shape[0] - shape[1]: self.tables.grid(shape).sizes(ends) for shape, ends in cuts.items()}

    def admissible_chunk_tokens(self, batch: int, shape: Shape) -> int:
        """Most tokens a chunk may have at all."""
        return admissible_chunk_tokens(self.instance, min(batch, len(self.evaluator.requests)), shape)[0]

    @property
    def _all_bounded(self) -> bool:
        batches = len(self.batches())
        plain = not self.plain or self.structural is not None or len(self.bounds) == batches
        return plain and (not self.v_shaped or len(self.folded) == batches)

    def _may_build(self, seconds: float) -> bool:
        """Whether so much time is left for stating bounds; the plans need the rest."""
        limit = self.deadline.time_s
        return limit is None or self.deadline.elapsed_s + seconds <= BUILDING_SHARE * limit

    def may_tabulate(self, shape: Shape) -> bool:
        """Whether time is left to fill the tables of a request shape."""
        return self.incumbent.affords_s(self.tables.grid(shape).fill_s)

    @property
    def closed(self) -> bool:
        """Whether the gap asked for is reached."""
        return self.incumbent.gap is not None and self.incumbent.gap <= self.limits.gap

    @property
    def trivial_bound(self) -> float | None:
        """Least trivial bound over the batches, None before ``prove`` or if no batch has a plan."""
        found = [*self.bounds.values(), *self.folded.values()]
        known = [each.trivial_s for each in found if each.trivial_s is not None]
        return min(known) if known and self._all_bounded else None

    @property
    def infeasible_reason(self) -> str | None:
        """Why no plan exists, if that is proved for every batch and schedule in scope."""
        if not self._all_bounded:
            return None
        reasons = [] if not self.plain else [self.structural or _common_reason(self.bounds)]
        reasons += [_common_reason(self.folded)] if self.v_shaped else []
        known = [reason for reason in reasons if reason is not None]
        return "; ".join(known) if len(known) == len(reasons) else None


def _common_reason(bounds: Mapping[int, BatchBound]) -> str | None:
    """Why there is no plan of any batch; None where there may be one."""
    reasons = [found.reason for found in bounds.values()]
    return reasons[0] if reasons and None not in reasons else None


def _shortage(failure: Evaluation) -> tuple[bool, float]:
    """How far a plan is from running: bytes that are missing count least, then whatever else is broken."""
    return any(finding.unit != "bytes" for finding in failure.violations), max(
        finding.amount for finding in failure.violations
    )
