"""CP-SAT's statuses, and the traps that its backend settles."""

from __future__ import annotations

import threading

import pytest
from ortools.sat.python import cp_model

from formulations.interface import EngineLimits, EngineOutcome, NoValuesError
from instances.errors import InputError
from solver.backends.cpsat import STATUS, known_status, solve_cpsat
from solver.backends.outcome import UnknownNativeStatusError, proved_or_gap
from tests.solver.backends.engine_models import hard_cpsat, interrupt_after

LIMITS = EngineLimits(time_s=60.0)


def test_every_native_status_is_mapped() -> None:
    assert set(STATUS) == set(cp_model.CpSolverStatus.__members__)


def test_unknown_native_status_is_an_error() -> None:
    with pytest.raises(UnknownNativeStatusError, match="'SPLENDID'"):
        known_status("SPLENDID")


def test_optimal_minimum_and_maximum() -> None:
    # 3x + 5 over 2 <= x <= 9.
    for sense, expected in (("minimise", 11.0), ("maximise", 32.0)):
        model = cp_model.CpModel()
        x = model.new_int_var(2, 9, "x")
        _ = model.minimize(3 * x + 5) if sense == "minimise" else model.maximize(3 * x + 5)
        outcome = solve_cpsat(model, LIMITS)
        assert (outcome.status, outcome.stop_reason, outcome.native_status) == ("optimal", "proved", "OPTIMAL")
        assert (outcome.value, outcome.bound) == (expected, expected)
        assert outcome.value_of(x) == (expected - 5) / 3
        assert outcome.value_of(2 * x - 1) == 2 * (expected - 5) / 3 - 1


def test_without_objective_there_is_neither_value_nor_bound() -> None:
    model = cp_model.CpModel()
    x = model.new_bool_var("x")
    model.add(x == 1)
    outcome = solve_cpsat(model, LIMITS)
    assert (outcome.status, outcome.value, outcome.bound) == ("optimal", None, None)
    assert outcome.value_of(x) == 1


def test_infeasible_has_no_numbers() -> None:
    # The engine itself says objective 0.0, bound 0.0, x = 0.
    model = cp_model.CpModel()
    x = model.new_int_var(5, 9, "x")
    model.add(x <= 4)
    model.minimize(x)
    outcome = solve_cpsat(model, LIMITS)
    assert (outcome.status, outcome.stop_reason) == ("infeasible", "proved")
    assert (outcome.value, outcome.bound, outcome.has_values) == (None, None, False)
    with pytest.raises(NoValuesError, match="INFEASIBLE"):
        outcome.value_of(x)


def test_limit_with_a_solution_is_feasible_and_repeats() -> None:
    limits = EngineLimits(time_s=0.3, deterministic=True)
    outcome, again = (solve_cpsat(hard_cpsat(), limits) for _ in range(2))
    assert (outcome.status, outcome.stop_reason, outcome.native_status) == ("feasible", "time_limit", "FEASIBLE")
    assert outcome.value is not None
    assert outcome.bound is not None
    assert outcome.bound < outcome.value
    assert (outcome.value, outcome.bound) == (again.value, again.bound)


def test_limit_without_a_solution_is_unknown() -> None:
    outcome = solve_cpsat(hard_cpsat(), EngineLimits(time_s=0.0))
    assert (outcome.status, outcome.stop_reason, outcome.native_status) == ("unknown", "time_limit", "UNKNOWN")
    # The engine itself says 0.0 for both.
    assert (outcome.value, outcome.bound) == (None, None)


def test_gap_limit_is_no_proof() -> None:
    # The distance is small against the constant, so a gap of 20 % is soon reached; the engine says OPTIMAL.
    limits = EngineLimits(time_s=60.0, deterministic=True, relative_gap=0.2)
    outcome = solve_cpsat(hard_cpsat(constant=10_000), limits)
    assert outcome.native_status == "OPTIMAL"
    assert (outcome.status, outcome.stop_reason) == ("feasible", "gap")
    assert outcome.value != outcome.bound


