"""``solve``: one call from an instance to a checked, replayed, bounded result."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Mapping
from typing import Any

from formulations.interface import relative_gap
from formulations.scope import plain_scope, scope_of
from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Plan
from solver.incumbent import Listener
from solver.limits import Limits
from solver.methods import find_method
from solver.result import Engine, ObjectiveValue, Result, Status, StopReason
from solver.search import Search
from solver.size_limits import refuse_too_fine
from solver.starved import QUICK_S, WORTH, without_window
from solver.warmup import warm_up

PROOF_SHARE = 0.3
"""Share of the time limit that goes to the bounds at most."""
DEFAULT_PROOF_S = 60.0
OPTIMAL_GAP = 1e-4
"""At most this counts as optimal (spec section 4)."""
BOUND_TOLERANCE = 1e-9
"""Relative rounding of sums of durations, by which a value may lie below its bound."""


def solve(
    instance: Instance,
    method: str = "exact",
    *,
    limits: Limits | None = None,
    seed: int = 0,
    chunks: int | None = None,
    knobs: Mapping[str, object] | None = None,
    listener: Listener | None = None,
    note: Callable[[str], None] | None = None,
) -> Result:
    """Plan, prove, replay.

    Parameters
    ----------
    method
        A name from ``METHODS``.
    limits
        Time, gap, workers; 60 seconds unless given.
    chunks
        Fixed number of chunks, or None: the method chooses.
    knobs
        Parameters of the method by name.
    listener, note
        Called at each improvement, and with a line at the start of each part of the work.

    Returns
    -------
    Result
        The plan is checked and replayed, its value is the replay's. An interruption (Ctrl-C) gives the best plan so far
        with ``stop_reason`` interrupted.

    Raises
    ------
    InputError
        For an unknown method or knob, a number of chunks that the instance does not admit, more quanta than there is
        room for, and times or bytes that do not fit the replay's integers.
    """
    chosen = find_method(method)
    settings = chosen.settings(knobs or {})
    check_chunks(instance, chunks)
    if instance.objective == "max_tokens":
        raise InputError("objective", "max_tokens", "mean_latency, makespan or p95_latency: these can be solved for")
    refuse_too_fine(instance)
    limits = limits or Limits()
    note = note or (lambda line: None)
    deadline = limits.start()
    search = Search.begin(
        instance,
        limits,
        deadline=deadline,
        scope=scope_of(instance, chosen.covers(settings), chunks),
        listener=listener,
        chunks=chunks,
        knobs=settings,
        seed=seed,
        note=note,
    )
    interrupted, answer = False, None
    try:
        note("loading the compiled simulator (the first time after an installation it is compiled, about 10 s)")
        warm_up()
        deadline.restart()
        if not chosen.serves:
            search.note("bounds")
            search.prove(DEFAULT_PROOF_S if limits.time_s is None else PROOF_SHARE * limits.time_s)
        if search.infeasible_reason is None:
            answer = chosen.run(search)
    except KeyboardInterrupt:
        interrupted = True
    asked: dict[str, Any] = {"chunks": chunks} if chunks is not None else {}
    asked |= {"knobs": {name: settings[name] for name in knobs}} if knobs else {}
    return _result(search, method, asked, answer or search.incumbent.plan, interrupted)


def _result(search: Search, method: str, asked: dict[str, Any], plan: Plan | None, interrupted: bool) -> Result:
    """Check and replay the answer once more, and say what is known."""
    instance, incumbent, served = search.instance, search.incumbent, search.served
    final = None if plan is None else search.evaluator.full(plan)
    value = None if final is None else final.value
    if served is not None:
        value = served.value
    bound, scope = incumbent.bound, incumbent.scope or plain_scope(instance, search.chunks)
    # A method may answer with a plan of its own that the bound says nothing about.
    comparable = bound if plan is None or scope.contains(plan) else None
    status, stop = _status(search, value, comparable, interrupted)
    reason = search.infeasible_reason
    failure = final if final is not None or reason is not None else search.nearest_failure()
    if reason is None and value is None:
        reason = search.unserved
    if reason is None and value is None:
        reason = failure.reason if failure is not None else search.why_not()
    if plan is not None and value is not None and search.evaluator.replay_s(plan) <= QUICK_S:
        free_s = without_window(instance, plan)
        if free_s is not None and free_s < value * (1 - WORTH):
            search.details["without_window_s"] = free_s
    if value is not None and _beats(value, comparable):
        reason = f"the plan's value, {value!r} s, is below the proved bound, {bound!r} s: one of them is wrong"
    return Result(
        instance=instance.canonical(),
        fingerprint=instance.fingerprint,
        method=method,
        status=status,
        stop_reason=stop,
        objective=ObjectiveValue(
            name=instance.objective,
            value=value,
            bound=bound,
            gap=relative_gap(value, comparable),
            bound_scope=None if bound is None else scope,
            trivial_bound=search.trivial_bound,
        ),
        plan=None if value is None else plan,
        program=None if served is None else served.program,
        metrics=served.metrics if served is not None else None if final is None else final.metrics,
        violations=() if failure is None or served is not None else failure.violations,
        reason=reason,
        runtime_s=round(search.deadline.elapsed_s, 3),
        seed=search.seed,
        asked=asked,
        engine=Engine(
            name="waferplan",
            version=importlib.metadata.version("waferplan"),
            native_status=f"{search.evaluator.replays} replays",
        ),
        trace=tuple(incumbent.trace),
        compared=tuple(search.compared),
        details=search.details,
    )


def _status(search: Search, value: float | None, bound: float | None, interrupted: bool) -> tuple[Status, StopReason]:
    """What is known and why the search ended; ``bound`` is one that holds for the plan."""
    if search.infeasible_reason is not None:
        return "infeasible", "proved"
    gap = relative_gap(value, bound)
    if value is None:
        status: Status = "unknown"
    else:
        status = "optimal" if gap is not None and gap <= OPTIMAL_GAP else "feasible"
    if value is not None and _beats(value, bound):
        return "feasible", "error"
    if interrupted:
        return status, "interrupted"
    if gap is not None and gap <= OPTIMAL_GAP:
        return status, "proved"
    if gap is not None and gap <= search.limits.gap:
        return status, "gap"
    out_of_time = search.deadline.over or search.deadline.cuts or math.isfinite(search.incumbent.too_long_s)
    return status, "time_limit" if out_of_time else "iterations"


def _beats(value: float, bound: float | None) -> bool:
    """Whether a value is below a proved bound by more than rounding: then one of the two is wrong."""
    return bound is not None and value < bound - BOUND_TOLERANCE * max(abs(bound), abs(value), 1e-12)


def check_chunks(instance: Instance, chunks: int | None) -> None:
    """InputError for a fixed number of chunks that the instance does not admit."""
    if chunks is None:
        return
    most = instance.pipeline.max_chunks
    for tokens in instance.workload.uncached_counts:
        most = min(most, -(-tokens // instance.pipeline.chunk_quantum))
    if not 1 <= chunks <= most:
        raise InputError("chunks", chunks, f"a number from 1 to {most} (max_chunks, and one quantum for each chunk)")
