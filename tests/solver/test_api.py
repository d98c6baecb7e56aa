"""``solve``: statuses, limits, interruptions, and that nothing unchecked comes out."""

import json
from pathlib import Path

import pytest

from formulations.interface import relative_gap
from instances.check import check
from instances.errors import InputError
from instances.plan import Plan
from solver.api import solve
from solver.evaluate import Evaluator
from solver.incumbent import Incumbent
from solver.limits import Limits
from solver.replaying import simulate
from solver.result import Result
from solver.search import Search
from tests.builders import small_document, small_instance, small_plan
from tests.solver.cli.running import waferplan
from tests.tiny import line

QUICK = Limits(time_s=10)


def test_result_stands_alone_and_replays(tmp_path: Path) -> None:
    instance = small_instance()
    result = solve(instance, limits=QUICK)
    assert result.plan is not None
    assert all(finding.ok for finding in check(instance, result.plan))
    again = Evaluator(instance).full(result.plan)
    assert again.value == result.objective.value
    assert again.metrics == result.metrics
    path = tmp_path / "result.json"
    result.save(path)
    loaded = Result.load(path)
    assert loaded == result
    assert type(instance).read(loaded.instance).fingerprint == instance.fingerprint
    assert Plan.load(path) == result.plan


def test_exact_is_never_worse_than_the_heuristics() -> None:
    instance = small_instance()
    result = solve(instance, limits=QUICK)
    assert result.objective.value is not None
    assert {row.method for row in result.compared} >= {"gpipe", "terapipe", "cpp", "mocap"}
    for row in result.compared:
        assert row.value is not None
        assert result.objective.value <= row.value


def test_values_never_beat_the_bound() -> None:
    instance = small_instance()
    for method in ("exact", "mocap", "terapipe", "gpipe", "cpp"):
        objective = solve(instance, method, limits=QUICK).objective
        assert objective.value is not None
        assert objective.bound is not None
        assert objective.trivial_bound is not None
        assert objective.trivial_bound <= objective.bound <= objective.value
        assert objective.gap == relative_gap(objective.value, objective.bound)


def test_fixed_number_of_chunks_is_kept_and_in_the_scope() -> None:
    result = solve(small_instance(), chunks=3, limits=QUICK)
    assert result.plan is not None
    assert len(result.plan.chunk_sizes(2048)) == 3
    scope = result.objective.bound_scope
    assert scope is not None
    assert scope.chunks == (3, 3)
    assert scope.contains(result.plan)
    assert not scope.contains(small_plan(small_instance()))


@pytest.mark.parametrize("chunks", [0, -1, 9])
def test_impossible_number_of_chunks(chunks: int) -> None:
    with pytest.raises(InputError, match="from 1 to 8"):
        solve(small_instance(), chunks=chunks)


def test_unknown_method_and_knob() -> None:
    with pytest.raises(InputError, match="one of exact, "):
        solve(small_instance(), "exactly")
    with pytest.raises(InputError, match="slicing"):
        solve(small_instance(), "terapipe", knobs={"slices": "dp"})
    with pytest.raises(InputError, match="dp, uniform, both"):
        solve(small_instance(), "terapipe", knobs={"slicing": "some"})
    with pytest.raises(InputError, match="at least 0"):
        solve(small_instance(), "mocap", knobs={"iterations": -1})
    with pytest.raises(InputError, match="whole number"):
        solve(small_instance(), "mocap", knobs={"iterations": "many"})


def test_weights_that_fit_nowhere_are_proved_infeasible() -> None:
    result = solve(small_instance(hardware__die__hbm_bytes="10 kB"), limits=QUICK)
    assert (result.status, result.stop_reason) == ("infeasible", "proved")
    assert result.plan is None
    assert result.objective.value is None
    assert result.objective.bound is None
    assert result.reason is not None
    assert result.reason.startswith("capacity_at_rest")


def test_a_die_too_small_for_any_stage_where_all_are_needed_is_proved_infeasible(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    document = small_document(hardware__dies=[{"at": [0, 1], "hbm_bytes": "50 kB"}])
    path.write_text(json.dumps(document), encoding="utf-8")
    outcome = waferplan("solve", path, "--json")
    assert (outcome.code, outcome.json["status"], outcome.json["stop_reason"]) == (1, "infeasible", "proved")
    assert outcome.json["reason"].startswith("capacity_at_rest: 4 of the stages")


def test_no_time_is_still_an_answer_or_an_honest_unknown() -> None:
    result = solve(small_instance(), limits=Limits(time_s=0.0))
    assert result.status in ("feasible", "optimal", "unknown")
    assert (result.plan is None) == (result.objective.value is None)


def test_interruption_keeps_the_best_plan() -> None:
    offers = 0

    def interrupt(incumbent: Incumbent) -> None:
        nonlocal offers
        if incumbent.plan is not None:
            offers += 1
            raise KeyboardInterrupt

    result = solve(small_instance(), limits=QUICK, listener=interrupt)
    assert offers == 1
    assert result.stop_reason == "interrupted"
    assert result.plan is not None
    assert result.objective.value is not None


def test_interruption_while_the_simulator_is_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solver.api.warm_up", interrupt)
    result = solve(small_instance(), limits=QUICK)
    assert (result.status, result.stop_reason, result.plan) == ("unknown", "interrupted", None)
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small_document()), encoding="utf-8")
    outcome = waferplan("solve", path, "--json")
    assert (outcome.code, outcome.err) == (130, "")
    assert outcome.json["stop_reason"] == "interrupted"


def test_same_seed_same_plan() -> None:
    limits = Limits(time_s=None, deterministic=True)
    first, second = (solve(small_instance(), seed=5, limits=limits) for _ in range(2))
    assert first.plan == second.plan
    assert first.objective == second.objective
    assert [row.value for row in first.compared] == [row.value for row in second.compared]


