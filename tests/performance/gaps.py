"""Gap table of shipped suites, as in the README: ``python tests/performance/gaps.py mocap-latency --time-limit 20``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.result import Result

SUITES = Path(__file__).parents[2] / "instances" / "data" / "suites"
HEADER = (
    "| instance | value (s) | bound (s) | gap | trivial bound (s) | MOCAP, best batch (s) | TeraPipe (s) | GPipe (s) |"
)


def main() -> None:
    """Print one Markdown row for each instance."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--time-limit", type=float, default=20.0)
    arguments.add_argument("suites", nargs="*", help="folders of instances/data/suites; all of them by default")
    given = arguments.parse_args()
    limit_s: float = given.time_limit
    sys.stdout.write(f"{HEADER}\n| --- |{' ---: |' * 7}\n")
    for path in sorted(path for suite in given.suites or ["*"] for path in SUITES.glob(f"{suite}/*.json")):
        if path.name == "best_known.json":
            continue
        result = solve(Instance.load(path), limits=Limits(time_s=limit_s))
        sys.stdout.write(_row(path.stem, result) + "\n")
        sys.stdout.flush()


def _row(name: str, result: Result) -> str:
    objective = result.objective
    others = {row.method: row.value for row in result.compared}
    best_mocap = min((v for m, v in others.items() if m.startswith("mocap") and v is not None), default=None)
    gap = "-" if objective.gap is None else f"{100 * objective.gap:.3f} %"
    numbers = [objective.value, objective.bound]
    tail = [objective.trivial_bound, best_mocap, others.get("terapipe"), others.get("gpipe")]
    return f"| {name} | {' | '.join(map(_seconds, numbers))} | {gap} | {' | '.join(map(_seconds, tail))} |"


def _seconds(value: float | None) -> str:
    return "does not run" if value is None else f"{value:.5g}"


if __name__ == "__main__":
    main()
