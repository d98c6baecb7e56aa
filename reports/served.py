"""An answer that is a program, replayed once more; of a serving policy with its iterations and requests.

The waves of a serving policy's program are those that ``solver.serving.lowering`` writes: first the requests, then the
iterations, last the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from instances.errors import InfeasibleError, InputError
from instances.instance import Instance
from reports.source import Floats, Int64s, Traced
from solver.result import Result
from solver.simulation.engine import run
from solver.simulation.program_file import read_program
from solver.simulation.waiting import describe


@dataclass(frozen=True, eq=False)
class Served(Traced):
    """The program of a result with what its replay saw.

    Parameters
    ----------
    document
        The program as the result has it.
    """

    document: Mapping[str, Any]

    @property
    def requests(self) -> int:
        """Number of requests R."""
        return self.instance.workload.count

    @property
    def iterations(self) -> int:
        """Number of iterations I."""
        return self.program.waves - self.requests - 1

    @cached_property
    def tasks(self) -> Int64s:
        """The task of each iteration at each stage. Shape [I, stages]."""
        wave = self.program.wave
        chosen = np.flatnonzero((wave >= self.requests) & (wave < self.requests + self.iterations))
        return chosen.reshape(self.iterations, self.program.stages)

    @cached_property
    def tokens(self) -> Int64s:
        """Tokens of each iteration, by the activations that it hands on. Shape [I]."""
        each = float(self.instance.stage_cost.activation_bytes(1, 1))
        sent = np.array(self.document["activation_bytes"][self.requests : -1], dtype=np.float64)[:, 0]
        return np.rint(sent / each).astype(np.int64) if each else np.zeros(len(sent), dtype=np.int64)

    @cached_property
    def arrived_s(self) -> Floats:
        """Arrival of each request. Shape [R]."""
        return np.array(self.document["arrivals_s"][: self.requests], dtype=np.float64)

    @cached_property
    def done_s(self) -> Floats:
        """When the last token of each request is there. Shape [R]."""
        done = np.zeros(self.program.waves)
        np.maximum.at(done, self.program.wave, self.tables["tasks"]["end_s"])
        return done[: self.requests]

    def times_s(self, column: str) -> NDArray[np.float64]:
        """A column of the table of tasks for each iteration at each stage. Shape [I, stages]."""
        return np.asarray(self.tables["tasks"][column][self.tasks], dtype=np.float64)


def programmed(result: Result) -> Traced | None:
    """Replay the program of a result; None if it holds none.

    Returns
    -------
    Traced
        ``Served`` if the result counts prompt tokens apart from computed ones, as serving policies do, and they alone.

    Raises
    ------
    InputError
        If the program cannot be read, or is not one that serves the requests of the instance.
    InfeasibleError
        If it deadlocks.
    """
    document, metrics = result.program, result.metrics
    if document is None:
        return None
    instance = Instance.read(result.instance)
    program = read_program(document)
    traced = run(program, traced=True)
    if traced.deadlock:
        never_ran = int((traced.end_ps < 0).sum())
        raise InfeasibleError("deadlock", describe(program, traced.waiting, never_ran))
    if metrics is None or metrics.prompt_tokens_per_s is None:
        return Traced(result, instance, program, traced)
    requests = instance.workload.count
    if program.waves < requests + 2:
        waves = f"at least {requests + 2} waves: the instance's requests, iterations, and the memory"
        raise InputError("program.arrivals_s", f"{program.waves} waves", waves)
    chunks = np.bincount(program.wave) // program.stages
    if (chunks[:-1] != 1).any() or chunks[-1] != program.waves - requests - 1:
        allowed = "one chunk a request and an iteration, and in the last wave one for each iteration"
        raise InputError("program.compute_s", f"up to {chunks.max()} chunks a wave", allowed)
    return Served(result, instance, program, traced, document)
