"""Table of all methods on one instance, as in the README: ``python -m tests.performance.systems [INSTANCE...]``.

Every method runs with its knobs at their defaults, and some in further modes. A value is set against the best bound,
of whichever run, whose scope contains its plan; programs have none. Ends with what is wrong: a method without an
answer, an answer that does not replay to its value, or one below such a bound.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping

from formulations.interface import relative_gap
from instances.instance import Instance
from instances.numbers import share_text, time_text
from instances.suites import find_suite
from solver.api import solve
from solver.benchmark.task import read_choice
from solver.cli.summary import spill_words
from solver.evaluate import Evaluator
from solver.limits import Limits
from solver.methods import METHODS
from solver.result import Result
from solver.simulation.program_file import replay_document

SUITE = "systems"
FURTHER = ("vpp-packed:order=single_fifo", "vpp-packed:handoff=blocking", "kv-tier:mode=active_spill")
"""Modes of methods that answer in another way than their defaults."""
ROUNDING = 1e-9
"""Relative: by so much a value may lie below a bound, both being sums of doubles."""


def main() -> None:
    """Print one table for each instance."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--time-limit", type=float, default=20.0, help="seconds for one method")
    arguments.add_argument("--methods", default="", help="as mocap:batch=best, commas between; all by default")
    arguments.add_argument("instances", nargs="*", help=f"names of suite {SUITE}, or all for all; the first by default")
    given = arguments.parse_args()
    known = {instance.name: instance for instance in find_suite(SUITE).load()}
    names = list(known) if given.instances == ["all"] else given.instances or ["llama3-70b-one-request"]
    wrong: list[str] = []
    for name in names:
        methods = given.methods.split(",") if given.methods else every_method()
        results = run_all(known[name], methods, given.time_limit)
        sys.stdout.write(table(name, results))
        sys.stdout.flush()
        wrong += [f"{name}: {fault}" for fault in faults(known[name], results)]
    sys.stdout.write("\n".join(wrong or ["every answer replays, and none is below a bound that covers it"]) + "\n")
    sys.exit(1 if wrong else 0)


def every_method() -> list[str]:
    """All methods, and further modes of some, each behind its method."""
    return [
        choice for method in METHODS for choice in (method, *(mode for mode in FURTHER if mode.split(":")[0] == method))
    ]


def run_all(instance: Instance, methods: Iterable[str], time_s: float) -> dict[str, Result]:
    """The results of methods, with knobs behind colons, in this order."""
    found = {}
    for method in methods:
        choice = read_choice(method)
        found[method] = solve(instance, choice.method, limits=Limits(time_s=time_s), knobs=choice.knobs)
    return found


def bound_of(result: Result, results: Iterable[Result]) -> float | None:
    """The largest bound among ``results`` whose scope contains the plan of this one; None without a plan or bound."""
    if result.plan is None:
        return None
    objectives = [other.objective for other in results]
    covering = [
        found.bound
        for found in objectives
        if found.bound is not None and found.bound_scope is not None and found.bound_scope.contains(result.plan)
    ]
    return max(covering, default=None)


def faults(instance: Instance, results: Mapping[str, Result]) -> list[str]:
    """What is wrong with the answers, one line each."""
    found = []
    evaluator = Evaluator(instance)
    for method, result in results.items():
        value, bound = result.objective.value, bound_of(result, results.values())
        if value is None:
            found.append(f"{method} has no answer: {result.reason}")
            continue
        if result.plan is not None and evaluator.full(result.plan).value != value:
            found.append(f"{method}: the plan does not replay to {value!r} s")
        if result.program is not None and (result.metrics is None or not _replays(result)):
            found.append(f"{method}: the program does not replay to its makespan")
        if bound is not None and value < bound * (1 - ROUNDING):
            found.append(f"{method}: {value!r} s is below a bound that covers it, {bound!r} s")
    return found


def _replays(result: Result) -> bool:
    assert result.program is not None
    assert result.metrics is not None
    replayed = replay_document(result.program)
    return not replayed["deadlock"] and replayed["makespan_s"] == result.metrics.makespan_s


def table(name: str, results: Mapping[str, Result]) -> str:
    """The results as Markdown."""
    lines = [f"| {name} | value | gap | remarks |", "| --- | ---: | ---: | --- |"]
    for method, result in results.items():
        gap = relative_gap(result.objective.value, bound_of(result, results.values()))
        lines.append(f"| `{method}` | {time_text(result.objective.value)} | {share_text(gap)} | {_remark(result)} |")
    return "\n".join(lines) + "\n\n"


def _remark(result: Result) -> str:
    """What the answer is made of, in a few words."""
    if result.plan is not None:
        counts = [len(sizes) for sizes in result.plan.chunks.values()]
        chunks = "-".join(str(count) for count in sorted({min(counts), max(counts)}))
        schedule = "" if result.plan.schedule == "chunked" else f", {result.plan.schedule} schedule"
        word = "chunk" if chunks == "1" else "chunks"
        return f"{chunks} {word}, batch {result.plan.batch}, {spill_words(result.plan)}{schedule}"
    metrics = result.metrics
    if result.program is None or metrics is None:
        return (result.reason or "no answer").replace("|", "/")
    if metrics.ttft_s is None:
        return f"program; idle {share_text(metrics.bubble.makespan)}"
    first = f"program; first token after {time_text(metrics.ttft_s)}"
    return first if metrics.p99_tbt_s is None else f"{first}, p99 between tokens {time_text(metrics.p99_tbt_s)}"


if __name__ == "__main__":
    main()
