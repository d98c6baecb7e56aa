"""Dynamic rematching: who lends to whom, what a move costs, and what it reaches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.instance import Instance
from instances.plan import Plan
from instances.workload import form_waves
from solver.api import solve
from solver.limits import Limits
from solver.policies.rematch import lendings_of, served_program
from solver.policies.rematch_pairs import NOBODY, Lending, Loads, rematched
from solver.policies.rematch_program import rematch_document
from solver.policies.rematch_rows import plan_with_rows
from solver.policies.uniform import uniform_plans
from solver.simulation.lowering import Lowering
from solver.simulation.program_file import replay_document
from tests.builders import small_instance, small_plan
from tests.reference.waves import Outcome, replay_waves
from tests.searches import bare_search
from tests.solver.cli.running import waferplan

QUICK = Limits(time_s=30)
KV_BYTES = 2 * 2 * 16 * 2
"""Per token and layer: two KV heads of 16, two bytes for keys and values each."""


def equal_loads(stages: int, chunks: int, room: int, unit: int = 2) -> Loads:
    """Every stage holds a unit more with each chunk; all dies are one hop apart."""
    held = np.tile(np.arange(1, chunks + 1, dtype=np.int64) * unit, (stages, 1))
    return Loads(held, held - unit, np.full(stages, room, dtype=np.int64), np.ones((stages, stages), dtype=np.int64))


@pytest.mark.parametrize(("chunks", "span"), [(8, 2), (8, 1), (16, 4), (16, 2), (16, 1)])
def test_a_stage_and_its_creditor_hold_m_and_span_chunks(chunks: int, span: int) -> None:
    # M = N, chunks of 2 bytes: (M + span)/2 chunks a die are M + span bytes; not a byte less is enough.
    fits = rematched(equal_loads(chunks, chunks, chunks + span), span)
    assert fits is not None
    assert fits.moved > 0
    assert rematched(equal_loads(chunks, chunks, chunks + span - 1), span) is None


@pytest.mark.parametrize(("chunks", "room"), [(8, 11), (16, 22)])
def test_rings_in_which_nothing_moves_reach_half_as_much_again(chunks: int, room: int) -> None:
    # 2M/3 chunks of 2 bytes, rounded up: 10.67 and 21.33.
    fits = rematched(equal_loads(chunks, chunks, room), chunks // 2)
    assert fits is not None
    assert (fits.moved, fits.groups) == (0, ((0, chunks - 1),))
    assert rematched(equal_loads(chunks, chunks, room - 1), chunks // 2) is None


def test_a_ring() -> None:
    # M = N = 8, room for 6 chunks: chunk 6 finds one too many, chunk 7 two. The stage six later starts its wave then.
    found = rematched(equal_loads(8, 8, 12), 4)
    assert found is not None
    assert found.lent[0].tolist() == [0, 0, 0, 0, 0, 0, 2, 4]
    assert {(stage, other) for stage in range(8) for other in found.creditor[stage] if other != NOBODY} == {
        (stage, (stage + 6) % 8) for stage in range(8)
    }


def test_every_slot_all_that_is_lent_moves() -> None:
    # M = N = 4, span 1, room for 2.5 chunks: lent are 0, 0, 0.5 and 1.5 chunks of 2 bytes; the half chunk moves.
    found = rematched(equal_loads(4, 4, 5), 1)
    assert found is not None
    assert found.lent[0].tolist() == [0, 0, 1, 3]
    # In slot s + 2 stage s has its third chunk, the stage with its second chunk is one later; then two in each round.
    assert [found.creditor[0, chunk] for chunk in (2, 3)] == [1, 3]
    assert found.moved == 4 * 1
    assert found.groups == ((0, 2), (3, 3))


@given(
    held=st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=2, max_size=6),
    room=st.lists(st.integers(0, 40), min_size=6, max_size=6),
    span=st.integers(1, 5),
    ahead=st.integers(0, 1),
)
def test_pairs_have_room_and_nobody_lends_and_borrows(
    held: list[list[int]], room: list[int], span: int, ahead: int
) -> None:
    total = np.cumsum(np.array(held, dtype=np.int64), axis=1)
    stages, chunks = total.shape
    done = np.concatenate((np.zeros((stages, 1), dtype=np.int64), total[:, :-1]), axis=1)
    hops = np.ones((stages, stages), dtype=np.int64)
    found = rematched(Loads(total, done, np.array(room[:stages], dtype=np.int64), hops), span, ahead)
    if found is None:
        return
    assert (found.lent <= done).all()
    assert ((found.creditor == NOBODY) == (found.lent == 0)).all()
    for slot in range(chunks):
        lends = [stage for stage in range(stages) if found.lent[stage, (slot - stage) % chunks]]
        borrows = [int(found.creditor[stage, (slot - stage) % chunks]) for stage in lends]
        assert len(set(borrows)) == len(borrows)
        assert not set(borrows) & set(lends)
        for stage, other in zip(lends, borrows, strict=True):
            beside = total[other, (slot - other) % chunks] + found.lent[stage, (slot - stage) % chunks]
            assert beside <= room[other]
    for first, _ in found.groups[1:]:
        assert found.lent[:, first - 1].any()


def ten_second_chunks(**changes: Any) -> Instance:
    """Three stages in a row, three chunks of 16 tokens, 10 s each; all KV of a chunk crosses a link in a second."""
    parts: dict[str, Any] = {
        "hardware__rows": 1,
        "hardware__columns": 3,
        "hardware__hop_latency_s": 0,
        "hardware__link_bytes_per_s": 16 * KV_BYTES,
        "model__layers": [{"pattern": ["layer"], "repeat": 3}],
        "model__activation_bytes": 1e-3,
        "costs": {"kind": "fitted", "chunk_s": 30, "prefix_s": 0, "token_s": 0, "pair_s": 0},
        "workload": {"requests": 1, "tokens": 48},
        "pipeline__stages": 3,
        "pipeline__chunk_quantum": 16,
        **changes,
    }
    return small_instance(**parts)


def three_chunks(instance: Instance) -> Plan:
    """A chunk of 16 tokens after the other, a layer a stage."""
    return small_plan(instance, layers=[1, 1, 1], placement=[[0, 0], [0, 1], [0, 2]], chunks={"48": [16, 16, 16]})


def test_times_of_a_move() -> None:
    """Stage 0 lends its first chunk to stage 1 and, before chunk 2, moves it to stage 2. Activations take 2 ms or so.

    Chunk 0 runs from 0 to 10. Its KV is at stage 1 at 11 and comes back from 11 to 12, while chunk 1 runs (10 to 20);
    stage 1 stands still for 1 s, so that its chunk 0, which started at 10, ends at 21. At 20 the KV is written to stage
    2, over two links at once (20 to 21), and read from stage 1 (20 to 21), which stands still for a second more: 22.
    Stage 0 waits for both: chunk 2 starts at 21 in place of 20, and reads from stage 2.
    """
    instance = ten_second_chunks()
    plan = three_chunks(instance)
    static = Lowering(instance).program(plan)
    room = static.bytes_of(static.static_units[0]) + 2 * 16 * KV_BYTES
    bare = Lowering(ten_second_chunks(hardware__dies=[{"at": [0, 0], "hbm_bytes": room}])).program(plan)
    units = 16 * KV_BYTES * bare.units_per_byte
    lent, creditor = np.zeros((3, 3), dtype=np.int64), np.full((3, 3), NOBODY, dtype=np.int64)
    lent[0, 1:], creditor[0, 1:] = units, (1, 2)
    made = rematch_document(instance, plan.placement, bare, [Lending(lent, creditor, ((0, 1), (2, 2)))])
    outcome = replay_document(made.document)
    # Wave 1: chunks 0 and 1 and reading back; wave 2: the write, and chunk 2. Wave 0 is memory alone.
    starts, ends = outcome["start_s"], outcome["end_s"]
    assert (starts["1,0,0"], starts["1,0,1"]) == pytest.approx((0, 10), abs=0.01)
    assert ends["1,1,0"] == pytest.approx(22, abs=0.01)
    assert ends["1,0,2"] == pytest.approx(21, abs=0.01)
    assert (starts["2,0,1"], ends["2,0,1"]) == pytest.approx((21, 31), abs=0.01)
    # Stage 1 serves twice, stage 2 once.
    assert outcome["stall_s"] == pytest.approx([0, 2, 1], abs=0.01)
    # 16 tokens are away: stage 0 has room for two chunks and needs no more; stage 1 hosted one beside its first two.
    held = np.array(outcome["peak_memory_bytes"]) - np.array(made.document["static_bytes"])
    assert held.tolist() == [2 * 16 * KV_BYTES, 3 * 16 * KV_BYTES, 3 * 16 * KV_BYTES]


def test_without_a_loan_the_program_is_the_plan() -> None:
    instance = ten_second_chunks()
    plan = three_chunks(instance)
    bare = Lowering(instance).program(plan)
    none = np.zeros((3, 3), dtype=np.int64)
    made = rematch_document(instance, plan.placement, bare, [Lending(none, none + NOBODY, ((0, 2),))])
    # Three chunks through three stages of 10 s.
    assert replay_document(made.document)["makespan_s"] == pytest.approx(50, abs=0.02)


def four_equal_stages(tokens: int, **changes: Any) -> Instance:
    """Memory for the KV of 4096 tokens a stage, three requests, time in proportion to tokens, fast links."""
    parts: dict[str, Any] = {
        "hardware__die__hbm_bytes": 4096 * KV_BYTES,
        "costs": {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1e-4, "pair_s": 0},
        "workload": {"requests": 3, "tokens": tokens},
        "pipeline__max_batch": 1,
        "pipeline__max_chunks": 4,
        "pipeline__chunk_quantum": 16,
        "model__activation_bytes": 0.001,
        "model__weight_bytes": 0.001,
        **changes,
    }
    return small_instance(**parts)


def test_the_answer_is_a_program_that_replays(tmp_path: Path) -> None:
    # M = N = 4: pairs reach 4/3 of 4096 tokens, rematching in every slot 8/5 of it.
    result = solve(four_equal_stages(6200), "rematch", chunks=4, limits=QUICK)
    assert (result.status, result.plan) == ("feasible", None)
    assert result.program is not None
    assert result.violations == ()  # those of plans that were tried before are not its own
    assert result.metrics is not None
    assert max(result.metrics.peak_memory_bytes) <= 4096 * KV_BYTES
    file = tmp_path / "program.json"
    file.write_text(json.dumps(result.program), encoding="utf-8")
    answer = waferplan("simulate", "--program", file, "--json")
    assert answer.code == 0
    # The first three waves are the requests.
    latencies = json.loads(answer.out)["latency_s"][:3]
    assert sum(latencies) / 3 == pytest.approx(result.objective.value, abs=1e-9)
    # Stages that share nothing need 6200 tokens each.
    assert solve(four_equal_stages(6200), "mocap", chunks=4, limits=QUICK).plan is None


def test_where_nothing_moves_the_answer_is_a_plan_with_rows() -> None:
    # M = 4, span 2: three chunks of the four must fit a die, and a stage lends the rest at the end of its wave.
    result = solve(four_equal_stages(5300), "rematch", chunks=4, limits=QUICK, knobs={"span": 2})
    assert result.program is None
    assert result.plan is not None
    assert {row.stage for row in result.plan.spill} == {0, 1, 2, 3}
    longer = solve(four_equal_stages(5600), "rematch", chunks=4, limits=QUICK, knobs={"span": 2})
    assert (longer.plan, longer.program) == (None, None)


def witness(document: dict[str, Any]) -> Outcome:
    """The independent simulator on a document whose waves differ."""
    each = ("compute_s", "kv_bytes", "activation_bytes")
    waves = [
        {
            **{key: document[key][wave] for key in each},
            "arrivals_s": [arrival],
            "spill": [row for row in document["spill"] if row["wave"] == wave],
        }
        for wave, arrival in enumerate(document["arrivals_s"])
    ]
    shared = {key: value for key, value in document.items() if key not in (*each, "arrivals_s", "spill")}
    grid = {"wafer_shape": (document["rows"], document["columns"])}
    return replay_waves({**shared, **grid, "wafer_link_bytes_per_s": document["link_bytes_per_s"], "waves": waves})


@pytest.mark.parametrize("tokens", [5300, 5900, 6400])
@pytest.mark.parametrize("link_bytes_per_s", ["100 GB/s", "5 MB/s"])
def test_engine_and_witness_agree_on_programs(tokens: int, link_bytes_per_s: str) -> None:
    instance = four_equal_stages(tokens, hardware__link_bytes_per_s=link_bytes_per_s)
    search = bare_search(instance, chunks=4)
    plan = next(uniform_plans(search))
    waves, bare = form_waves(search.evaluator.requests, 1), search.evaluator.lowering.program(plan)
    for span, ahead in ((2, 0), (1, 0), (1, 1)):
        lendings = lendings_of(search, plan, bare, waves, span, ahead)
        if lendings is None:
            continue
        document = rematch_document(instance, plan.placement, bare, lendings).document
        engine, other = replay_document(document), witness(document)
        assert engine["deadlock"] == other.deadlock
        if not engine["deadlock"]:
            names = {f"{wave},{s},{chunk}": ps / 1e12 for (wave, s, chunk), ps in other.start_ps.items()}
            assert engine["start_s"] == names
            assert engine["peak_memory_bytes"] == [float(peak) for peak in other.peak_bytes]
            assert engine["stall_s"] == [ps / 1e12 for ps in other.stall_ps]


def test_where_nothing_moves_the_program_takes_as_long_as_the_plan() -> None:
    search = bare_search(four_equal_stages(5300), chunks=4)
    plan = next(uniform_plans(search))
    waves, bare = form_waves(search.evaluator.requests, 1), search.evaluator.lowering.program(plan)
    lendings = lendings_of(search, plan, bare, waves, 2, 0)
    assert lendings is not None
    served = served_program(search.instance, plan, bare, waves, lendings)
    rows = plan_with_rows(search.instance, plan, waves, lendings, bare.units_per_byte)
    assert served is not None
    assert rows is not None
    # A program takes a chunk's memory when its turn comes, a plan when its activations are there too.
    assert served.value == pytest.approx(search.evaluator.value(rows), rel=1e-3)


def test_an_answer_is_a_plan_or_a_program() -> None:
    # The first run as they are; of the others some numbers of chunks run with rows, some as programs, some not at all.
    costs = {"kind": "fitted", "chunk_s": 1e-3, "prefix_s": 0, "token_s": 1e-4, "pair_s": 0}
    for tokens in (4000, 5300, 6200):
        result = solve(four_equal_stages(tokens, costs=costs, pipeline__max_chunks=16), "rematch", limits=QUICK)
        assert (result.plan is None) != (result.program is None)


def test_where_memory_is_enough_the_answer_is_a_plan() -> None:
    result = solve(four_equal_stages(2048), "rematch", chunks=4, limits=QUICK)
    assert result.program is None
    assert result.plan is not None
    assert result.plan.spill == ()


def test_what_a_program_cannot_say_is_refused() -> None:
    result = solve(four_equal_stages(2048, pipeline__max_in_flight=4), "rematch", limits=QUICK)
    assert result.plan is None
    assert result.reason is not None
    assert "pipeline.max_in_flight" in result.reason


def test_each_request_shape_has_its_own_pairs() -> None:
    rows = [{"arrival_s": 0, "tokens": tokens, "cached_tokens": 0} for tokens in (5300, 6000, 5300, 6000)]
    result = solve(four_equal_stages(0, workload={"trace": rows}), "rematch", chunks=4, limits=QUICK)
    assert result.reason is None or "deadlock" in result.reason
    if result.metrics is not None:
        assert max(result.metrics.peak_memory_bytes) <= 4096 * KV_BYTES
