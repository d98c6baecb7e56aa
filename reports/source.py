"""A result as reports see it: its instance, and its plan or program replayed once more with all events kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from instances.instance import Instance
from instances.numbers import byte_text, count_text
from instances.plan import Plan
from solver.export.columns import Table, tables_of
from solver.export.source import events_of, replayed
from solver.result import Result
from solver.simulation.engine import Events, Run
from solver.simulation.program import Program

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Creditor = int | Literal["host"]
"""A stage whose die keeps what another stage has no room for, or that stage's own host."""


@dataclass(frozen=True, eq=False)
class Traced:
    """A result with its answer, lowered, and what a traced run of that saw."""

    result: Result
    instance: Instance
    program: Program
    run: Run

    @property
    def layers(self) -> tuple[int, ...] | None:
        """Layers of each stage; None where the answer does not say."""
        return None

    @property
    def kept_words(self) -> str:
        """What the amounts of ``kept`` are."""
        return "KV written elsewhere"

    @cached_property
    def kept(self) -> dict[tuple[int, Creditor], int]:
        """What each stage writes to each creditor over the whole run, in bytes; what moves counts every time."""
        program, found = self.program, dict[tuple[int, Creditor], float]()
        group = np.searchsorted(program.group_slot_ptr, program.write_slot, side="right") - 1
        for slot, stage, units in zip(
            program.write_slot.tolist(), program.group_stage[group].tolist(), program.write_units.tolist(), strict=True
        ):
            creditor: Creditor = "host" if program.slot_is_host[slot] else int(program.slot_stage[slot])
            pair = stage, creditor
            found[pair] = found.get(pair, 0.0) + units / program.units_per_byte
        return {pair: round(amount) for pair, amount in found.items() if amount}

    def kept_text(self, amount: int) -> str:
        """An amount of ``kept`` for people."""
        return byte_text(amount)

    @property
    def events(self) -> Events:
        """Every transfer, change of memory and stall."""
        return events_of(self.run)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Tasks, transfers, memory, stalls and links as tables of columns, units in the names."""
        return tables_of(self.program, self.run)

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
    def placement(self) -> list[tuple[int, int]]:
        """Row and column of each stage's die."""
        return [(row, column) for row, column in self.program.network.dies[self.program.die_of_stage()].tolist()]

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


@dataclass(frozen=True, eq=False)
class Replayed(Traced):
    """The plan of a result with what its replay saw."""

    plan: Plan

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers of each stage."""
        return self.plan.layers

    @property
    def kept_words(self) -> str:
        """What the amounts of ``kept`` are."""
        return "tokens kept elsewhere"

    @cached_property
    def kept(self) -> dict[tuple[int, Creditor], int]:
        """Tokens of all chunks that each stage keeps at each creditor."""
        found: dict[tuple[int, Creditor], int] = {}
        for row in self.plan.spill:
            if row.tokens:
                creditor: Creditor = "host" if row.creditor == "host" else int(row.creditor)
                found[row.stage, creditor] = found.get((row.stage, creditor), 0) + row.tokens
        return found

    def kept_text(self, amount: int) -> str:
        """An amount of ``kept`` for people."""
        return count_text(amount)

    @cached_property
    def prefix_tokens(self) -> Int64s:
        """Tokens of the request before the chunk of each task, cached ones included. Shape [tasks]."""
        return self._chunks[0]

    @cached_property
    def chunk_tokens(self) -> Int64s:
        """Tokens of the chunk of each task. Shape [tasks]."""
        return self._chunks[1]

    @cached_property
    def _chunks(self) -> tuple[Int64s, Int64s]:
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
    return Replayed(result, source.instance, source.program, source.run, plan)
