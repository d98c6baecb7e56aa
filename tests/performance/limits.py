"""Do time limits hold, and does the deterministic mode repeat? ``python -m tests.performance.limits [SUITE...]``.

For each instance: seconds beyond the limit of a run, and whether two deterministic runs, cut by nothing but their end,
give the same plan, value and bound. Exit code 1 if a limit is exceeded by more than two seconds or a run differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.warmup import warm_up

SUITES = Path(__file__).parents[2] / "instances" / "data" / "suites"
MOST_OVER_S = 2.0


def main() -> int:
    """Print one Markdown row for each instance."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("suites", nargs="*", help="names of suites; all unless given")
    arguments.add_argument("--time-limit", type=float, default=5.0, help="limit of the timed run in seconds")
    arguments.add_argument(
        "--deterministic-limit", type=float, default=0.0, help="limit of the others; 0: leave them out"
    )
    given = arguments.parse_args()
    sys.stdout.write("| instance | seconds over | value | bound | repeats |\n| --- | ---: | ---: | ---: | --- |\n")
    warm_up()
    failures = 0
    for path in sorted(path for suite in given.suites or ["*"] for path in SUITES.glob(f"{suite}/*.json")):
        if path.name == "best_known.json":
            continue
        instance = Instance.load(path)
        started = time.monotonic()
        result = solve(instance, limits=Limits(time_s=given.time_limit))
        over = time.monotonic() - started - given.time_limit
        repeats = "not tried"
        if given.deterministic_limit:
            same = _repeats(instance, given.deterministic_limit)
            repeats = "cut by the limit" if same is None else "yes" if same else "NO"
            failures += same is False
        failures += over > MOST_OVER_S
        value, bound = result.objective.value, result.objective.bound
        sys.stdout.write(f"| {path.parent.name}/{path.stem} | {max(0.0, over):.2f} | {value} | {bound} | {repeats} |\n")
        sys.stdout.flush()
    return min(failures, 1)


def _repeats(instance: Instance, time_s: float) -> bool | None:
    """Whether two runs agree; None if time cut one of them."""
    limits = Limits(time_s=time_s, deterministic=True)
    first, second = (solve(instance, limits=limits, seed=1) for _ in range(2))
    if "time_limit" in (first.stop_reason, second.stop_reason):
        return None
    return (first.plan, first.objective) == (second.plan, second.objective)


if __name__ == "__main__":
    sys.exit(main())