def test_result_json_has_null_for_unknown() -> None:
    result = solve(small_instance(hardware__die__hbm_bytes="10 kB"), limits=QUICK)
    data = json.loads(result.to_json())
    assert data["objective"]["value"] is None
    assert data["objective"]["gap"] is None
    assert data["plan"] is None


def test_a_fixed_number_of_chunks_is_kept_where_one_chunk_would_be_faster() -> None:
    """An overhead of a second a chunk: GPipe's single chunk wins, but three are asked for."""
    instance = small_instance(hardware__die__chunk_overhead_s="1 s")
    objective = solve(instance, chunks=3, limits=QUICK).objective
    assert objective.value is not None
    assert objective.bound is not None
    assert objective.bound <= objective.value
    assert solve(instance, "gpipe", chunks=3, limits=QUICK).plan is None


@pytest.mark.parametrize("objective", ["makespan", "p95_latency"])
def test_shapes_that_the_objective_does_not_count_are_cut_too(objective: str) -> None:
    trace = [{"arrival_s": 0.0, "tokens": 1024}, {"arrival_s": 100.0, "tokens": 2048}]
    result = solve(small_instance(workload={"trace": trace}, objective=objective), limits=QUICK)
    assert result.plan is not None
    assert set(result.plan.chunks) == {"1024", "2048"}


@pytest.mark.parametrize("method", ["exact", "mocap", "cpp"])
def test_simulate_gives_the_metrics_of_the_result(method: str) -> None:
    trace = [{"arrival_s": 0.5, "tokens": 1024, "cached_tokens": 256}, {"arrival_s": 0.0, "tokens": 2048}]
    for instance in (small_instance(), small_instance(workload={"trace": trace})):
        result = solve(instance, method, limits=QUICK)
        assert result.plan is not None
        replayed = simulate(instance, result.plan)
        assert result.metrics is not None
        assert replayed.metrics == result.metrics
        assert replayed.mean_latency_s == result.metrics.mean_latency_s


def test_a_deadlock_has_no_metrics() -> None:
    instance = small_instance(hardware__die__hbm_bytes="800 kB")
    replayed = simulate(instance, small_plan(instance))
    assert replayed.deadlock
    assert replayed.metrics is None


def test_without_a_plan_the_best_failed_one_says_what_it_broke() -> None:
    result = solve(small_instance(hardware__die__hbm_bytes="400 kB"), "cpp", limits=QUICK)
    assert (result.status, result.plan, result.metrics) == ("unknown", None, None)
    (finding,) = result.violations
    assert (finding.rule, finding.ok, finding.unit) == ("deadlock", False, "bytes")
    # A chunk of 256 tokens takes 32768 bytes of KV a stage; stage 0 lacks all but a part of them.
    assert 0 < finding.amount <= 32768
    assert "stage 0" in finding.where
    assert result.reason == f"deadlock: {finding.where}"


def test_a_value_below_the_bound_is_an_error_and_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prove = Search.prove

    def wrong(search: Search, time_s: float) -> None:
        prove(search, time_s)
        search.incumbent.raise_bound(1.0)

    monkeypatch.setattr(Search, "prove", wrong)
    result = solve(small_instance(), "cpp", limits=QUICK)
    assert (result.status, result.stop_reason) == ("feasible", "error")
    assert result.plan is not None
    assert result.objective.value is not None
    assert result.objective.gap is not None
    assert result.objective.gap < 0
    assert result.reason is not None
    assert "below the proved bound, 1.0 s" in result.reason
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small_document()), encoding="utf-8")
    people = waferplan("solve", path, "--method", "cpp").out
    assert "below the proved bound" in " ".join(people.split())


def test_parts_of_a_deadline_tell_when_they_are_over() -> None:
    deadline = Limits(time_s=100.0).start()
    part = deadline.part(0.5, 0.0)
    assert not deadline.cuts
    assert part.over
    assert deadline.cuts
    assert not deadline.over


def test_a_part_that_its_share_of_the_time_cut_short_is_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small_instance(hardware__die__hbm_bytes="500 kB", pipeline__max_batch=1)
    whole = solve(instance, limits=Limits(time_s=None))
    assert whole.objective.gap is not None
    assert whole.objective.gap > 1e-4
    assert whole.stop_reason == "iterations"
    monkeypatch.setattr("solver.exact.compare.MOST_S", 0.0)
    assert solve(instance, limits=Limits(time_s=100)).stop_reason == "time_limit"


def test_a_cached_prefix_that_fits_nowhere_is_proved_infeasible() -> None:
    # Weights 28, workspace 5, and at home the KV of 3 cached tokens and of one more: 28 + 5 + 2 * 4 = 41 bytes.
    workload = {"requests": 1, "tokens": 7, "cached_tokens": 3}
    host = {"host_bytes": 100, "host_bytes_per_s": 1000}
    for size, infeasible in ((40, True), (41, False)):
        die = {"hbm_bytes": size}
        instance = line((1,), hardware={"die": die, "host": host}, workload=workload, pipeline={"max_chunks": 4})
        result = solve(instance, limits=QUICK)
        assert (result.status == "infeasible") == infeasible
        if infeasible:
            assert result.reason is not None
            assert result.reason.startswith("memory_admission")


def test_what_was_asked_is_kept_to_repeat_it() -> None:
    result = solve(small_instance(), "mocap", chunks=4, knobs={"batch": "best"}, limits=Limits(time_s=5))
    assert result.asked == {"chunks": 4, "knobs": {"batch": "best"}}
    assert "asked" not in solve(small_instance(), "cpp", limits=Limits(time_s=5)).to_json()
