"""Best plans of the suite ``tiny`` by enumeration; ``python -m tests.solver.benchmark.brute_tiny`` writes them down."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from itertools import islice

from formulations.scope import plain_scope
from instances.instance import Instance
from instances.plan import Plan
from instances.suites import find_suite
from solver.benchmark.best_known import BestKnown, Source, load_best_known, save_best_known
from solver.benchmark.environment import revision
from solver.evaluate import Evaluator
from tests.brute_force import every_plan

COMMAND = "python -m tests.solver.benchmark.brute_tiny"
SPILLING = ("tight",)
"""Instances that do not run without spill; of these, whole chunks at one creditor are enumerated too."""
_AT_ONCE = 500


def brute_force(instance: Instance) -> tuple[float, Plan, int]:
    """Least objective over all plans, a plan that has it, and the number of plans."""
    evaluator, plans = Evaluator(instance), every_plan(instance, spill=instance.name in SPILLING)
    found: list[tuple[float, int, Plan]] = []
    count = 0
    while some := list(islice(plans, _AT_ONCE)):
        values = enumerate(evaluator.values(some), start=count)
        found += [(value, number, some[number - count]) for number, value in values if value is not None]
        found = [min(found)] if found else []
        count += len(some)
    value, _, plan = found[0]
    return value, plan, count


def main() -> None:
    """Enumerate, and write what is better than before."""
    suite = find_suite("tiny")
    instances = suite.load()
    known = load_best_known(suite, instances)
    plans: dict[str, Plan] = {}
    for instance in instances:
        value, plan, count = brute_force(instance)
        sys.stdout.write(f"{instance.name}: {value!r} is the least of {count} plans\n")
        entry = known.get(instance.name)
        if entry is None:
            scope = plain_scope(instance).describe()
            entry = BestKnown(fingerprint=instance.fingerprint, objective=instance.objective, scope=scope)
        if entry.value is None or value < entry.value or not suite.plan_file(instance.name).exists():
            day, method = datetime.now(UTC).date().isoformat(), f"brute force over {count} plans"
            source = Source(method=method, date=day, revision=revision(), command=COMMAND)
            plans[instance.name] = plan
            known[instance.name] = entry.model_copy(update={"value": value, "value_source": source})
    save_best_known(suite, known, plans)


if __name__ == "__main__":
    main()
