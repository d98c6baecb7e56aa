"""A log of iterations as a program document (the keys of the worked examples; spec section 3, "Program").

Waves 0 .. R-1 are the requests: a chunk without compute at the end of each one's last iteration, so that a wave lasts
from arrival to last token. Then comes a wave for each iteration, with one chunk: it carries the iteration's compute and
activations, and its arrival is the moment when the scheduler let it go. The last wave is the memory: a chunk without
compute before each iteration takes or gives back KV, so that each stage holds what the scheduler counts from there on.
Each die runs all this in the order of the iterations.
So the replay judges times, links and memory, and only the moments of launch are the scheduler's word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from instances.instance import Instance
from solver.serving.jobs import Log
from solver.serving.machine import machine_fields
from solver.simulation.network import PICOSECONDS_PER_S


def program_document(
    instance: Instance,
    placement: Sequence[tuple[int, int]],
    log: Log,
    static_bytes: Sequence[int],
) -> dict[str, Any]:
    """Write a log down.

    Parameters
    ----------
    static_bytes
        What each stage's die holds for good.

    Returns
    -------
    dict
        For ``solver.simulation.program_file.read_program``; exact: times are whole picoseconds, bytes whole.
    """
    requests, iterations, stages = len(log.jobs), len(log.iterations), len(placement)
    memory = requests + iterations
    order: list[tuple[int, int]] = []
    changes: list[list[int]] = []
    held = [0] * stages
    for number, iteration in enumerate(log.iterations):
        batch = iteration.batch
        order += [(memory, number), (requests + number, 0), *((job, 0) for job in batch.closes)]
        changes.append([after - before for after, before in zip(batch.held, held, strict=True)])
        held = list(batch.held)
    nothing = [[0]] * stages
    document: dict[str, Any] = {
        "die_of": [list(die) for die in placement],
        "compute_s": [nothing] * requests
        + [[[_s(ps)] for ps in iteration.durations_ps] for iteration in log.iterations]
        + [[[0] * iterations] * stages],
        "activation_bytes": [[0]] * requests
        + [[iteration.send_bytes] for iteration in log.iterations]
        + [[0] * iterations],
        "kv_bytes": [nothing] * memory + [[list(row) for row in zip(*changes, strict=True)]],
        "arrivals_s": [_s(job.arrival_ps) for job in log.jobs]
        + [_s(iteration.launch_ps) for iteration in log.iterations]
        + [0],
        "order": [[[wave, stage, chunk] for wave, chunk in order] for stage in range(stages)],
        "capacity_bytes": [int(instance.hardware.die_at(die).hbm_bytes) for die in placement],
        "static_bytes": list(static_bytes),
    }
    return document | machine_fields(instance)


def _s(ps: int) -> float:
    return ps / PICOSECONDS_PER_S
