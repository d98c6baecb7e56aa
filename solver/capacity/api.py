"""``capacity``: the longest request, or the largest batch, for each way to spill."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from instances.errors import InputError
from instances.instance import Instance
from solver.capacity.bound import bound_steps
from solver.capacity.length import Length, Setting
from solver.capacity.longest import largest
from solver.capacity.methods import BY_NAME, WAYS, best_found
from solver.capacity.result import CapacityResult, CapacityRow, FrontierPoint
from solver.capacity.way import Found, Goal, Way
from solver.evaluate import Evaluator
from solver.limits import Limits
from solver.search import Placement
from solver.warmup import warm_up

MOST_SIZES = 2**20
"""Sizes that are looked at: where KV does not end a request, it would be sought without end."""
BOUND_SHARE = 0.3
"""Share of the time that is kept for the bound."""
BOUNDED_OBJECTIVES = ("mean_latency", "makespan")
"""Objectives whose budgets the bound knows."""


@dataclass
class _Sizes:
    """Lengths, or batches, by number: what is known of each, shared by all rows.

    ``beyond``: sizes whose times or bytes are more than the replay can count.
    """

    setting: Setting
    by_batch: bool
    budget: float | None
    lengths: dict[int, Length] = field(default_factory=dict)
    found: dict[tuple[str, int], Found | None] = field(default_factory=dict)
    beyond: set[int] = field(default_factory=set)
    layout: tuple[tuple[int, ...], Placement] | None = None

    def length(self, size: int) -> Length:
        """The requests of a size."""
        if size not in self.lengths:
            tokens = self.setting.instance.workload.tokens
            assert tokens is not None
            setting = replace(self.setting, batch=size) if self.by_batch else self.setting
            made = Length(setting, tokens if self.by_batch else setting.tokens(size), self.layout)
            self.layout = made.layout
            self.lengths[size] = made
        return self.lengths[size]

    def best(self, way: Way, size: int) -> Found | None:
        """The fastest answer found; None where none runs, or time is up."""
        key = (way.name, size)
        if key not in self.found:
            if self.setting.deadline.over:
                return None
            found = None
            if self.optimum_s(size) is not None:
                with self.in_range(size):
                    found = best_found(self.length(size), way, self.budget_s(size))
            if found is None and self.setting.deadline.over:
                return None  # not known
            self.found[key] = found
        return self.found[key]

    @contextmanager
    def in_range(self, size: int) -> Iterator[None]:
        """Keeps a size that the replay cannot count from ending the table; the first one that is tried says why."""
        try:
            yield
        except InputError:
            if not self.found:
                raise
            self.beyond.add(size)

    def optimum_s(self, size: int) -> float | None:
        """The best objective without memory limits; None where none is known, or the replay cannot count so far."""
        optimum = None
        with self.in_range(size):
            optimum = self.length(size).optimum_s
        return optimum

    def budget_s(self, size: int) -> float | None:
        """Seconds that a plan may take; None where there is no budget, or no optimum is known."""
        optimum = None if self.setting.deadline.over else self.optimum_s(size)
        return None if self.budget is None or optimum is None else optimum * (1 + self.budget)

    def within(self, way: Way, size: int) -> bool:
        """Whether a plan runs within the budget."""
        found, optimum = self.best(way, size), self.optimum_s(size)
        return found is not None and (
            self.budget is None or (optimum is not None and found.value <= optimum * (1 + self.budget) * (1 + 1e-12))
        )

    def longest_seen(self, way: Way) -> int:
        """The largest size that was tried and runs within the budget; 0 if there is none."""
        tried = [size for name, size in self.found if name == way.name]
        return max((size for size in tried if self.within(way, size)), default=0)

    def frontier(self, way: Way) -> tuple[FrontierPoint, ...]:
        """All sizes that were tried, in order."""
        points = []
        for (name, size), found in sorted(self.found.items(), key=lambda item: item[0][1]):
            optimum = self.optimum_s(size)
            if name == way.name and optimum is not None:
                value = None if found is None else found.value
                points.append(FrontierPoint(size=self.number(size), value_s=value, optimum_s=optimum))
        return tuple(points)

    def number(self, size: int) -> int:
        """A size as tokens, or as a batch."""
        return size if self.by_batch else self.setting.tokens(size)


def capacity(
    instance: Instance,
    methods: Sequence[str] | None = None,
    *,
    chunks: int | None = None,
    by_batch: bool = False,
    latency_budget: float | None = None,
    equal_chunks: bool = False,
    limits: Limits | None = None,
    seed: int = 0,
    note: Callable[[str], None] | None = None,
) -> CapacityResult:
    """Longest request for which a plan runs in the replay, for each way to spill (spec section 4, ``max_tokens``).

    Parameters
    ----------
    instance
        Equal requests; their number stays, their length is what is asked for, in quanta. Waves have ``max_batch``.
    methods
        Names of ``WAYS``; all that the hardware has unless given.
    chunks
        Fixed number of chunks; None: up to max_chunks.
    by_batch
        Keep the length and ask for the largest batch instead.
    latency_budget
        Share by which a plan may be slower than the best without memory limits at the same length and with the same
        number of chunks; None: any latency. Dies that wait can buy length without limit.
    equal_chunks
        Only plans in equal chunks; with a number of chunks, a given layer split and a budget on the mean latency or the
        makespan there is a proved bound for these.

    Raises
    ------
    InputError
        For a trace, an unknown method, a method that needs a host where there is none, and a number of chunks that is
        not allowed.
    """
    if instance.workload.trace is not None:
        raise InputError("workload.trace", "a trace", "equal requests (requests and tokens): their length is asked for")
    most_chunks = instance.pipeline.max_chunks
    if chunks is not None and not 1 <= chunks <= most_chunks:
        raise InputError("chunks", chunks, f"a number from 1 to max_chunks ({most_chunks})")
    if latency_budget is not None and not 0 <= latency_budget < 1e6:
        raise InputError("latency budget", latency_budget, "a share of at least 0, 5% or 0.05 for example")
    asked, ways = instance, _ways(instance, methods)
    if instance.objective == "max_tokens":
        instance = instance.model_copy(update={"objective": "mean_latency"})
    limits, note = limits or Limits(), note or (lambda line: None)
    warm_up()
    deadline = limits.start()
    batch = min(instance.pipeline.max_batch, instance.workload.count)
    sizes = _Sizes(Setting(instance, chunks, batch, limits, deadline, seed, equal_chunks), by_batch, latency_budget)
    bounded = any(way.bounded for way in ways) and _may_be_bounded(sizes)
    if bounded:
        # Rows use all the time they are given; the bound needs some too.
        rest = 1 - BOUND_SHARE
        sizes.setting = replace(sizes.setting, deadline=deadline.part(rest, math.inf))
    rows: list[CapacityRow] = []
    interrupted, late, base, most_reached = False, False, 0, 0
    bound: int | None = None
    try:
        for way in ways:
            note(way.name)
            row, size = _row(sizes, way, base, asked)
            base = size if way.name == "none" else base
            most_reached = max(most_reached, size) if way.bounded else most_reached
            rows.append(row)
        late = sizes.setting.deadline.over
        most = _ceiling(sizes, host=False)
        if bounded and most is not None and most_reached:
            note("bound")
            all_time = _Sizes(replace(sizes.setting, deadline=deadline), by_batch, latency_budget, layout=sizes.layout)
            all_time.lengths.update(sizes.lengths)  # the budgets of rows and of the bound are the same
            bound = bound_steps(all_time.setting, most_reached, max(most, most_reached), all_time.budget_s)
    except KeyboardInterrupt:
        interrupted = True
    if bound is not None:
        tokens = sizes.setting.tokens(bound)
        rows = [row.model_copy(update={"bound_tokens": tokens}) if BY_NAME[row.method].bounded else row for row in rows]
    first = next((row for row in rows if row.method == "none"), None)
    return CapacityResult(
        instance=instance.name,
        chunks=chunks,
        batch=None if by_batch else batch,
        latency_budget=latency_budget,
        methods=tuple(_with_gain(row, first) for row in rows),
        runtime_s=round(deadline.elapsed_s, 3),
        stop_reason="interrupted" if interrupted else "time_limit" if late or deadline.over else "iterations",
    )


def _ways(instance: Instance, methods: Sequence[str] | None) -> list[Way]:
    has_host = instance.hardware.host is not None
    if methods is None:
        return [way for way in WAYS if (has_host or not way.host) and way.schedule == "chunked"]
    for name in methods:
        if name not in BY_NAME:
            raise InputError("methods", name, f"names among {', '.join(BY_NAME)}")
        if BY_NAME[name].host and not has_host:
            raise InputError("hardware.host", None, f"a host memory, which method {name} spills to")
    return [BY_NAME[name] for name in dict.fromkeys(methods)]


def _row(sizes: _Sizes, way: Way, base: int, asked: Instance) -> tuple[CapacityRow, int]:
    """The row of a way, and the size that it reaches; the search starts at ``base`` if that runs.

    The plan is one of the ``asked`` instance with its requests resized, whose static rules it keeps too.
    """
    deadline = sizes.setting.deadline
    least, most = _range(sizes)
    known = base if base and sizes.within(way, base) else least - 1
    within = largest(lambda size: sizes.within(way, size), known, most)
    cut = deadline.over
    at_all = within
    if sizes.budget is not None and not deadline.over:
        at_all = largest(lambda size: sizes.best(way, size) is not None, within, most)
        # Among those that ran there may be one within the budget, beyond some that were not.
        further = sizes.longest_seen(way)
        if further > within and not deadline.over:
            within = largest(lambda size: sizes.within(way, size), further, at_all)
    best = sizes.best(way, within) if within >= least else None
    following = () if within + 1 in sizes.beyond else sizes.found.get((way.name, within + 1), ())
    number = sizes.number
    plan, metrics = None, None
    if best is not None:
        tokens = sizes.length(within).tokens
        resized = asked.with_tokens(tokens)
        if best.plan is not None:
            plan = best.plan.model_copy(update={"instance": resized.fingerprint})
            measured = resized.model_copy(update={"objective": sizes.setting.instance.objective})
            metrics = Evaluator(measured).full(plan.model_copy(update={"instance": measured.fingerprint})).metrics
        elif best.served is not None:
            metrics = best.served.metrics
        assert metrics is not None
    row = CapacityRow(
        method=way.name,
        max_tokens=None if best is None else sizes.length(within).tokens,
        value_s=None if best is None else best.value,
        mean_latency_s=None if metrics is None else metrics.mean_latency_s,
        optimum_s=None if best is None else sizes.length(within).optimum_s,
        any_latency_tokens=number(at_all) if at_all >= least and not sizes.by_batch else None,
        max_batch=within if best is not None and sizes.by_batch else None,
        any_latency_batch=at_all if at_all >= least and sizes.by_batch else None,
        next_size=number(within + 1) if following != () else None,
        plan=plan,
        program=None if best is None or best.served is None else best.served.program,
        frontier=sizes.frontier(way),
        note=_note(sizes, way, best is not None, at_all, cut=cut, late=deadline.over),
    )
    return row, within


def _note(sizes: _Sizes, way: Way, ran: bool, at_all: int, *, cut: bool, late: bool) -> str:
    if cut:
        return "time was up: longer ones may run"
    if late:
        return "time was up: at any latency longer ones may run"
    least, most = _range(sizes)
    if not ran and at_all >= least:
        return "runs, but slower than the budget"
    if not ran:
        length = sizes.length(least)
        search = length.search(host=way.host)
        for plan, unlimited in length.plans(search):
            way.offer(search, plan, unlimited, Goal(search, None))
        return search.unserved or search.why_not()
    if at_all + 1 in sizes.beyond:
        return f"more than {sizes.number(at_all)} takes longer than the replay can count"
    if at_all == most == MOST_SIZES and not sizes.by_batch:
        return f"requests of more than {sizes.number(most)} tokens were not tried"
    refused = way.refusal(sizes.setting.instance)
    return "" if refused is None else f"as {way.fallback}, for programs are refused: {refused}"


def _range(sizes: _Sizes) -> tuple[int, int]:
    """Least and largest size that are possible at all."""
    instance = sizes.setting.instance
    if sizes.by_batch:
        return 1, min(instance.pipeline.max_batch, instance.workload.count)
    least = 1 if sizes.setting.step > instance.pipeline.chunk_quantum else sizes.setting.chunks or 1
    most = _ceiling(sizes, host=True)
    return least, MOST_SIZES if most is None else max(least, min(most, MOST_SIZES))


def _ceiling(sizes: _Sizes, *, host: bool) -> int | None:
    """No request is longer than so many steps, whatever waits are allowed; None where KV sets no limit.

    When a stage runs its last chunk all its KV of the wave is somewhere in the memory of the dies and the host; some
    stage has the mean of all stages at least, however layers are split.
    """
    setting, instance = sizes.setting, sizes.setting.instance
    hardware, layers = instance.hardware, instance.model.layer_count
    everywhere = sum(hardware.die_at(die).hbm_bytes for die in hardware.live_dies)
    if host and hardware.host is not None:
        everywhere += len(hardware.live_dies) * hardware.host.host_bytes
    per_token = instance.stage_cost.spillable_bytes_per_token(0, layers) * setting.batch / instance.pipeline.stages
    if per_token == 0:
        return None
    return max(0, int((everywhere / per_token - setting.tokens(0)) / setting.step) + 1)


def _may_be_bounded(sizes: _Sizes) -> bool:
    """Whether the bound speaks about such plans."""
    setting = sizes.setting
    given = setting.equal and setting.chunks is not None and sizes.budget is not None and not sizes.by_batch
    fixed = setting.instance.fixed_layers is not None
    return given and fixed and setting.instance.objective in BOUNDED_OBJECTIVES


def _with_gain(row: CapacityRow, first: CapacityRow | None) -> CapacityRow:
    if first is None or not first.max_tokens or not row.max_tokens:
        return row
    mine, others = (row.max_batch, first.max_batch) if row.max_batch else (row.max_tokens, first.max_tokens)
    return row.model_copy(update={"gain": mine / others if mine and others else None})
