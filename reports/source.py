"""A result as reports see it: its instance, and its plan replayed once more with all events kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from instances.instance import Instance
from instances.plan import Plan
from solver.export.columns import Table, tables_of
from solver.export.source import Source, replayed
from solver.result import Result
from solver.simulation.program import Program

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replayed:
    """The plan of a result with what its replay saw.

    Parameters
    ----------
    source
        The traced run, as exports have it.
    """

    result: Result
    instance: Instance
    plan: Plan
    source: Source

    @property
    def program(self) -> Program:
        """The lowered plan."""
        return self.source.program

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Tasks, transfers, memory, stalls and links as tables of columns, units in the names."""
        return tables_of(self.source.program, self.source.run)

    @cached_property
    def makespan_s(self) -> float:
        """End of the last task."""
        return float(np.nanmax(self.tables["tasks"]["end_s"]))

    @cached_property
    def stages_of_die(self) -> list[list[int]]:
        """Stages on each die of the program: one, or the two of a fold."""
        found: list[list[int]] = [[] for _ in range(self.program.dies)]
        for stage, die in enumerate(self.program.die_of_stage().tolist()):
            found[die].append(stage)
        return found

    @cached_property
    def die_index(self) -> dict[tuple[int, int], int]:
        """Number of each die in use by its position."""
        return {(row, column): die for die, (row, column) in enumerate(self.program.network.dies.tolist())}

    @cached_property
    def prefix_tokens(self) -> NDArray[np.int64]:
        """Tokens of the request before the chunk of each task, cached ones included. Shape [tasks]."""
        return self._chunks[0]

    @cached_property
    def chunk_tokens(self) -> NDArray[np.int64]:
        """Tokens of the chunk of each task. Shape [tasks]."""
        return self._chunks[1]

    @cached_property
    def busy_s(self) -> Floats:
        """Compute time of each stage. Shape [stages]."""
        tasks = self.tables["tasks"]
        busy_s = np.zeros(self.program.stages)
        np.add.at(busy_s, self.program.stage, tasks["compute_s"])
        return busy_s

    def die_name(self, die: int) -> str:
        """Row and column, as files write them."""
        row, column = self.program.network.dies[die].tolist()
        return f"{row},{column}"

    def stage_name(self, die: int) -> str:
        """Numbers of the stages on a die."""
        return "/".join(map(str, self.stages_of_die[die]))

    @cached_property
    def _chunks(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Prefix and size of the chunk of each task."""
        waves = self.instance.workload.gathered(self.plan.batch)
        shapes = [shape for shape, _ in waves.kinds]
        sizes = [np.array(self.plan.chunk_sizes(tokens - cached), dtype=np.int64) for tokens, cached in shapes]
        starts = [cached + np.cumsum(own) - own for (_, cached), own in zip(shapes, sizes, strict=True)]
        first = np.cumsum([0, *(len(own) for own in sizes)])[:-1]
        place = first[waves.kind[self.program.wave]] + self.program.chunk
        return np.concatenate(starts)[place], np.concatenate(sizes)[place]


def replay_of(result: Result) -> Replayed | None:
    """Replay the plan of a result; None if it holds none.

    Raises
    ------
    InputError
        If the parts of the result do not belong together.
    InfeasibleError
        If the plan breaks a rule or deadlocks.
    """
    plan = result.plan
    if plan is None:
        return None
    source = replayed(result)
    return Replayed(result, source.instance, plan, source)
