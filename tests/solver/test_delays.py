"""Delays of stages: what they save at the worst moment, and the programs that hold tasks back for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from instances.instance import Instance
from solver.capacity.length import Length, Setting
from solver.exact.delays import least_peak, started_late
from solver.exact.lockstep import lockstep
from solver.exact.pool import SLACK_SHARE, Unlimited, pooled_excess_bytes, spill_problem
from solver.limits import Limits
from solver.policies.held_back import held_back
from solver.policies.plan_document import document_of
from solver.search import Search
from solver.simulation.engine import run
from solver.simulation.program_file import read_program, replay_document
from tests.reference.simulator import replay
from tests.solver.test_capacity import KV_BYTES, roomy_by
from tests.solver.test_capacity_rows import reached, rows

STAGES, CHUNKS = 4, 8


def eight_chunks(tokens: int, **changes: Any) -> Instance:
    return roomy_by(tokens, pipeline__max_chunks=CHUNKS, pipeline__chunk_quantum=16, **changes)


def peak_chunks(timeline: Unlimited) -> int:
    """Most chunks that all stages hold at once, if a start can wait for a fifth of a chunk for what ends then."""
    begin = timeline.start_s + SLACK_SHARE * (timeline.end_s - timeline.start_s).mean()
    left = timeline.end_s[:, :, -1:]
    return max(int(((begin <= moment) & (left > moment)).sum()) for moment in begin.ravel())


def in_lockstep(tokens: int) -> tuple[Search, Any, Unlimited]:
    """A plan in eight equal chunks, and its timeline in slots."""
    instance = eight_chunks(4096)
    limits = Limits(time_s=60)
    length = Length(Setting(instance, CHUNKS, 1, limits, limits.start(), equal=True), tokens)
    search = length.search()
    ((plan, unlimited),) = length.plans(search)
    assert unlimited is not None
    return search, plan, lockstep(unlimited)


@pytest.mark.parametrize(
    ("slots", "most_chunks"),
    [
        # Stages hold 8, 7, 6 and 5 chunks when the first ends its wave.
        (0, 26),
        # Behind the first by 0, 2, 3 and 4: 8, 6, 5 and 4. Then the second peaks: 7 or 8, and 2 of the next wave.
        (1, 23),
        # A quarter of a wave apart: 8, 6, 4 and 2 at every peak. More changes nothing.
        (3, 20),
        (4, 20),
    ],
)
def test_peaks_in_lockstep(slots: int, most_chunks: int) -> None:
    search, plan, timeline = in_lockstep(2048)
    slot_s = float(timeline.start_s[0, 1, 0])
    problem = spill_problem(search.instance, search.evaluator.lowering, plan, timeline, 0.0)
    found = least_peak(problem, timeline, slots * slot_s, search.deadline)
    later = found.timeline.start_s - timeline.start_s
    assert later.min() >= 0
    assert (np.diff(later, axis=1) >= -1e-12).all()
    assert later.max() <= slots * slot_s * (1 + 1e-9)
    assert peak_chunks(found.timeline) <= most_chunks
    if not slots:
        assert peak_chunks(found.timeline) == most_chunks


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_fast_stages_start_late_and_nobody_waits_longer(share: float) -> None:
    # Seven layers on four stages: the first has one, the others two; it runs ahead by half of the time.
    instance = eight_chunks(4096, model__layers=[{"pattern": ["layer"], "repeat": 7}])
    limits = Limits(time_s=60)
    length = Length(Setting(instance, CHUNKS, 1, limits, limits.start(), equal=True), 2048)
    search = length.search()
    ((plan, unlimited),) = length.plans(search)
    assert unlimited is not None
    assert plan.layers == (1, 2, 2, 2)
    late = started_late(unlimited, share)
    # Inputs are there in time, dies run one task after the other, and requests end when they did.
    assert (late.start_s[:, 1:] >= late.end_s[:, :-1] - 1e-12).all()
    in_order = late.start_s.transpose(1, 0, 2).reshape(STAGES, -1), late.end_s.transpose(1, 0, 2).reshape(STAGES, -1)
    assert (in_order[0][:, 1:] >= in_order[1][:, :-1] - 1e-12).all()
    assert (late.end_s[:, -1] == unlimited.end_s[:, -1]).all()
    assert late.start_s[1, 0, 0] > unlimited.start_s[1, 0, 0] + share * 0.4 * float(unlimited.end_s[0, 0, -1])
    problem = spill_problem(search.instance, search.evaluator.lowering, plan, unlimited, 0.0)
    before, after = (pooled_excess_bytes(problem, one.start_s, one.end_s) for one in (unlimited, late))
    assert after <= before
    assert after < before or share == 0.5


def test_a_held_back_program_is_exact() -> None:
    """Read back, it is the program that was written, task by task; the witness agrees on every start and end."""
    instance = eight_chunks(4096)
    limits = Limits(time_s=60)
    length = Length(Setting(instance, CHUNKS, 1, limits, limits.start(), equal=True), 5120)
    search = length.search()
    ((plan, unlimited),) = length.plans(search)
    assert unlimited is not None
    served = min(held_back(search, plan, unlimited, unlimited.value * 1.1, lambda: False), key=lambda one: one.value)
    assert unlimited.value < served.value <= unlimited.value * 1.1
    document = served.program
    assert document["spill"]
    outcome = replay_document(document)
    assert sum(outcome["latency_s"]) / 3 == pytest.approx(served.value)
    assert max(outcome["peak_memory_bytes"]) <= 4096 * KV_BYTES
    for place, start_s in outcome["start_s"].items():
        wave, stage, chunk = map(int, place.split(","))
        assert start_s >= document["not_before_s"][wave][stage][chunk]
    program = read_program(document)
    again = read_program(document_of(search.instance, plan, program, program.earliest_ps))
    assert (run(again).end_ps == run(program).end_ps).all()
    # The witness reads no tables by wave, so it sees the first one.
    first = {
        **document,
        **{key: document[key][0] for key in ("compute_s", "kv_bytes", "activation_bytes", "not_before_s")},
        "arrivals_s": [0],
        "order": [[place for place in tasks if place[0] == 0] for tasks in document["order"]],
        "spill": [{**row} for row in document["spill"] if row.pop("wave") == 0],
    }
    assert replay(first).result()["end_s"] == replay_document(first)["end_s"]


def test_delays_lengthen_what_pools_reach() -> None:
    # Eight chunks on four stages: a pool holds 26 chunks, and with a tenth of the latency for delays some 21.
    found = rows(
        eight_chunks(4096), "none", "pool", "pool+delays", chunks=CHUNKS, equal_chunks=True, latency_budget=0.1
    )
    pool, delays = found["pool"], found["pool+delays"]
    assert reached(pool) / reached(found["none"]) == pytest.approx(32 / 26, rel=0.08)
    assert reached(delays) / reached(found["none"]) >= 1.4
    assert delays.plan is None
    assert delays.program is not None
    assert delays.value_s is not None
    assert delays.optimum_s is not None
    assert delays.value_s <= 1.1 * delays.optimum_s
    assert not replay_document(delays.program)["deadlock"]
    # No more than is possible.
    assert delays.bound_tokens is not None
    assert reached(delays) <= delays.bound_tokens
    assert delays.next_size == reached(delays) + CHUNKS * 16


def test_delays_at_any_latency() -> None:
    found = rows(eight_chunks(4096), "pool", "pool+delays", chunks=CHUNKS, equal_chunks=True)
    assert reached(found["pool+delays"]) >= 1.15 * reached(found["pool"])


def test_two_speeds_of_links_leave_no_program() -> None:
    wafers = {"hardware__wafers": [1, 2], "hardware__columns": 2, "hardware__wafer_link_bytes_per_s": "50 GB/s"}
    found = rows(eight_chunks(4096, **wafers), "pool", "pool+delays", chunks=CHUNKS, latency_budget=0.05)
    assert reached(found["pool+delays"]) == reached(found["pool"])
    assert found["pool+delays"].note.startswith("as pool, for programs are refused: hardware.wafer_link_bytes_per_s")
