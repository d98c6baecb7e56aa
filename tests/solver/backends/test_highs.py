"""HiGHS's statuses, and the traps that its backend settles."""

from __future__ import annotations

import subprocess
import sys

import highspy
import pulp
import pytest

from formulations.interface import EngineLimits, NoValuesError
from instances.errors import InputError
from solver.backends.highs import STATUS, known_status, solve_highs
from solver.backends.outcome import UnknownNativeStatusError
from tests.solver.backends.engine_models import hard_milp, interrupt_after

LIMITS = EngineLimits(time_s=60.0)


def knapsack(sense: int, capacity: float) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
    """Values 6, 5, 4 and weights 5, 4, 3, and 100 on top: the best for capacity 7 is {5, 4}, worth 109."""
    problem = pulp.LpProblem("knapsack", sense)
    items = [problem.add_variable(f"item_{number}", 0, 1, cat=pulp.LpInteger) for number in range(3)]
    problem += 6 * items[0] + 5 * items[1] + 4 * items[2] + 100
    problem += 5 * items[0] + 4 * items[1] + 3 * items[2] <= capacity
    return problem, items


def test_every_native_status_is_mapped() -> None:
    assert set(STATUS) == set(highspy.HighsModelStatus.__members__)


def test_unknown_native_status_is_an_error() -> None:
    with pytest.raises(UnknownNativeStatusError, match="'kSplendid'"):
        known_status("kSplendid")


def test_maximum_with_a_constant() -> None:
    # PuLP negates the objective and drops the constant; HiGHS' own bound is -9.
    problem, items = knapsack(pulp.LpMaximize, 7)
    outcome = solve_highs(problem, LIMITS)
    assert (outcome.status, outcome.stop_reason, outcome.native_status) == ("optimal", "proved", "kOptimal")
    assert outcome.value == 109.0
    assert outcome.bound == pytest.approx(109.0)
    assert [outcome.value_of(item) for item in items] == [0, 1, 1]
    assert outcome.value_of(items[1] + 2 * items[2] - 1) == 2


def test_minimum() -> None:
    problem, _ = knapsack(pulp.LpMinimize, 7)
    outcome = solve_highs(problem, LIMITS)
    assert (outcome.value, outcome.bound) == (100.0, 100.0)


def test_linear_programme_has_its_value_as_bound() -> None:
    problem = pulp.LpProblem("line", pulp.LpMaximize)
    x = problem.add_variable("x", 0, 10)
    problem += 2 * x + 1
    problem += x <= 2.5
    outcome = solve_highs(problem, LIMITS)
    assert (outcome.status, outcome.value, outcome.bound) == ("optimal", 6.0, 6.0)


def test_infeasible_has_no_numbers() -> None:
    problem, items = knapsack(pulp.LpMaximize, -1)
    outcome = solve_highs(problem, LIMITS)
    assert (outcome.status, outcome.stop_reason) == ("infeasible", "proved")
    assert (outcome.value, outcome.bound) == (None, None)
    with pytest.raises(NoValuesError, match="kInfeasible"):
        outcome.value_of(items[0])


def test_limit_with_a_solution_is_feasible() -> None:
    # PuLP says "Optimal" here.
    outcome = solve_highs(hard_milp(), EngineLimits(time_s=1.0))
    assert (outcome.status, outcome.stop_reason, outcome.native_status) == ("feasible", "time_limit", "kTimeLimit")
    assert outcome.value is not None
    assert outcome.bound is not None
    assert outcome.bound < outcome.value


def test_limit_without_a_solution_is_unknown() -> None:
    problem = hard_milp()
    for variable in problem.variables():
        variable.varValue = None
    outcome = solve_highs(problem, EngineLimits(time_s=0.0))
    assert (outcome.status, outcome.stop_reason, outcome.native_status) == ("unknown", "time_limit", "kTimeLimit")
    assert (outcome.value, outcome.bound, outcome.has_values) == (None, None, False)


