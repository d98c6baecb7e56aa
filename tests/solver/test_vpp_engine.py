"""VPP in one order for all dies, and with senders that wait: programs, against orders and times made by hand."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Schedule
from solver.api import solve
from solver.evaluate import Evaluator
from solver.limits import Limits
from solver.policies.vpp_engine import Engine
from solver.policies.vpp_fifo import hand_off_ps, single_fifo
from solver.result import Result
from solver.simulation.program import Program
from solver.simulation.program_file import replay_document
from solver.simulation.replay import replay
from tests.solver.cli.running import waferplan
from tests.solver.simulation.test_v_shape import growing, plan_of
from tests.solver.test_vpp import v_document
from tests.tiny import line

QUICK = Limits(time_s=20)


def run(instance: Instance, method: str = "vpp-async", chunks: int | None = None, /, **knobs: object) -> Result:
    count = chunks or instance.pipeline.max_chunks
    return solve(instance, method, chunks=count, limits=QUICK, knobs=knobs)


def bubble(instance: Instance, method: str = "vpp-async", /, **knobs: object) -> float:
    result = run(instance, method, None, **knobs)
    assert result.metrics is not None
    return round(100 * result.metrics.bubble.makespan, 2)


def orders(program: Program, heads: int) -> list[list[str]]:
    """What each die runs, as H1, T1, ..."""
    tasks = single_fifo(program, heads)
    names = [
        f"{'H' if program.stage[task] < program.dies else 'T'}{program.chunk[task] + 1}@{program.wave[task]}"
        for task in tasks.tolist()
    ]
    return [names[program.die_ptr[die] : program.die_ptr[die + 1]] for die in range(program.dies)]


def test_one_order_for_all_dies_but_the_fold() -> None:
    # Two waves of three chunks on three dies, Q = 4: H1..H4, T1, H5, T2, H6, T3 and the other tails.
    instance = growing(3, 3, 2, requests=2)
    plan = plan_of(instance, "vpp-packed", 3)
    program = Evaluator(instance).lowering.program(plan)
    common = ["H1@0", "H2@0", "H3@0", "H1@1", "T1@0", "H2@1", "T2@0", "H3@1", "T3@0", "T1@1", "T2@1", "T3@1"]
    fold = [f"{visit}{chunk}@{wave}" for wave, chunk in product((0, 1), (1, 2, 3)) for visit in "HT"]
    assert orders(program, 4) == [common, common, fold]


def test_second_visits_do_not_wait_for_requests_that_are_not_there() -> None:
    # One chunk a request, 1 s a visit on three dies, Q = 4. The first request is through after 6 s though only two come
    # before 100 s; the second one, at 1.5 s, is behind it everywhere: its first visits are done at 4.5 s, and T_1 was
    # issued at 3 s, when H_1 was done, so that T_2 follows T_1.
    row = [{"arrival_s": arrival, "tokens": 256} for arrival in (0.0, 1.5, 100.0)]
    document = v_document(
        workload={"trace": row},
        model__layers=[{"pattern": ["layer"], "repeat": 6}],
        pipeline__stages=3,
        costs={"kind": "fitted", "chunk_s": 6, "prefix_s": 0, "token_s": 0, "pair_s": 0},
        pipeline__max_batch=1,
    )
    instance = Instance.read(document)
    plan = solve(instance, "vpp", limits=QUICK).plan
    assert plan is not None
    program = Evaluator(instance).lowering.program(plan)
    assert orders(program, 4)[0] == ["H1@0", "H1@1", "T1@0", "T1@1", "H1@2", "T1@2"]
    # With Q = 1 the second visit is issued at once, and the next chunk's first one comes behind it.
    assert orders(program, 1)[0] == ["H1@0", "T1@0", "H1@1", "T1@1", "H1@2", "T1@2"]
    result = solve(instance, "vpp", limits=QUICK, knobs={"order": "single_fifo"})
    assert result.program is not None
    ends = replay_document(result.program)["end_s"]
    # H_2: 1.5-2.5, 2.5-3.5, on the fold die after T_1: 4-5, T_2 5-6, 6-7, 7-8.
    assert [ends[f"{wave},5,0"] for wave in range(3)] == [6.0, 8.0, 106.0]


@pytest.mark.parametrize("growth", [2.9, 8.0])
def test_with_two_dies_it_is_the_asynchronous_order(growth: float) -> None:
    instance = growing(2, 22, growth)
    program = Evaluator(instance).lowering.program(plan_of(instance, "vpp-async", 22))
    assert single_fifo(program, 3).tolist() == program.die_tasks.tolist()
    assert bubble(instance, order="single_fifo") == bubble(instance) == 4.35


@pytest.mark.parametrize(("heads", "share"), [(0, 60.38), (16, 17.65)])
def test_with_four_dies_one_order_costs_a_large_bubble(heads: int, share: float) -> None:
    # A structural model of the public patch: 60 % with five heads first, 17.7 % with all of them; 15.79 % for the
    # order of each die's own. T_k = 1 + k/2, M = 16: the last takes 9/1.5 = 6 times the first.
    instance = growing(4, 16, 6)
    assert bubble(instance, order="single_fifo", heads=heads) == share
    assert bubble(instance) == 15.79


def test_the_period_of_one_order() -> None:
    # Equal chunks of 1 s a visit, N dies, N + 1 heads first. On each die but the fold T_k waits for H_{k+N}, and on die
    # 0 H_{k+N} for T_{k-1}: so a chunk's first visits of N - 1 dies and another one's last ones follow each other,
    # 2(N-1) s for 2 s of a die's work.
    for dies in (2, 3, 4, 5):
        chunks = 12
        instance = line(
            [2] * dies,
            fitted={"chunk_s": 2 * dies},
            workload={"requests": 1, "tokens": chunks},
            pipeline={"layers": "balanced", "max_chunks": chunks},
        )
        assert run(instance).objective.value == 2 * chunks + 2 * (dies - 1)
        served = run(instance, order="single_fifo")
        assert served.program is not None
        ends = replay_document(served.program)["end_s"]
        last = 2 * dies - 1
        tails = [ends[f"0,{last},{chunk}"] for chunk in range(1, chunks - dies - 1)]
        assert {round(b - a, 9) for a, b in pairwise(tails)} == {float(max(2, 2 * (dies - 1)))}


@pytest.mark.parametrize(("method", "swapped"), [("vpp", 9.17), ("vpp-async", 4.81)])
def test_blocking_hand_offs_undo_the_swapped_order(method: str, swapped: float) -> None:
    # The same model, a hand-over of half a first visit, N = 2, M = 22: 9.38 % for both orders where senders wait.
    instance = growing(2, 22, 8, hand_off=0.5)
    assert bubble(instance, method, handoff="blocking") == 9.38
    assert bubble(instance, method) == swapped


def test_times_of_blocking_hand_offs() -> None:
    # Two dies, two chunks of 4 tokens, 1 s a visit, links of 1 byte/s and 2 s a hop: 4*2 + 2 = 10 s a hand-over.
    # H1 0-1 and hands over until 11, H2 11-12 until 22. Fold: H1 11-12, T1 12-13 until 23, H2 23-24, T2 24-25 until 35.
    # Die 0: T1 23-24, T2 35-36.
    instance = line(
        [2, 2],
        fitted={"chunk_s": 4},
        hardware={"link_bytes_per_s": 1, "hop_latency_s": 2},
        workload={"requests": 1, "tokens": 8},
        pipeline={"layers": "balanced", "chunk_quantum": 4, "max_chunks": 2},
    )
    result = run(instance, handoff="blocking", order="single_fifo")
    assert result.objective.value == 36.0
    assert result.program is not None
    starts = replay_document(result.program)["start_s"]
    assert [starts[f"0,{stage},{chunk}"] for chunk in (0, 1) for stage in range(4)] == [0, 11, 12, 23, 11, 23, 24, 35]
    assert result.metrics is not None
    # 8 visits of 1 s on two dies in 36 s: waiting for hand-overs is no work. 16 tokens cross a link, 2 bytes each.
    assert result.metrics.bubble.makespan == pytest.approx(1 - 8 / 72)
    assert (result.metrics.link_bytes, result.metrics.byte_hops) == (32, 32)


def test_the_answer_is_a_program_without_a_bound(tmp_path: Path) -> None:
    document = v_document(workload={"requests": 3, "tokens": 4 * 256}, pipeline__max_batch=1)
    result = run(Instance.read(document), "vpp-packed", 4, order="single_fifo")
    assert (result.status, result.plan, result.objective.bound, result.objective.trivial_bound) == (
        "feasible", None, None, None,
    )  # fmt: skip
    assert result.program is not None
    assert result.metrics is not None
    assert result.details["prediction_error_s"] == 0
    assert (result.details["heads"], result.details["batch"]) == (5, 1)
    assert result.details["chunks"] == {"1024": [256] * 4}
    # What V-shaped plans could do at best, for comparison: three waves of 8 s on the fold die, 3 s in and out.
    assert result.details["v_bound_s"] == pytest.approx((14 + 22 + 30) / 3)
    result.save(tmp_path / "r.json")
    assert Result.load(tmp_path / "r.json") == result
    shown = waferplan("simulate", "--program", tmp_path / "r.json", "--json")
    assert shown.json["makespan_s"] == result.metrics.makespan_s


def test_command_line(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps(v_document()), encoding="utf-8")
    outcome = waferplan(
        "solve", path, "--method", "vpp", "--set", "handoff=blocking", "--set", "order=single_fifo",
        "--out", tmp_path / "r.json",
    )  # fmt: skip
    assert (outcome.code, outcome.err) == (0, "")
    assert "simulate --program" in outcome.out
    rows = json.loads(waferplan("methods", "--json").out)
    for name in ("vpp", "vpp-async", "vpp-packed"):
        knobs = next([knob["name"] for knob in row["knobs"]] for row in rows if row["method"] == name)
        assert knobs == ["batch", "chunk", "order", "heads", "handoff"]


def test_a_window_limits_the_heads() -> None:
    # Window 3 on four dies refuses every V of more chunks; one order of at most three heads runs.
    instance = Instance.read(v_document(workload={"requests": 1, "tokens": 8 * 256}, pipeline__max_in_flight=3))
    refused = run(instance, "vpp-async", 8, handoff="blocking")
    assert (refused.reason or "").startswith("v_window: ")
    result = run(instance, "vpp-async", 8, order="single_fifo")
    assert (result.details["heads"], result.objective.value is None) == (3, False)


def test_memory_that_does_not_suffice_is_said() -> None:
    roomy = Instance.read(v_document())
    cost = roomy.stage_cost
    static = cost.die_weight_bytes([(0, 1), (7, 8)], embedding=True, head=True) + cost.workspace_bytes(0, 1, 1, 256)
    # Room for three and a half of the four first visits that come before any second one.
    tight = Instance.read(v_document(hardware__die__hbm_bytes=static + 3.5 * 32768))
    result = run(tight, "vpp-async", 4, order="single_fifo")
    assert (result.status, result.program) == ("unknown", None)
    assert (result.reason or "").startswith("deadlock: ")


def test_seams_are_refused_where_links_take_time() -> None:
    instance = Instance.read(
        v_document(hardware__wafers=[1, 2], hardware__wafer_link_bytes_per_s=1e9, hardware__link_bytes_per_s=1e12)
    )
    with pytest.raises(InputError, match=r"hardware\.wafer_link_bytes_per_s"):
        run(instance, "vpp", 4, order="single_fifo")
    assert run(instance, "vpp", 4, handoff="blocking").program is not None


def test_chunks_of_a_given_size() -> None:
    instance = Instance.read(v_document(workload={"requests": 1, "tokens": 7 * 256 + 10}))
    result = solve(instance, "vpp", limits=QUICK, knobs={"chunk": 512})
    assert result.plan is not None
    assert result.plan.chunk_sizes(7 * 256 + 10) == (512, 512, 512, 266)
    whole = Instance.read(v_document(workload={"requests": 1, "tokens": 1024}))
    split = solve(whole, "vpp", limits=QUICK, knobs={"chunk": 512}).plan
    assert split is not None
    assert split.chunk_sizes(1024) == (512, 512)
    with pytest.raises(InputError, match="a multiple of chunk_quantum, 256"):
        solve(instance, "vpp", limits=QUICK, knobs={"chunk": 300})
    with pytest.raises(InputError, match="number of chunks is given"):
        solve(instance, "vpp", chunks=4, limits=QUICK, knobs={"chunk": 512})


def ends_by_recurrence(program: Program, order: list[list[int]], blocked: bool) -> list[int]:
    """Ends of the tasks' work, from their order alone: each starts when its die is free and its input has arrived."""
    lag, ends = hand_off_ps(program).tolist(), [-1] * program.tasks
    free, position = [0] * program.dies, [0] * program.dies
    while any(at < len(tasks) for at, tasks in zip(position, order, strict=True)):
        for die, tasks in enumerate(order):
            while position[die] < len(tasks):
                task = tasks[position[die]]
                before = task - 1 if program.stage[task] else None
                if before is not None and ends[before] < 0:
                    break
                arrived = 0 if before is None else ends[before] + lag[before]
                ends[task] = max(free[die], arrived) + int(program.duration_ps[task])
                free[die] = ends[task] + (lag[task] if blocked else 0)
                position[die] += 1
    return ends


