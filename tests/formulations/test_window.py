"""The window on chunks in flight: places in the pipeline that chunks queue for."""

from __future__ import annotations

from typing import Any

import pytest

from formulations import window
from formulations.bounds import TimeBounds
from formulations.tables import StageTables, Table
from instances.instance import Instance
from solver.evaluate import Evaluator
from tests.brute_force import every_plan
from tests.tiny import line

FITTED = {"chunk_s": 0.6, "token_s": 0.2, "pair_s": 0.05}


def _instance(places: int, **changes: Any) -> Instance:
    found = line([1, 1], fitted=FITTED, **changes)
    return found.with_pipeline(max_in_flight=places)


def _bound_and_best(instance: Instance) -> tuple[float, float]:
    evaluator, tables = Evaluator(instance), StageTables(instance)
    values = [evaluator.value(plan) for plan in every_plan(instance) if plan.batch == 1]
    bound = TimeBounds(instance, tables).batch(1).bound_s
    assert bound is not None
    return bound, min(value for value in values if value is not None)


@pytest.mark.parametrize(("objective", "waves"), [("makespan", 3.0), ("mean_latency", 2.0)])
def test_with_one_place_chunks_pass_one_after_the_other(objective: str, waves: float) -> None:
    # One chunk of 4 tokens: 0.6 + 0.2*4 + 0.05*16 = 2.2 s over both stages, and the transfer between them. Three
    # requests, one after the other: the last ends after 3 of them, the mean request after (1+2+3)/3 = 2.
    instance = _instance(1, workload={"requests": 3, "tokens": 4}, objective=objective)
    bound, best = _bound_and_best(instance)
    hop = float(StageTables(instance).transfer(1, (4, 0))[0, 4])
    assert best == pytest.approx(waves * (2.2 + hop), rel=1e-9)
    assert bound == pytest.approx(best, rel=1e-9)
    assert bound <= best


def test_a_wide_window_changes_nothing() -> None:
    workload = {"requests": 3, "tokens": 4}
    wide, none = _instance(100, workload=workload), line([1, 1], fitted=FITTED, workload=workload)
    assert _bound_and_best(wide) == _bound_and_best(none)


def test_the_window_binds_where_one_place_is_missing() -> None:
    workload = {"requests": 4, "tokens": 6}
    narrow, none = (
        TimeBounds(found, StageTables(found)).batch(1).bound_s
        for found in (_instance(1, workload=workload), line([1, 1], fitted=FITTED, workload=workload))
    )
    assert narrow is not None
    assert none is not None
    assert narrow > 1.3 * none


def test_a_transit_one_percent_too_long_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = window.transit

    def wrong(*arguments: Any) -> Table:
        return right(*arguments) * 1.01

    instance = _instance(1, workload={"requests": 3, "tokens": 4})
    monkeypatch.setattr(window, "transit", wrong)
    bound, best = _bound_and_best(instance)
    assert bound > best
