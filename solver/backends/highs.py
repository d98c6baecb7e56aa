"""Runs PuLP models with HiGHS: the only place that calls it and reads its status.

PuLP translates the model; the status, the values and the bound are read from HiGHS itself, because PuLP calls a run
"Optimal" at a time limit, keeps infeasible values, knows no best bound and fails on some statuses (coin-or/pulp#649,
#711, #895). Further traps that are settled here (highspy 1.16, PuLP 3.3):

- HiGHS stops at a relative gap of 1e-4 unless told otherwise, and calls that optimal;
- coefficients below 1e-9 are dropped, rows with huge ones are refused: such models are not sent;
- the tolerance of 1e-6 times a large coefficient admits broken solutions: integers are rounded and every row is
  checked again;
- infeasible and unbounded are told apart only if every variable has bounds (coin-or/pulp#894): unbounded ones are
  refused;
- for maximisation PuLP negates the objective, and it drops the constant, on which a relative gap depends;
- threads belong to the process: the scheduler is reset before each run (ERGO-Code/HiGHS#3141);
- the banner goes to standard output whatever is asked: the file descriptor is turned away while HiGHS starts;
- Ctrl-C is ignored by a plain run: HiGHS runs in a thread and is asked to stop.
"""

from __future__ import annotations

import time

import highspy
import numpy as np
import numpy.typing as npt
import pulp

from formulations.interface import EngineLimits, EngineOutcome, Status, StopReason
from instances.errors import InputError
from solver.backends.outcome import UnknownNativeStatusError, proved_or_gap
from solver.backends.quiet import standard_output_turned_away

Column = npt.NDArray[np.float64]

SMALLEST_COEFFICIENT = 1e-9
LARGEST_COEFFICIENT = 1e15
ROW_TOLERANCE = 1e-5
POLL_S = 0.1

_STOPPED: tuple[Status, StopReason] = ("unknown", "error")

# Native name -> (what is known without values, why the run ended). With values kOptimal is optimal, the rest feasible.
STATUS: dict[str, tuple[Status, StopReason]] = {
    "kOptimal": ("optimal", "proved"),
    "kInfeasible": ("infeasible", "proved"),
    # Every variable has bounds, so nothing is unbounded.
    "kUnboundedOrInfeasible": ("infeasible", "proved"),
    "kTimeLimit": ("unknown", "time_limit"),
    "kInterrupt": ("unknown", "interrupted"),
    "kHighsInterrupt": ("unknown", "interrupted"),
    "kObjectiveBound": ("unknown", "gap"),
    "kObjectiveTarget": ("unknown", "gap"),
    # No such limit is set here.
    "kIterationLimit": _STOPPED,
    "kSolutionLimit": _STOPPED,
    "kMemoryLimit": _STOPPED,
    "kUnbounded": _STOPPED,
    "kNotset": _STOPPED,
    "kLoadError": _STOPPED,
    "kModelError": _STOPPED,
    "kPresolveError": _STOPPED,
    "kSolveError": _STOPPED,
    "kPostsolveError": _STOPPED,
    "kModelEmpty": _STOPPED,
    "kUnknown": _STOPPED,
}


def solve_highs(problem: pulp.LpProblem, limits: EngineLimits) -> EngineOutcome:
    """Run HiGHS on a PuLP problem.

    Initial values (`variable.setInitialValue`) are the warm start. HiGHS has no deterministic clock: a deterministic
    run has one thread and keeps the wall limit, so it repeats only if it ends with a proof. A keyboard interrupt ends
    the search and is reported as stop_reason "interrupted", with the best solution so far.

    Raises
    ------
    InputError
        For a missing objective, variables without bounds, and coefficients that HiGHS would drop or refuse.
    UnknownNativeStatusError
        If the engine returns a status this module does not know.
    """
    started = time.perf_counter()
    _refuse_what_highs_would_change(problem)
    native = _translated(problem, limits)
    interrupted = _run(native)
    name = native.getModelStatus().name
    status, stop_reason = known_status(name)
    if interrupted and stop_reason == "error":
        stop_reason = "interrupted"
    sign = -1.0 if problem.sense == pulp.LpMaximize else 1.0
    bound = None if status == "infeasible" else _bound(problem, native, sign)
    values = None if status == "infeasible" else _values(problem, native)
    value, message = None, ""
    if values is not None:
        message = _broken_row(native, values)
        value = sign * (float(np.asarray(native.getLp().col_cost_) @ values) + native.getLp().offset_)
        status, stop_reason = proved_or_gap(value, bound) if status == "optimal" else ("feasible", stop_reason)
    elif status == "optimal":
        message = "optimal without a feasible solution"
    if message:
        status, stop_reason, value, values = "unknown", "error", None, None
    return EngineOutcome(
        status=status,
        stop_reason=stop_reason,
        value=value,
        bound=bound,
        native_status=name,
        engine="HiGHS",
        version=native.version(),
        runtime_s=time.perf_counter() - started,
        message=message,
        read=None if values is None else _Reader(problem, values),
    )