cases = st.tuples(
    st.integers(1, 4),
    st.integers(2, 7),
    st.sampled_from([1.5, 3.0, 6.0]),
    st.integers(1, 3),
    st.sampled_from([0, 0.3, 1, 2.5]),
).map(lambda case: growing(case[0], case[1], min(case[2], 2 * case[1] - 1), requests=case[3], hand_off=case[4]))
SCHEDULES: tuple[Schedule, ...] = ("vpp", "vpp-async", "vpp-packed")


@given(case=cases, heads=st.one_of(st.none(), st.integers(1, 9)), blocking=st.booleans(), which=st.integers(0, 2))
def test_programs_run_as_a_recurrence_says(case: Instance, heads: int | None, blocking: bool, which: int) -> None:
    plain = Evaluator(case).lowering.program(plan_of(case, SCHEDULES[which], case.pipeline.max_chunks))
    engine = Engine(heads, blocking).lowered(plain)
    order = [tasks.tolist() for tasks in np.split(engine.die_tasks, engine.die_ptr[1:-1])]
    found = replay(engine, [[0.0]] * plain.waves)
    assert not found.deadlock
    waited = hand_off_ps(plain) if blocking else 0
    assert (found.run.end_ps - waited).tolist() == ends_by_recurrence(plain, order, blocking)


