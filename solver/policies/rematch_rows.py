"""A rematching in which nothing moves, as the spill rows of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from instances.instance import Instance
from instances.plan import Plan, SpillRow
from instances.workload import Shape, Wave
from solver.policies.rematch_pairs import Lending


def plan_with_rows(
    instance: Instance, plan: Plan, waves: Sequence[Wave], lendings: Sequence[Lending], units_per_byte: int
) -> Plan | None:
    """The plan with rows for what each chunk leaves behind when it ends; None if something lent moves.

    Of each request shape the largest wave counts. Tokens are rounded up, and no row has more than its chunk.
    """
    if any(len(lending.groups) > 1 for lending in lendings):
        return None
    largest: dict[Shape, tuple[int, Lending]] = {}
    for wave, lending in zip(waves, lendings, strict=True):
        if wave.shape not in largest or wave.size > largest[wave.shape][0]:
            largest[wave.shape] = wave.size, lending
    rows = []
    for shape, (size, lending) in largest.items():
        chunks = plan.chunk_sizes(shape[0] - shape[1])
        for stage, (stop, layers) in enumerate(zip(accumulate(plan.layers), plan.layers, strict=True)):
            units = instance.stage_cost.spillable_bytes_per_token(stop - layers, stop) * size * units_per_byte
            for chunk, tokens in enumerate(chunks[:-1]):
                leaves = int(lending.lent[stage, chunk + 1] - lending.lent[stage, chunk])
                if leaves > 0:
                    rows.append(
                        SpillRow(
                            stage=stage,
                            chunk=chunk,
                            creditor=int(lending.creditor[stage, chunk + 1]),
                            tokens=min(tokens, int(-(-leaves // units))),
                            shape=shape if len(largest) > 1 else None,
                        )
                    )
    return plan.model_copy(update={"spill": tuple(rows)})
