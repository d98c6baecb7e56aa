"""A benchmark of quick made-up runs as a process of its own: ``python -m tests.solver.benchmark.driver FILE RUNS``."""

from __future__ import annotations

import sys
from pathlib import Path

from solver.benchmark.pools import LocalPool
from solver.benchmark.records_file import RecordsFile
from solver.benchmark.runner import run_all
from tests.solver.benchmark.making import tasks
from tests.solver.benchmark.run_functions import HERE
from tests.solver.benchmark.test_runner import Ear


def main() -> None:
    """Do what is left, and say how much that was."""
    path, runs = Path(sys.argv[1]), int(sys.argv[2])
    ear = Ear()
    with RecordsFile.open(path) as file:
        list(run_all(tasks(seeds=range(runs)), LocalPool(3, function=f"{HERE}:quick"), ear, file=file))
    sys.stdout.write(f"{len(ear.done)}\n")


if __name__ == "__main__":
    main()
