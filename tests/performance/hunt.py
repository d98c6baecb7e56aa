"""Hunt for a plan that beats a proved bound, on every instance of the suites.

Run as ``python -m tests.performance.hunt [SUITE...]``.

From the plan of each method a local search minimises value - bound of the plan's batch, over boundaries, batches, layer
splits and placements. Whatever runs is held against the bound of its batch; then the bounds are raised by one percent,
which the hunt has to notice wherever a plan comes that close.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from formulations.bounds import TimeBounds
from formulations.tables import StageTables
from instances.instance import Instance
from solver.api import solve
from solver.evaluate import Evaluator
from solver.limits import Limits
from solver.policies.registry import POLICIES
from tests.brute_force import batches, descend

SUITES = Path(__file__).parents[2] / "instances" / "data" / "suites"
HEADER = """\
| instance | plans replayed | closest value / bound | bounds beaten | 1 % more is noticed |
| --- | ---: | ---: | ---: | --- |
"""
MUTANT = 1.01
"""What the bounds are multiplied with, to see whether the hunt finds it out."""


@dataclass(frozen=True)
class Catch:
    """What a hunt on one instance came to.

    Attributes
    ----------
    replays
        Plans that ran.
    closest
        Least value / bound of any of them; None if none ran.
    broken
        Plans whose value is below the bound, or that run although none should; 0 unless a bound is wrong.
    """

    replays: int
    closest: float | None
    broken: int

    @property
    def notices_mutant(self) -> bool:
        """Whether a bound one percent higher would have been found out."""
        return self.closest is not None and self.closest < MUTANT


def hunt(instance: Instance, time_s: float, replays: int) -> Catch:
    """Local search from the plan of every method, ``replays`` steps each; solving takes ``time_s`` seconds each."""
    evaluator, tables = Evaluator(instance), StageTables(instance)
    proved = TimeBounds(instance, tables)
    promised = {batch: proved.batch(batch, time_s).bound_s for batch in batches(instance)}
    ran, broken, closest = 0, 0, None
    for method in ["exact", *(policy.name for policy in POLICIES)]:
        start = solve(instance, method, limits=Limits(time_s=time_s)).plan
        if start is None or start.schedule != "chunked":
            continue
        start = start.model_copy(update={"batch": min(start.batch, max(promised))})
        for plan, value in descend(evaluator, start, promised, replays):
            bound = promised[plan.batch]
            ran += 1
            broken += bound is None or value < bound
            ratio = 0.0 if bound is None else value / bound
            closest = ratio if closest is None else min(closest, ratio)
    return Catch(ran, closest, broken)


def main() -> int:
    """Print a row an instance; 1 if a bound was beaten."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help="names of suites; all unless given")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds for each method's plan")
    parser.add_argument("--replays", type=int, default=200, help="steps of the local search from each plan")
    asked = parser.parse_args()
    names = asked.suites or sorted(folder.name for folder in SUITES.iterdir() if folder.is_dir())
    broken = 0
    sys.stdout.write(HEADER)
    for name in names:
        for file in sorted((SUITES / name).glob("*.json")):
            if file.name == "best_known.json":
                continue
            catch = hunt(Instance.load(file), asked.time_limit, asked.replays)
            closest = "–" if catch.closest is None else f"{catch.closest:.6f}"
            noticed = "yes" if catch.notices_mutant else "no"
            sys.stdout.write(f"| {name}/{file.stem} | {catch.replays} | {closest} | {catch.broken} | {noticed} |\n")
            sys.stdout.flush()
            broken += catch.broken
    return min(broken, 1)


if __name__ == "__main__":
    sys.exit(main())
