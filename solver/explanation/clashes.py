"""The rules that clash, with amounts: by how much each cannot be kept beside the others of its clash."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import accumulate

from formulations.explain.core import Rules
from formulations.explain.needs import EVERY_CHUNKS, Chunks, StageNeeds
from formulations.explain.problem import RULES, clash_problem, joined_dies
from formulations.interface import EngineLimits
from instances.instance import Instance
from instances.rules import REPLAY_RULES, STATIC_RULES, Finding
from solver.backends.cpsat import solve_cpsat
from solver.explanation.fields import divisors, most_memory
from solver.explanation.result import Clash

Core = tuple[str, ...]
_DIGITS = 1e-4


def rules_of(instance: Instance) -> Rules:
    """The rules of an instance; the engine repeats its answers."""
    return Rules(clash_problem(instance), solve_cpsat, EngineLimits(deterministic=True, time_s=60.0))


def cores(rules: Rules) -> Iterator[Core]:
    """Sets of rules that clash, none of them in another set."""
    left = list(RULES)
    while (core := rules.core(left)) is not None:
        yield core
        # What is admitted is at rest too: where the one rule is broken, so is the other.
        spent = {*core, "memory_admission"} if "capacity_at_rest" in core else set(core)
        left = [rule for rule in left if rule not in spent]


def clash_rows(instance: Instance, rules: Rules, core: Core) -> tuple[Clash, ...]:
    """A row for each rule of a core."""
    return tuple(_row(instance, rules, core, rule) for rule in core)


def rows_of_findings(findings: tuple[Finding, ...]) -> tuple[Clash, ...]:
    """Rows of what a failed plan broke."""
    return tuple(
        Clash(rule=found.rule, what=says(found.rule), amount=found.amount, unit=found.unit, where=found.where)
        for found in findings
    )


def says(rule: str) -> str:
    """What a rule demands; empty for what is no rule."""
    return STATIC_RULES[rule].says if rule in STATIC_RULES else REPLAY_RULES.get(rule, "")


def _row(instance: Instance, rules: Rules, core: Core, rule: str) -> Clash:
    amount, unit, where = _AMOUNTS[rule](instance, rules, core)
    return Clash(rule=rule, what=says(rule), amount=amount, unit=unit, where=where)


def _memory(rule: str) -> Callable[[Instance, Rules, Core], tuple[float | None, str, str]]:
    def amount(instance: Instance, rules: Rules, core: Core) -> tuple[float | None, str, str]:
        """Bytes that every die lacks, to four digits, and the stage that lacks them."""
        problem = rules.problem

        def with_more(more: float) -> Rules:
            return rules.about(problem.with_memory(lambda size: size + more))

        low, high = 0, math.ceil(most_memory(instance))
        while high - low > max(1, high * _DIGITS):
            middle = (low + high) // 2
            low, high = (middle, high) if with_more(middle).clash(core) else (low, middle)
        example = with_more(high).example(core)
        needs = problem.needs(Chunks("chunk_count" in core, "chunk_quantum" in core))
        where = "" if example is None else _where(rule, needs, *example, more=high)
        return high, "bytes", where

    return amount


def _where(rule: str, needs: StageNeeds, split: tuple[int, ...], memory: tuple[float, ...], more: float) -> str:
    """The stage with the least room left where every die has so much more."""
    parts = [(stop - count, stop) for stop, count in zip(accumulate(split), split, strict=True)]
    need = needs.at_rest if rule == "capacity_at_rest" else needs.admitted
    room = [size - need(stage, *part) for stage, (part, size) in enumerate(zip(parts, memory, strict=True))]
    stage = min(range(len(parts)), key=room.__getitem__)
    start, stop = parts[stage]
    layers, size = f"stage {stage} (layers {start}..{stop - 1})", memory[stage] - more
    held = (
        f"weights of {needs.weight_bytes(stage, start, stop):.4g} bytes and workspace of "
        f"{needs.workspace_bytes(start, stop):.4g} bytes (largest chunk {needs.largest_chunk})"
    )
    if rule == "capacity_at_rest":
        return f"{layers}: {held} on a die of {size:.4g} bytes"
    if need(stage, start, stop) > size:
        return f"{layers}: {held} and KV of {needs.home_kv_bytes(start, stop):.4g} bytes on a die of {size:.4g} bytes"
    stage = max(range(len(parts)), key=lambda stage: needs.wave_kv_bytes(*parts[stage]))
    start, stop = parts[stage]
    kv = (
        f"KV of a request at stage {stage} (layers {start}..{stop - 1}) is {needs.wave_kv_bytes(start, stop):.4g} bytes"
    )
    return f"{kv}, more than all dies in use, with {sum(memory) - len(memory) * more:.4g} bytes, and host have left"


def _count(instance: Instance, rules: Rules, core: Core) -> tuple[float | None, str, str]:
    """More chunks that are needed."""
    have, longest = instance.pipeline.max_chunks, max(instance.workload.uncached_counts)
    low, high = have + 1, max(have + 1, longest)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _piped(instance, max_chunks=middle).clash(core) else (low, middle)
    chunk = EVERY_CHUNKS[0].largest(instance, longest)
    return low - have, "chunks", f"{have} chunks of {longest} tokens: the largest has at least {chunk} tokens"


def _quantum(instance: Instance, rules: Rules, core: Core) -> tuple[float | None, str, str]:
    """By how much the quantum has to be smaller, among its divisors."""
    quantum, longest = instance.pipeline.chunk_quantum, max(instance.workload.uncached_counts)
    smaller = next((part for part in divisors(quantum) if not _piped(instance, chunk_quantum=part).clash(core)), 0)
    chunk = EVERY_CHUNKS[0].largest(instance, longest)
    return quantum - smaller, "tokens", f"chunks are multiples of {quantum} tokens: the largest has at least {chunk}"


def _given(instance: Instance, rules: Rules, core: Core) -> tuple[float | None, str, str]:
    """Layers that have to move from one stage to another."""
    found = rules.least_broken("layers_given", core)
    split = list(instance.fixed_layers or ())
    if found is None:
        return None, "layers", f"the split is {split}"
    return found[0], "layers", f"the split is {split}; {list(found[1])} would do"


def _cuts(instance: Instance, rules: Rules, core: Core) -> tuple[float | None, str, str]:
    """Stages that have to start at a forbidden layer."""
    found = rules.least_broken("forbidden_cuts", core)
    if found is None:
        return None, "stages", f"forbidden are {sorted(instance.pipeline.forbidden_cuts)}"
    used = forbidden_starts(instance, found[1])
    return found[0], "stages", f"a stage has to start at layer {', '.join(map(str, used))}"


def forbidden_starts(instance: Instance, split: tuple[int, ...]) -> list[int]:
    """Forbidden layers at which stages of a split start."""
    return sorted(set(accumulate(split[:-1])) & set(instance.pipeline.forbidden_cuts))


def _dies(instance: Instance, rules: Rules, core: Core) -> tuple[float | None, str, str]:
    """Dies that are missing in the largest group that links join."""
    stages, joined = instance.pipeline.stages, len(joined_dies(instance, live_only=True)[0])
    where = f"{stages} stages, and links join at most {joined} of the {len(instance.hardware.live_dies)} enabled dies"
    return (stages - joined if joined < stages else None), "dies", where


def _disabled(instance: Instance, rules: Rules, core: Core) -> tuple[float | None, str, str]:
    amount, unit, _ = _dies(instance, rules, core)
    dies = ", ".join(map(str, map(list, instance.hardware.disabled_dies[:8])))
    return amount, unit, f"{len(instance.hardware.disabled_dies)} dies are disabled: {dies}"


_AMOUNTS: dict[str, Callable[[Instance, Rules, Core], tuple[float | None, str, str]]] = {
    "memory_admission": _memory("memory_admission"),
    "chunk_quantum": _quantum,
    "chunk_count": _count,
    "layers_given": _given,
    "forbidden_cuts": _cuts,
    "placement_connected": _dies,
    "placement_live": _disabled,
    "capacity_at_rest": _memory("capacity_at_rest"),
}


def _piped(instance: Instance, **changes: int) -> Rules:
    return rules_of(instance.with_pipeline(**changes))