def test_invalid_model_says_why() -> None:
    model = cp_model.CpModel()
    x, y = (model.new_int_var(0, 2**62 - 1, name) for name in "xy")
    model.add(3 * x + y == 7)
    outcome = solve_cpsat(model, LIMITS)
    assert (outcome.status, outcome.stop_reason, outcome.native_status) == ("unknown", "error", "MODEL_INVALID")
    assert "overflow" in outcome.message


def test_interrupt_keeps_the_best_solution() -> None:
    model = hard_cpsat()
    with interrupt_after(3.0):  # on a busy machine the engine needs a while to start, and only it keeps what it has
        outcome = solve_cpsat(model, EngineLimits(time_s=600.0))
    assert (outcome.status, outcome.stop_reason) == ("feasible", "interrupted")
    assert outcome.value is not None


def test_runs_outside_the_main_thread() -> None:
    found: list[EngineOutcome] = []
    model = cp_model.CpModel()
    model.minimize(model.new_int_var(2, 9, "x"))
    thread = threading.Thread(target=lambda: found.append(solve_cpsat(model, LIMITS)))
    thread.start()
    thread.join()
    assert found[0].value == 2.0


def test_float_objective_is_refused() -> None:
    model = cp_model.CpModel()
    model.minimize(0.5 * model.new_bool_var("x"))
    with pytest.raises(InputError, match="integer coefficients"):
        solve_cpsat(model, LIMITS)


def test_enforced_rows_that_overflow_presolve_are_refused() -> None:
    model = cp_model.CpModel()
    x, y, z = (model.new_bool_var(name) for name in "xyz")
    model.add(2**30 * x + 2**30 * y <= 2**30).only_enforce_if(z)
    with pytest.raises(InputError, match="larger tick"):
        solve_cpsat(model, LIMITS)


def test_assumptions_that_cannot_hold_together_are_named() -> None:
    # With a, x; with b, not x; c is free.
    model = cp_model.CpModel()
    a, b, c, x = (model.new_bool_var(name) for name in ("a", "b", "c", "x"))
    model.add_bool_or([~a, x])
    model.add_bool_or([~b, ~x])
    model.add_bool_or([~c, x])
    model.add_assumptions([a, b])
    outcome = solve_cpsat(model, LIMITS)
    assert (outcome.status, outcome.stop_reason, outcome.core) == ("infeasible", "proved", ("a", "b"))
    model.clear_assumptions()
    model.add_assumptions([a, c])
    assert solve_cpsat(model, LIMITS).core == ()


def test_wide_rows_without_enforcement_are_solved() -> None:
    # 2^30 (x + 3y) <= 5 * 2^30: of x + y at most 3 + 0 or 2 + 1 fit; both sum to 3.
    model = cp_model.CpModel()
    x, y = (model.new_int_var(0, 3, name) for name in "xy")
    model.add(2**30 * x + 3 * 2**30 * y <= 5 * 2**30)
    model.maximize(x + y)
    assert solve_cpsat(model, LIMITS).value == 3.0


def test_enforced_rows_are_solved() -> None:
    # z asks for x >= 7 and pays 5; without it x = 0: 7 - 5 = 2 against 0.
    model = cp_model.CpModel()
    x = model.new_int_var(0, 9, "x")
    z = model.new_bool_var("z")
    model.add(x >= 7).only_enforce_if(z)
    model.minimize(x - 5 * z)
    assert solve_cpsat(model, LIMITS).value == 0.0
    model.minimize(x - 9 * z)
    assert solve_cpsat(model, LIMITS).value == -2.0


@pytest.mark.parametrize(
    ("value", "bound", "expected"),
    [
        (10.0, 10.0, ("optimal", "proved")),
        (10.0, 9.0, ("feasible", "gap")),
        (1e9, 1e9 - 1e-3, ("optimal", "proved")),
        (None, None, ("optimal", "proved")),
    ],
)
def test_proof_needs_equal_numbers(value: float | None, bound: float | None, expected: tuple[str, str]) -> None:
    assert proved_or_gap(value, bound) == expected
