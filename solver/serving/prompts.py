"""What a program of prompts alone says of its requests: a request's first token comes with its last chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from instances.instance import Instance
from instances.workload import Wave
from solver.metrics import metrics_of
from solver.serving.served import Served
from solver.simulation.engine import Run, run
from solver.simulation.program import Program
from solver.simulation.program_file import read_program
from solver.simulation.replay import Replay


def prompts_served(
    instance: Instance, document: dict[str, Any], waves: Sequence[Wave], replayed: tuple[Program, Run] | None = None
) -> Served | None:
    """The program replayed and measured; None if it gets stuck.

    Parameters
    ----------
    waves
        Of the workload, the first waves of the document; others have no requests.
    replayed
        The document as it was read and run, where that is done already.
    """
    if replayed is None:
        program = read_program(document)
        replayed = program, run(program)
    program, outcome = replayed
    arrivals = [np.array(wave.arrivals_s) for wave in waves] + [np.zeros(0)] * (program.waves - len(waves))
    metrics = metrics_of(instance, Replay(program, outcome, tuple(arrivals)))
    if metrics is None:
        return None
    first = {"ttft_s": metrics.mean_latency_s, "p50_ttft_s": metrics.p50_latency_s, "p99_ttft_s": metrics.p99_latency_s}
    return Served(document, metrics.model_copy(update=first), metrics.value_s(instance.objective), 0.0)
