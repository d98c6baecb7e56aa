"""Runs CP-SAT: the only place that calls it and reads its status.

What the engine gets wrong, or says in a way that misleads, is settled here (versions up to 9.15):

- objective and bound read 0.0 on UNKNOWN and INFEASIBLE: they are read only where the status allows, and between
  solutions the bound comes from the callback alone;
- presolve can overflow on enforced rows whose coefficients sum past 2^31 and then certifies a wrong optimum
  (google/or-tools#5293): such rows are refused, and where there are enforced rows at all, or other rows as wide that
  presolve could enforce, `presolve_inclusion_work_limit` is 0 (elsewhere that would only cost a factor of three);
- float objectives are scaled inside: only integer objectives are admitted, and the value is recomputed;
- Ctrl-C: the engine's own handler swallows it (main thread) or aborts the process (other threads), so it is off; the
  search runs in a thread of its own and the main thread asks it to stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

from ortools.sat.python import cp_model

from formulations.interface import EngineLimits, EngineOutcome, Status, StopReason
from instances.errors import InputError
from solver.backends.outcome import UnknownNativeStatusError, proved_or_gap

ROW_LIMIT = 2**31
POLL_S = 0.1

# Native name -> what is known. The stop reason follows from why the search ended.
STATUS: dict[str, Status] = {
    "OPTIMAL": "optimal",
    "FEASIBLE": "feasible",
    "INFEASIBLE": "infeasible",
    "UNKNOWN": "unknown",
    "MODEL_INVALID": "unknown",
}


def solve_cpsat(model: cp_model.CpModel, limits: EngineLimits) -> EngineOutcome:
    """Run CP-SAT on `model`; hints are part of the model (`add_hint`).

    A keyboard interrupt ends the search and is reported as stop_reason "interrupted", with the best solution so far.

    Raises
    ------
    InputError
        For a floating-point objective and for enforced rows that could overflow.
    UnknownNativeStatusError
        If the engine returns a status this module does not know.
    """
    started = time.perf_counter()
    objective = _IntegerObjective(model)
    careful = _needs_careful_presolve(model)
    invalid = model.validate()
    if invalid:
        return _outcome("MODEL_INVALID", "error", started, message=invalid)
    solver = _configured(limits, careful)
    bounds: list[float] = []
    solver.best_bound_callback = bounds.append
    native, interrupted = _run(solver, model)
    status = known_status(native)
    if status == "infeasible":
        names = [model.proto.variables[index].name for index in solver.sufficient_assumptions_for_infeasibility()]
        return _outcome(native, "proved", started, core=tuple(names))
    if native == "MODEL_INVALID":
        return _outcome(native, "error", started, message=solver.solution_info())
    stop_reason = _why_stopped(interrupted, limits)
    if status == "unknown":
        return _outcome(native, stop_reason, started, bound=objective.tightest(bounds))
    value = objective.value(solver)
    bound = objective.bound(solver.best_objective_bound) if status == "optimal" else objective.tightest(bounds)
    if status == "optimal":
        status, stop_reason = proved_or_gap(value, bound)
    return _outcome(native, stop_reason, started, status=status, value=value, bound=bound, read=solver.value)


def known_status(native: str) -> Status:
    """Status of a native name; an unknown name is an error, never a guess."""
    if native not in STATUS:
        raise UnknownNativeStatusError("CP-SAT", native)
    return STATUS[native]


def _outcome(
    native: str,
    stop_reason: StopReason,
    started: float,
    *,
    status: Status | None = None,
    value: float | None = None,
    bound: float | None = None,
    message: str = "",
    core: tuple[str, ...] = (),
    read: Callable[[Any], float] | None = None,
) -> EngineOutcome:
    return EngineOutcome(
        status=STATUS[native] if status is None else status,
        stop_reason=stop_reason,
        value=value,
        bound=bound,
        native_status=native,
        engine="CP-SAT",
        version=version("ortools"),
        runtime_s=time.perf_counter() - started,
        message=message,
        core=core,
        read=read,
    )


def _configured(limits: EngineLimits, careful: bool) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1 if limits.deterministic else limits.workers
    parameters.random_seed = limits.seed
    if careful:
        parameters.presolve_inclusion_work_limit = 0
    parameters.catch_sigint_signal = False
    parameters.relative_gap_limit = limits.relative_gap
    if limits.time_s is not None and limits.deterministic:
        parameters.max_deterministic_time = limits.time_s
    elif limits.time_s is not None:
        parameters.max_time_in_seconds = limits.time_s
    return solver


def _run(solver: cp_model.CpSolver, model: cp_model.CpModel) -> tuple[str, bool]:
    """Search in a thread and wait: native status, and whether a keyboard interrupt ended the search."""
    interrupted = False
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="cp-sat") as pool:
        search = pool.submit(solver.solve, model)
        while not search.done():
            try:
                if interrupted:
                    # Asked again and again: a request that comes before the search has begun is lost.
                    solver.stop_search()
                _wait(search)
            except KeyboardInterrupt:
                interrupted = True
    return search.result().name, interrupted


def _wait(search: Future[Any]) -> None:
    try:
        search.exception(timeout=POLL_S)
    except TimeoutError:
        return


def _why_stopped(interrupted: bool, limits: EngineLimits) -> StopReason:
    if interrupted:
        return "interrupted"
    return "error" if limits.time_s is None else "time_limit"


class _IntegerObjective:
    """The model's objective, read from the model itself so that value and bound come out as whole numbers."""

    def __init__(self, model: cp_model.CpModel) -> None:
        if model.proto.has_floating_point_objective():
            raise InputError("objective", "floating-point coefficients", "integer coefficients (state a tick)")
        self.present = model.proto.has_objective()
        objective = model.proto.objective
        scale = objective.scaling_factor if self.present else 0.0
        self.maximised = scale < 0
        self._scale = int(scale) if scale else 1
        self._offset = objective.offset if self.present else 0.0
        self._terms = list(zip(objective.vars, objective.coeffs, strict=True)) if self.present else []

    def value(self, solver: cp_model.CpSolver) -> float | None:
        if not self.present:
            return None
        solution = solver.response_proto.solution
        total = sum(
            coefficient * (solution[variable] if variable >= 0 else -solution[-variable - 1])
            for variable, coefficient in self._terms
        )
        return float(self._scale * (total + self._offset))

    def bound(self, native: float) -> float | None:
        """The native bound, moved to the whole number it stands for."""
        if not self.present:
            return None
        return float(round(native)) if abs(native - round(native)) < 1e-6 else float(native)

    def tightest(self, bounds: list[float]) -> float | None:
        """The best of the bounds that the callback delivered; None if there was none."""
        if not bounds:
            return None
        return self.bound(min(bounds) if self.maximised else max(bounds))


def _needs_careful_presolve(model: cp_model.CpModel) -> bool:
    """True if any row is enforced or wide; an InputError if one is both."""
    careful = False
    for number, constraint in enumerate(model.proto.constraints):
        if not constraint.has_linear():
            continue
        enforced = len(constraint.enforcement_literal) > 0
        wide = sum(map(abs, constraint.linear.coeffs)) >= ROW_LIMIT
        if enforced and wide:
            name = constraint.name or f"number {number}"
            raise InputError(
                "model",
                f"enforced row {name}",
                f"coefficients whose sizes sum to less than {ROW_LIMIT}: use a larger tick",
            )
        careful = careful or enforced or wide
    return careful
