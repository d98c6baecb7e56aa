"""From names of suites to runs, and from records back to the suites' best-known values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from instances.errors import InputError
from instances.instance import Instance
from instances.suites import Suite, find_suite
from solver.benchmark.best_known import BestKnown, Changes, improve, load_best_known, save_best_known
from solver.benchmark.placements import Placing, read_placing
from solver.benchmark.record import Record
from solver.benchmark.task import PLACE, Choice, RunLimits, Task, grid, label_of


@dataclass(frozen=True)
class Selected:
    """A suite that takes part: its instances and what is known of them."""

    given: str
    suite: Suite
    instances: tuple[Instance, ...]
    placings: tuple[Placing, ...]
    best_known: dict[str, BestKnown]


def select(names: Sequence[str]) -> list[Selected]:
    """Load suites by name or folder, each once.

    Raises
    ------
    InputError
        For an unknown suite, a file that is no instance, two suites or two instances of one name.
    """
    found: dict[str, Selected] = {}
    for name in dict.fromkeys(names):
        suite = find_suite(name)
        if suite.name in found:
            raise InputError("suite", name, f"suites of different names; {suite.name} is there already")
        instances = tuple(suite.load())
        placings = tuple(read_placing(path) for path in suite.placements)
        problems: list[Instance | Placing] = [*instances, *placings]
        seen: set[str] = set()
        for problem, path in zip(problems, [*suite.files, *suite.placements], strict=True):
            if problem.name in seen:
                raise InputError("name", problem.name, "a name that no other instance of the suite has", file=str(path))
            seen.add(problem.name)
        for instance in instances:
            _ = instance.stage_cost  # a layer without a formula is refused here
        found[suite.name] = Selected(name, suite, instances, placings, load_best_known(suite, problems))
    return list(found.values())


def tasks_of(
    selected: Iterable[Selected], choices: Sequence[Choice], seeds: Sequence[int], limits: RunLimits
) -> list[Task]:
    """All runs of the suites; placement problems have a method of their own, whatever is chosen for the others."""
    tasks: list[Task] = []
    plans = [choice for choice in choices if choice.method != PLACE]
    for one in selected:
        known = {name: entry.value for name, entry in one.best_known.items()}
        tasks += grid(one.suite.name, one.instances, plans, seeds, limits, best_values=known)
        tasks += grid(one.suite.name, one.placings, [Choice(PLACE)], seeds, limits, best_values=known)
    return tasks


def update_best_known(selected: Iterable[Selected], records: Sequence[Record]) -> Changes:
    """Write what is better in the records into the suites' files; plans are replayed before."""
    all_changes = Changes()
    for one in selected:

        def command(record: Record, suite: str = one.given) -> str:
            method = label_of(record.method, record.knobs)
            seeds = f" --seeds {record.seed + 1}" if record.seed else ""
            return f"waferplan benchmark {suite} --methods {method} --time-limit {record.time_limit_s:g}{seeds}"

        own = [record for record in records if record.suite == one.suite.name]
        changes = improve(one.best_known, [*one.instances, *one.placings], own, command)
        if changes.improved:
            save_best_known(one.suite, one.best_known, changes.plans)
        all_changes.improved += changes.improved
        all_changes.refused += changes.refused
    return all_changes
