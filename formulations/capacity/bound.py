"""A proved upper bound on the length of requests of real size that run in equal chunks within a budget of latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType

from formulations.admissible import admissible_chunk_tokens
from formulations.capacity import peak_cpsat, peak_milp
from formulations.capacity.peak import PeakProblem, peak_problem
from formulations.capacity.variables import Latency
from formulations.interface import Engine, EngineLimits
from formulations.tables import Grid
from instances.errors import InputError
from instances.instance import Instance

FORMS: dict[str, ModuleType] = {"cpsat": peak_cpsat, "milp": peak_milp}
GROUPS = 4
"""Groups of chunks that share a delay, in a wave. More make models larger, and refute hardly more."""
HALVINGS = 2
"""Times that the step is halved where a length is not refuted; the last model takes some seconds with four waves."""


@dataclass(frozen=True)
class LengthBound:
    """What is proved about lengths.

    Attributes
    ----------
    tokens
        The longest of the lengths asked about that is not refuted; None if all are.
    refuted
        Why each longer one does not run: by tokens, the longest first.
    scope
        The plans that this is about.
    """

    tokens: int | None
    refuted: dict[int, str]
    scope: str


def longest_not_refuted(
    instance: Instance,
    lengths: Sequence[int],
    chunks: int,
    latency_s: Latency,
    form: str,
    engine: Engine,
    limits: EngineLimits,
    *,
    batches: Sequence[int] | None = None,
    step_s: float | None = None,
    group: int | None = None,
    halvings: int = HALVINGS,
) -> LengthBound:
    """The longest of some lengths for which plans in equal chunks within the budget are not proved impossible.

    A length is refuted if for every batch one of these holds: memory admits no such chunk at all
    (``admissible_chunk_tokens``); the KV's time in memory exceeds all memory times the time there is; or no delays
    within the budget keep all memory together from overflowing (``peak``). Each is necessary for a plan of the replay.

    Parameters
    ----------
    lengths
        Tokens of a request, the cached prefix included.
    chunks
        Number of chunks of a request, whose sizes differ by a quantum at most, the larger ones first.
    latency_s
        Most seconds of the objective of time (the mean latency for max_tokens), by tokens.
    form
        "cpsat" or "milp"; the engine must be one for that kind of model.
    limits
        Of each run; what an engine does not refute in time is not refuted.
    step_s
        First step of the delays, see ``peak``.
    group
        Chunks that share a delay, see ``peak``; default a quarter of a wave.
    halvings
        Times that the step is halved where a length is not refuted.

    Raises
    ------
    InputError
        As ``peak.peak_problem``, and for lengths with fewer quanta than chunks.
    """
    refuted: dict[int, str] = {}
    wanted = instance.batches if batches is None else batches
    scope = (
        f"chunked schedule, given layers, batch {min(wanted)}-{max(wanted)}, {chunks} equal chunks, any placement, any "
        f"spill, any delays"
    )
    for tokens in sorted(set(lengths), reverse=True):
        longer = instance.with_tokens(tokens)
        sizes = equal_sizes(longer, chunks)
        reasons = []
        shared = -(-chunks // GROUPS) if group is None else group
        for batch in wanted:
            reason = _unfit(longer, batch, sizes)
            if reason is None:
                problem = peak_problem(longer, batch, sizes, latency_s(tokens), step_s, shared)
                reason = _overflow(problem, batch, latency_s(tokens), FORMS[form], engine, limits, halvings)
            if reason is None:
                return LengthBound(tokens, refuted, scope)
            reasons.append(reason)
        refuted[tokens] = "; ".join(dict.fromkeys(reasons))
    return LengthBound(None, refuted, scope)


def equal_sizes(instance: Instance, chunks: int) -> tuple[int, ...]:
    """Chunks of equal size up to one quantum, the larger ones first.

    Raises
    ------
    InputError
        For requests with fewer quanta than chunks.
    """
    grid = Grid.of(instance, instance.workload.shapes[0])
    if not 1 <= chunks <= grid.quanta:
        raise InputError("chunks", chunks, f"between 1 and the {grid.quanta} quanta of a request")
    return grid.equal_sizes(chunks)


def _unfit(instance: Instance, batch: int, sizes: tuple[int, ...]) -> str | None:
    """Why no memory admits these chunks, whatever the budget; None if some may."""
    for shape, size in instance.workload.gathered(batch).kinds:
        admitted, reason = admissible_chunk_tokens(instance, size, shape)
        if reason is not None or admitted < max(sizes):
            return reason or f"memory admits chunks of at most {admitted} tokens at batch {batch}, not {max(sizes)}"
    return None


def _overflow(
    problem: PeakProblem,
    batch: int,
    latency_s: float,
    twin: ModuleType,
    engine: Engine,
    limits: EngineLimits,
    halvings: int,
) -> str | None:
    """Why no plan with this batch and these chunks keeps the budget; None if that is not proved."""
    if problem.budget_ps < 0:
        return f"no plan of batch {batch} is as fast as {latency_s:.6g} s, whatever memory there is"
    if not problem.kv_time_fits:
        return f"KV times its time in memory exceeds all memory until the end, at batch {batch}"
    for halving in range(halvings + 1):
        finer = replace(problem, step_ps=max(1, problem.step_ps >> halving))
        if engine(twin.build(finer).model, limits).status == "infeasible":
            return f"all memory together overflows at some moment, whatever waits within the budget, at batch {batch}"
    return None
