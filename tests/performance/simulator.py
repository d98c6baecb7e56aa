"""Speed and memory of the simulator by size, beside SimPy: ``python -m tests.performance.simulator [SIZE ...]``.

A size is stages x chunks x waves, e.g. 16x64x16. Each is measured in a process of its own, whose peak memory is taken
before SimPy runs there. Times are seconds of CPU on one core, the best of several runs; the compiled code is loaded
before.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from solver.simulation.engine import Run, run
from solver.simulation.lowering import Lowering
from solver.simulation.program import Program
from tests.performance import simpy_pipeline
from tests.performance.cases import LADDER, SMALL, Size, instance_of, plan_of, program_of

ROOT = Path(__file__).parents[2]
COLUMNS = (
    "stages x chunks x waves",
    "tasks",
    "transfers",
    "lowering (s)",
    "replay (s)",
    "by the clock (s)",
    "tasks/s",
    "SimPy (s)",
    "times as fast",
    "peak memory (MiB)",
    "of which before (MiB)",
)
ENOUGH_S = 2.0
"""Runs are repeated for about this long."""


@dataclass(frozen=True)
class Measured:
    """What a process measured; ``simpy_s`` is None where SimPy was not asked for."""

    tasks: int
    transfers: int
    lowering_s: float
    replay_s: float
    replay_clock_s: float
    simpy_s: float | None
    peak_mib: float
    before_mib: float


def main() -> None:
    """Print one Markdown row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=Size.parse, default=LADDER, metavar="SIZE")
    parser.add_argument("--simpy-tasks", type=int, default=20_000, help="largest number of tasks that SimPy is given")
    parser.add_argument("--alone", action="store_true", help="measure one size in this process; JSON")
    arguments = parser.parse_args()
    if arguments.alone:
        sys.stdout.write(json.dumps(asdict(measure(arguments.sizes[0], arguments.simpy_tasks))))
        return
    _in_a_process(SMALL, 0)  # compiles, so that no other process does
    sys.stdout.write(f"load average {' '.join(f'{load:.2f}' for load in os.getloadavg())}\n\n")
    sys.stdout.write(f"| {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * (len(COLUMNS) - 1)}\n")
    for size in arguments.sizes:
        sys.stdout.write(_row(size, _in_a_process(size, arguments.simpy_tasks)) + "\n")
        sys.stdout.flush()
    sys.stdout.write(f"\nload average {' '.join(f'{load:.2f}' for load in os.getloadavg())}\n")


def measure(size: Size, simpy_tasks: int) -> Measured:
    """Lower and replay a pipeline of this size, in SimPy too unless it has more than ``simpy_tasks`` tasks."""
    run(program_of(SMALL))
    before_mib = _peak_mib()
    instance = instance_of(size)
    plan = plan_of(instance, size)
    started_s = time.process_time()
    Lowering(instance).program(plan)
    lowering_s = time.process_time() - started_s
    program = program_of(size)
    replay_s, replay_clock_s, outcome = _replay(program)
    peak_mib = _peak_mib()
    return Measured(
        tasks=size.tasks,
        transfers=size.transfers,
        lowering_s=lowering_s,
        replay_s=replay_s,
        replay_clock_s=replay_clock_s,
        simpy_s=_simpy_s(program, outcome) if size.tasks <= simpy_tasks else None,
        peak_mib=peak_mib,
        before_mib=before_mib,
    )


def _replay(program: Program) -> tuple[float, float, Run]:
    """Least seconds of CPU and by the clock of several runs, and what one run found."""
    cpu_s: list[float] = []
    clock_s: list[float] = []
    outcome = run(program)
    while sum(clock_s) < ENOUGH_S:
        cpu_start_s, start_s = time.process_time(), time.perf_counter()
        outcome = run(program)
        cpu_s.append(time.process_time() - cpu_start_s)
        clock_s.append(time.perf_counter() - start_s)
    return min(cpu_s), min(clock_s), outcome


def _simpy_s(program: Program, expected: Run) -> float:
    """Least seconds of CPU of several SimPy runs; the translation of the program to lists is not counted."""
    cpu_s: list[float] = []
    inputs = simpy_pipeline.read(program)
    while sum(cpu_s) < ENOUGH_S:
        start_s = time.process_time()
        end_ps = simpy_pipeline.simulate(inputs)
        cpu_s.append(time.process_time() - start_s)
        if end_ps != expected.end_ps.tolist():
            raise SystemExit("SimPy and the simulator disagree")
    return min(cpu_s)


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _in_a_process(size: Size, simpy_tasks: int) -> Measured:
    command = [
        sys.executable,
        "-m",
        "tests.performance.simulator",
        "--alone",
        f"--simpy-tasks={simpy_tasks}",
        str(size),
    ]
    return Measured(**json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout))


def _row(size: Size, found: Measured) -> str:
    simpy = ["-", "-"] if found.simpy_s is None else [f"{found.simpy_s:.3g}", f"{found.simpy_s / found.replay_s:.0f}"]
    cells = [
        str(size),
        f"{found.tasks:,}",
        f"{found.transfers:,}",
        f"{found.lowering_s:.3g}",
        f"{found.replay_s:.3g}",
        f"{found.replay_clock_s:.3g}",
        f"{found.tasks / found.replay_s:,.0f}",
        *simpy,
        f"{found.peak_mib:.0f}",
        f"{found.before_mib:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