@settings(max_examples=25)  # solves with proofs
@given(case=cases, order=st.sampled_from(["rank_local", "single_fifo"]), blocking=st.booleans())
def test_answers_replay_and_are_not_below_the_bound_of_v_plans(case: Instance, order: str, blocking: bool) -> None:
    """The bound's proof needs no more of the order than that visits of a die follow each other chunk by chunk."""
    result = run(case, "vpp-packed", order=order, handoff="blocking" if blocking else "async")
    value = result.objective.value
    assert value is not None
    if order == "single_fifo" or blocking:
        assert result.program is not None
        assert replay_document(result.program)["makespan_s"] == value
        assert result.details["prediction_error_s"] == 0
        assert value >= result.details["v_bound_s"] * (1 - 1e-9)
    if blocking:
        free = run(case, "vpp-packed", order=order).objective.value
        assert free is not None
        # Nothing waits for memory, and dies share no link: waiting can only put off.
        assert value >= free * (1 - 1e-12)


def test_more_heads_than_may_be_in_flight_are_refused() -> None:
    knobs = {"order": "single_fifo", "heads": 5}
    with pytest.raises(InputError, match="heads: 5 is not allowed; expected at most max_in_flight, 3 chunks"):
        solve(Instance.read(v_document(pipeline__max_in_flight=3)), "vpp", knobs=knobs)