def test_warm_start_is_used() -> None:
    # Without time to search only the start can be the answer: its distance is the sum of all targets.
    problem = hard_milp()
    start = pulp.value(problem.objective)
    outcome = solve_highs(problem, EngineLimits(time_s=0.0))
    assert outcome.status == "feasible"
    assert outcome.value == pytest.approx(start)


def test_gap_limit_is_no_proof() -> None:
    problem, _ = knapsack(pulp.LpMaximize, 7)
    outcome = solve_highs(hard_milp(constant=10_000), EngineLimits(time_s=60.0, relative_gap=0.2))
    assert outcome.native_status == "kOptimal"
    assert (outcome.status, outcome.stop_reason) == ("feasible", "gap")
    # Unless asked for a gap there is none, where HiGHS' own default is 1e-4.
    assert solve_highs(problem, LIMITS).stop_reason == "proved"


def test_empty_model_is_an_error() -> None:
    problem = pulp.LpProblem("empty", pulp.LpMinimize)
    problem += pulp.LpAffineExpression()
    outcome = solve_highs(problem, LIMITS)
    assert (outcome.status, outcome.native_status) == ("unknown", "kModelEmpty")
    assert outcome.stop_reason == "error"


def test_interrupt_keeps_the_best_solution(capfd: pytest.CaptureFixture[str]) -> None:
    problem = hard_milp()
    with interrupt_after(3.0):  # on a busy machine the engine needs a while to start, and only it keeps what it has
        outcome = solve_highs(problem, EngineLimits(time_s=600.0))
    assert (outcome.status, outcome.stop_reason) == ("feasible", "interrupted")
    assert outcome.value is not None
    assert capfd.readouterr().out == ""


def test_threads_may_change_between_runs() -> None:
    # Without a reset of the scheduler the second number of threads in a process gives no status at all.
    for workers in (1, 2, 1):
        problem, _ = knapsack(pulp.LpMaximize, 7)
        assert solve_highs(problem, EngineLimits(time_s=60.0, workers=workers)).value == 109.0


def test_standard_output_stays_clean() -> None:
    script = (
        "import pulp\n"
        "from formulations.interface import EngineLimits\n"
        "from solver.backends.highs import solve_highs\n"
        "problem = pulp.LpProblem('one', pulp.LpMinimize)\n"
        "problem += problem.add_variable('x', 1, 2)\n"
        "print(solve_highs(problem, EngineLimits()).value)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "1.0\n"


@pytest.mark.parametrize("coefficient", [1e-10, 1e16])
def test_coefficients_that_highs_drops_or_refuses(coefficient: float) -> None:
    problem, items = knapsack(pulp.LpMaximize, 7)
    problem += coefficient * items[0] + items[1] <= 1
    with pytest.raises(InputError, match="1e-9"):
        solve_highs(problem, LIMITS)


def test_variables_need_bounds() -> None:
    problem = pulp.LpProblem("open", pulp.LpMinimize)
    problem += problem.add_variable("x", 0, None)
    with pytest.raises(InputError, match="variable x"):
        solve_highs(problem, LIMITS)


def test_objective_is_needed() -> None:
    problem = pulp.LpProblem("aimless", pulp.LpMinimize)
    problem += problem.add_variable("x", 0, 1) >= 1
    with pytest.raises(InputError, match="objective"):
        solve_highs(problem, LIMITS)


def test_rows_broken_by_rounding_are_an_error() -> None:
    # x = 1e-7 is "integer" for HiGHS and pays for y = 0.9 through the large coefficient; rounded to 0 it does not.
    problem = pulp.LpProblem("large", pulp.LpMaximize)
    x = problem.add_variable("x", 0, 1, cat=pulp.LpInteger)
    y = problem.add_variable("y", 0, 0.9)
    problem += y - 10 * x
    problem += y <= 9_000_000 * x
    outcome = solve_highs(problem, LIMITS)
    if outcome.status == "optimal":
        assert outcome.value == 0.0
    else:
        assert (outcome.status, outcome.stop_reason) == ("unknown", "error")
        assert "after rounding" in outcome.message
