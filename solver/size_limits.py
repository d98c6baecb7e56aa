"""Instances for whose tables there is no room: refused before a search begins, with what to change."""

from __future__ import annotations

from instances.errors import InputError
from instances.instance import Instance

MOST_QUANTA = 4096
"""Quanta of a request: a table of the times of all its chunks then has 134 MB, and a few are needed at a time."""


def refuse_too_fine(instance: Instance) -> None:
    """InputError if the longest request has too many quanta; a plan for it can still be checked and replayed."""
    quantum, tokens = instance.pipeline.chunk_quantum, instance.workload.uncached_counts[-1]
    quanta = -(-tokens // quantum)
    if quanta > MOST_QUANTA:
        gigabytes = 8 * (quanta + 1) ** 2 / 1e9
        allowed = f"at least {-(-tokens // MOST_QUANTA)}: {tokens} tokens are to be at most {MOST_QUANTA} quanta"
        takes = f"with {quanta} each of several tables of chunk times takes {gigabytes:.3g} GB"
        raise InputError("pipeline.chunk_quantum", quantum, f"{allowed}; {takes}")