def known_status(native: str) -> tuple[Status, StopReason]:
    """Meaning of a native name; an unknown name is an error, never a guess."""
    if native not in STATUS:
        raise UnknownNativeStatusError("HiGHS", native)
    return STATUS[native]


class _Reader:
    """Value of a variable or an affine expression."""

    def __init__(self, problem: pulp.LpProblem, values: Column) -> None:
        self._values = {variable: float(values[variable.index]) for variable in problem.variables()}

    def __call__(self, expression: pulp.LpVariable | pulp.LpAffineExpression) -> float:
        if isinstance(expression, pulp.LpVariable):
            return self._values[expression]
        terms = sum(coefficient * self._values[variable] for variable, coefficient in expression.items())
        return float(terms + expression.constant)


def _refuse_what_highs_would_change(problem: pulp.LpProblem) -> None:
    if problem.objective is None:
        raise InputError("objective", None, "an objective, 0 for a feasibility problem")
    for variable in problem.variables():
        if variable.lowBound is None or variable.upBound is None:
            raise InputError(f"variable {variable.name}", (variable.lowBound, variable.upBound), "two finite bounds")
    for expression in (problem.objective, *problem.constraints()):
        for variable, coefficient in expression.items():
            if coefficient != 0 and not SMALLEST_COEFFICIENT <= abs(coefficient) <= LARGEST_COEFFICIENT:
                raise InputError(
                    f"{expression.name}: {variable.name}", coefficient, "0 or a magnitude between 1e-9 and 1e15"
                )


def _translated(problem: pulp.LpProblem, limits: EngineLimits) -> highspy.Highs:
    """The problem as PuLP hands it to HiGHS, with options and warm start."""
    engine = pulp.HiGHS(
        msg=False,
        gapRel=limits.relative_gap,
        threads=1 if limits.deterministic else limits.workers,
        timeLimit=limits.time_s,
        random_seed=limits.seed,
    )
    with standard_output_turned_away():
        highspy.Highs.resetGlobalScheduler(True)
        engine.createAndConfigureSolver(problem)
    engine.buildSolverModel(problem)
    native: highspy.Highs = problem.solverModel
    constant = float(problem.objective.constant)
    native.changeObjectiveOffset(-constant if problem.sense == pulp.LpMaximize else constant)
    start = [(v.index, float(v.varValue)) for v in problem.variables() if v.varValue is not None]
    if start:
        index, value = zip(*start, strict=True)
        native.setSolution(len(start), np.array(index, dtype=np.int32), np.array(value, dtype=np.float64))
    return native


def _run(native: highspy.Highs) -> bool:
    """Search in a thread and wait; True if a keyboard interrupt ended it."""
    native.HandleUserInterrupt = True
    interrupted = False
    native.startSolve()
    finished = False
    while not finished:
        try:
            if interrupted:
                native.cancelSolve()
            finished, _ = native.wait(POLL_S)
        except KeyboardInterrupt:
            interrupted = True
    return interrupted


def _values(problem: pulp.LpProblem, native: highspy.Highs) -> Column | None:
    """Column values with integers rounded; None unless HiGHS has a feasible solution."""
    if native.getInfo().primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
        return None
    values = np.array(native.getSolution().col_value, dtype=np.float64)
    whole = [variable.index for variable in problem.variables() if variable.cat == pulp.LpInteger]
    values[whole] = np.round(values[whole])
    return values


def _broken_row(native: highspy.Highs, values: Column) -> str:
    """Text about the worst row that the rounded values break, or empty."""
    problem = native.getLp()
    matrix = problem.a_matrix_
    start, index = np.asarray(matrix.start_, dtype=np.int64), np.asarray(matrix.index_, dtype=np.int64)
    outer = np.repeat(np.arange(len(start) - 1), np.diff(start))
    by_rows = matrix.format_ == highspy.MatrixFormat.kRowwise
    row, column = (outer, index) if by_rows else (index, outer)
    terms = np.asarray(matrix.value_) * values[column]
    total = np.bincount(row, weights=terms, minlength=problem.num_row_)
    size = np.maximum(1.0, np.bincount(row, weights=np.abs(terms), minlength=problem.num_row_))
    excess = np.maximum(np.asarray(problem.row_lower_) - total, total - np.asarray(problem.row_upper_)) / size
    if excess.size and excess.max() > ROW_TOLERANCE:
        return f"row {int(excess.argmax())} is broken by {excess.max():.3g} of its size after rounding"
    return ""


def _bound(problem: pulp.LpProblem, native: highspy.Highs, sign: float) -> float | None:
    if any(variable.cat == pulp.LpInteger for variable in problem.variables()):
        native_bound = native.getInfo().mip_dual_bound
    elif native.getModelStatus() == highspy.HighsModelStatus.kOptimal:
        native_bound = native.getInfo().objective_function_value
    else:
        return None
    return sign * native_bound if np.isfinite(native_bound) else None
