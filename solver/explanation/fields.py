"""Instances with one field changed, the smallest change first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from formulations.explain.needs import EVERY_CHUNKS, StageNeeds
from formulations.explain.problem import joined_dies
from instances.hardware import Die, DieOverride, Host
from instances.instance import Instance

HOST_BYTES_PER_S = 64e9
"""Of a host tier where there is none: about what sixteen lanes of PCIe 5 carry one way."""
DIGITS = 5
"""Digits of an amount of memory that is looked for."""
MOST_SETS = 500
"""Sets of disabled dies, or links, of one size that are looked at."""


@dataclass(frozen=True)
class Field:
    """A field of an instance and its other values, the smallest change first.

    Attributes
    ----------
    values
        Other values. The last one admits every plan that any of them does, but where the number of stages changes.
    step
        Between numbers; None where values are not numbers.
    nested
        Whether later values admit every plan that earlier ones do, so that one can search by halving.
    reach
        Steps from one value to one that differs much; None: as many as lead from zero to the value.
    note
        What else the change does.
    shown
        The value of the field as it is in an instance file.
    weight
        How much time it is worth.
    complete
        Whether there is no smaller change than the first value, and none between two values.
    """

    name: str
    before: Any
    values: Sequence[Any]
    apply: Callable[[Any], Instance]
    unit: str = ""
    step: float | None = None
    nested: bool = True
    complete: bool = True
    reach: float | None = None
    note: str = ""
    weight: int = 1
    shown: Callable[[Any], Any] = lambda value: value


def fields(instance: Instance, fewest_cuts: Sequence[int] | None) -> Iterator[Field]:
    """Fields whose change may help.

    Parameters
    ----------
    fewest_cuts
        Forbidden cuts of which a plan needs some, as few as can be; None where there is no such plan.
    """
    yield _memory(instance)
    if instance.workload.tokens is not None:
        yield from _tokens(instance)
    yield _host(instance)
    yield from _chunks(instance)
    yield from _splits(instance, fewest_cuts)
    yield from _stages(instance)
    yield from _rows(instance)
    yield from _disabled(instance)
    yield from _requests(instance)


def most_memory(instance: Instance) -> float:
    """Bytes with which every die holds the whole model and the KV of a whole request."""
    needs = StageNeeds(instance, EVERY_CHUNKS[0])
    return 2.0 * needs.everywhere(0, instance.model.layer_count)


def with_memory(instance: Instance, least: float) -> Instance:
    """Every die has at least so many bytes."""
    hardware = instance.hardware

    def raised(die: Die | DieOverride) -> Any:
        size = die.hbm_bytes
        return die if size is None else die.model_copy(update={"hbm_bytes": max(size, float(least))})

    changed = {"die": raised(hardware.die), "dies": tuple(raised(override) for override in hardware.dies)}
    return instance.model_copy(update={"hardware": hardware.model_copy(update=changed)})


def in_steps(first: float, last: float) -> range:
    """Round numbers of a few digits from above ``first`` to beyond ``last``."""
    step = 10 ** max(0, math.floor(math.log10(max(last, 1.0))) + 1 - DIGITS)
    start = (math.floor(first) // step + 1) * step
    return range(start, max(math.ceil(last), start) + 2 * step, step)


def _memory(instance: Instance) -> Field:
    smallest = instance.hardware.largest_memories[-1]
    values = in_steps(smallest, max(most_memory(instance), 4 * smallest))
    one = all(override.hbm_bytes is None for override in instance.hardware.dies)
    note = "" if one else "every die has at least so much"
    return Field(
        "hardware.die.hbm_bytes",
        smallest,
        values,
        lambda size: with_memory(instance, size),
        "bytes",
        values.step,
        note=note,
        weight=3,
        shown=float,
    )


def _tokens(instance: Instance) -> Iterator[Field]:
    """Fewer tokens a request, in whole quanta beside the cached ones."""
    workload, quantum = instance.workload, instance.pipeline.chunk_quantum
    assert workload.tokens is not None
    whole = (workload.tokens - workload.cached_tokens - 1) // quantum
    values = range(workload.cached_tokens + whole * quantum, workload.cached_tokens, -quantum)

    def apply(tokens: int) -> Instance:
        return instance.model_copy(update={"workload": workload.model_copy(update={"tokens": tokens})})

    yield Field("workload.tokens", workload.tokens, values, apply, "tokens", quantum, weight=3)


def _chunks(instance: Instance) -> Iterator[Field]:
    pipeline, longest = instance.pipeline, max(instance.workload.uncached_counts)
    quanta = -(-longest // pipeline.chunk_quantum)
    more = range(pipeline.max_chunks + 1, quanta + 1)
    yield Field(
        "pipeline.max_chunks", pipeline.max_chunks, more, lambda n: instance.with_pipeline(max_chunks=n), "chunks", 1
    )
    quantum = pipeline.chunk_quantum
    # Only where the smaller quantum divides the present one are all present plans still there.
    yield Field(
        "pipeline.chunk_quantum",
        quantum,
        divisors(quantum),
        lambda size: instance.with_pipeline(chunk_quantum=size),
        "tokens (divisors of the present one)",
        nested=False,
    )


def divisors(number: int) -> list[int]:
    """Those below the number, the largest first."""
    small = [part for part in range(1, math.isqrt(number) + 1) if number % part == 0]
    return sorted({*small, *(number // part for part in small)} - {number}, reverse=True)


def _splits(instance: Instance, fewest_cuts: Sequence[int] | None) -> Iterator[Field]:
    split = instance.pipeline.layers
    if split != "free":
        before = split if isinstance(split, str) else list(split)
        yield Field("pipeline.layers", before, ["free"], lambda layers: instance.with_pipeline(layers=layers))
    forbidden = list(instance.pipeline.forbidden_cuts)
    if fewest_cuts:
        values = [[cut for cut in forbidden if cut not in fewest_cuts], []]
        yield Field(
            "pipeline.forbidden_cuts",
            forbidden,
            values,
            lambda kept: instance.with_pipeline(forbidden_cuts=tuple(kept)),
        )


def _stages(instance: Instance) -> Iterator[Field]:
    """More stages, and fewer: the split is not nested in theirs."""
    stages, split = instance.pipeline.stages, instance.pipeline.layers
    if not isinstance(split, str):
        return
    most = min(_joined(instance), instance.model.layer_count)
    for values in (range(stages + 1, most + 1), range(stages - 1, 0, -1)):
        yield Field(
            "pipeline.stages", stages, values, lambda n: instance.with_pipeline(stages=n), "stages", 1, nested=False
        )


def _rows(instance: Instance) -> Iterator[Field]:
    """More rows of dies; with a stage on each new die, where stages use all dies, or to get past dead ones."""
    hardware, stages, split = instance.hardware, instance.pipeline.stages, instance.pipeline.layers
    if hardware.wafers != (1, 1):
        return
    values = range(hardware.rows + 1, 4 * hardware.rows + 1)

    def grown(rows: int) -> Instance:
        return instance.model_copy(update={"hardware": hardware.model_copy(update={"rows": rows})})

    if _joined(instance) < stages:
        yield Field("hardware.rows", hardware.rows, values, grown, "rows", 1, nested=False)
    elif isinstance(split, str) and stages == len(hardware.live_dies):

        def with_stages(rows: int) -> int:
            return min(instance.model.layer_count, stages + (rows - hardware.rows) * hardware.columns)

        yield Field(
            "hardware.rows and pipeline.stages",
            [hardware.rows, stages],
            [rows for rows in values if with_stages(rows - 1) < instance.model.layer_count],
            lambda rows: grown(rows).with_pipeline(stages=with_stages(rows)),
            nested=False,
            shown=lambda rows: [rows, with_stages(rows)],
        )


def _disabled(instance: Instance) -> Iterator[Field]:
    hardware = instance.hardware
    for key, parts in (("disabled_dies", hardware.disabled_dies), ("disabled_links", hardware.disabled_links)):
        if parts:

            def apply(kept: list[Any], key: str = key) -> Instance:
                return instance.model_copy(update={"hardware": hardware.model_copy(update={key: tuple(kept)})})

            sets, complete = _smaller_sets(parts)
            enough = [list(kept) for kept in sets if _joined(apply(list(kept))) >= instance.pipeline.stages]
            yield Field(f"hardware.{key}", list(parts), enough, apply, nested=False, complete=complete)


def _host(instance: Instance) -> Field:
    """More host memory for each die; a host tier where there is none."""
    host = instance.hardware.host
    have = 0.0 if host is None else host.host_bytes
    speed = HOST_BYTES_PER_S if host is None else host.host_bytes_per_s
    needs = StageNeeds(instance, EVERY_CHUNKS[0])
    values = in_steps(have, have + most_memory(instance))
    # Twice the KV of a request at a stage is often enough; three times the reach is looked at first.
    each = needs.wave_kv_bytes(0, instance.model.layer_count) / instance.pipeline.stages
    reach = 2 * each / values.step / 3

    def apply(size: float) -> Instance:
        more = Host(host_bytes=float(size), host_bytes_per_s=speed)
        return instance.model_copy(update={"hardware": instance.hardware.model_copy(update={"host": more})})

    if host is not None:
        return Field("hardware.host.host_bytes", have, values, apply, "bytes", values.step, reach=reach, weight=3)
    return Field(
        "hardware.host",
        None,
        values,
        apply,
        "bytes for each die",
        values.step,
        reach=reach,
        weight=3,
        shown=lambda size: {"host_bytes": float(size), "host_bytes_per_s": speed},
    )


def _requests(instance: Instance) -> Iterator[Field]:
    workload = instance.workload
    if workload.requests is not None:

        def apply(count: int) -> Instance:
            return instance.model_copy(update={"workload": workload.model_copy(update={"requests": count})})

        fewer = range(workload.requests - 1, 0, -1)
        yield Field("workload.requests", workload.requests, fewer, apply, "requests", 1)


def _joined(instance: Instance) -> int:
    """Most enabled dies that links join."""
    return len(joined_dies(instance, live_only=True)[0])


def _smaller_sets(parts: Sequence[Any]) -> tuple[list[tuple[Any, ...]], bool]:
    """Subsets with one part fewer, two fewer and so on, as long as they are few, then the empty one; whether all."""
    found: list[tuple[Any, ...]] = []
    for removed in range(1, len(parts)):
        if len(found) + math.comb(len(parts), removed) > MOST_SETS:
            return [*found, ()], False
        found += combinations(parts, len(parts) - removed)
    return [*found, ()], True
