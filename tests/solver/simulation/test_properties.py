"""What must hold for every replay, read off the whole log of the witness and of the engine's traced run."""

from __future__ import annotations

import copy
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from solver.simulation.program_file import replay_document
from tests.reference.network import die_place
from tests.reference.program import Place, Task
from tests.reference.simulator import Simulator, replay, simulate
from tests.solver.simulation.replay_log import engine_log, witness_log
from tests.solver.simulation.shared_dies import shared_die_programs
from tests.strategies import programs

EXAMPLES = settings(max_examples=100)
ALL = st.one_of(programs(), shared_die_programs())


def _assert_apart(intervals: Iterable[tuple[float, float]]) -> None:
    ordered = sorted(intervals)
    for (_, until), (start, _) in itertools.pairwise(ordered):
        assert until <= start


@EXAMPLES
@given(ALL)
def test_memory_stays_within_capacity_and_above_static(document: dict[str, Any]) -> None:
    simulator = replay(document)
    for log in (witness_log(simulator), engine_log(document)):
        for _, place, used_bytes in log.die_memory + log.host_memory:
            capacity_bytes = simulator.memories[place].capacity_bytes
            assert used_bytes >= _static(simulator, place)
            assert capacity_bytes is None or used_bytes <= capacity_bytes


@EXAMPLES
@given(ALL)
def test_peaks_are_the_most_that_the_changes_add_up_to(document: dict[str, Any]) -> None:
    simulator = replay(document)
    for place, memory in simulator.memories.items():
        used = peak = _static(simulator, place)
        for change in simulator.memory_changes:
            if change.place == place:
                used += change.changed_bytes
                peak = max(peak, used)
                assert used == change.used_bytes
        assert memory.peak_bytes == peak


def _static(simulator: Simulator, place: Place) -> Fraction:
    program = simulator.program
    return program.static_bytes[program.die_of.index(place[1:])] if place[0] == 0 else Fraction(0)


@EXAMPLES
@given(ALL)
def test_no_link_overlaps_itself(document: dict[str, Any]) -> None:
    for log in (witness_log(replay(document)), engine_log(document)):
        held = defaultdict(list)
        for source, target, start_ps, end_ps in log.holds:
            # A transfer of zero bytes occupies nothing.
            if start_ps < end_ps:
                held[source, target].append((start_ps, end_ps))
        for intervals in held.values():
            _assert_apart(intervals)


@EXAMPLES
@given(programs())
def test_no_die_overlaps_itself(document: dict[str, Any]) -> None:
    simulator = replay(document)
    engine = replay_document(document)
    for stage in range(simulator.program.stages):
        ran = [task for task in simulator.start_ps if task.stage == stage]
        assert ran == sorted(ran), "waves in order, chunks in order"
        _assert_apart((simulator.start_ps[task], simulator.end_ps[task]) for task in ran)
        if not engine["deadlock"]:
            spans = [(engine["start_s"][task.label], engine["end_s"][task.label]) for task in ran]
            assert spans == sorted(spans)
            _assert_apart(spans)


@EXAMPLES
@given(ALL)
def test_every_granted_byte_is_freed_once(document: dict[str, Any]) -> None:
    simulator = replay(document)
    if simulator.deadlock():
        return
    balance: dict[tuple[int, int, Place], Fraction] = defaultdict(Fraction)
    releases: dict[tuple[int, int, Place], int] = defaultdict(int)
    granted = set()
    for change in simulator.memory_changes:
        key = (change.wave, change.stage, change.place)
        assert change.reason != "grant" or releases[key] == 0, "nothing is granted after the wave's release"
        balance[key] += change.changed_bytes
        releases[key] += change.reason == "release"
        if change.reason == "grant":
            granted.add(key)
    assert set(balance.values()) == {Fraction(0)}
    assert all(releases[key] == 1 for key in granted)


@EXAMPLES
@given(ALL)
def test_every_granted_byte_is_fetched_at_every_later_start(document: dict[str, Any]) -> None:
    simulator = replay(document)
    fetched: dict[Task, dict[Place, Fraction]] = defaultdict(dict)
    for transfer in simulator.transfers:
        if transfer.kind == "fetch":
            assert transfer.source not in fetched[transfer.task], "one fetch for each creditor"
            fetched[transfer.task][transfer.source] = transfer.sent_bytes
    there: dict[tuple[int, int], dict[Place, Fraction]] = defaultdict(dict)
    for change in simulator.memory_changes:
        held = there[(change.wave, change.stage)]
        if change.reason == "grant":
            held[change.place] = held.get(change.place, Fraction(0)) + change.changed_bytes
        elif change.reason == "start":
            assert fetched[Task(change.wave, change.chunk, change.stage)] == held


@EXAMPLES
@given(programs())
def test_starts_keep_the_rules_and_have_a_reason(document: dict[str, Any]) -> None:
    """A start waits for its input, its window and its die's block, and never longer than something holds it back."""
    simulator = replay(document)
    program = simulator.program
    moments: dict[int, set[int]] = defaultdict(set)
    arrived = {}
    for transfer in simulator.transfers:
        if transfer.kind == "activation":
            arrived[Task(transfer.task.wave, transfer.task.chunk, transfer.task.stage + 1)] = transfer.arrival_ps
    left = sorted(end for task, end in simulator.end_ps.items() if task.stage == program.stages - 1)
    entered = sorted(start for task, start in simulator.start_ps.items() if task.stage == 0)
    for stage, die in enumerate(program.die_of):
        moments[stage] |= {end for task, end in simulator.end_ps.items() if task.stage == stage}
        moments[stage] |= {change.time_ps for change in simulator.memory_changes if change.place == die_place(die)}
        block_ps = 0
        for stall in simulator.stalls:
            if stall.idle and stall.die == die:
                block_ps = max(block_ps, stall.start_ps) + stall.duration_ps
                moments[stage].add(block_ps)
    moments[0] |= set(left)
    for task, start_ps in simulator.start_ps.items():
        ready_ps = program.arrivals_ps[task.wave] if task.stage == 0 else arrived[task]
        assert start_ps >= ready_ps
        assert start_ps == ready_ps or start_ps in moments[task.stage]
    if program.max_in_flight is not None:
        for number, start_ps in enumerate(entered[program.max_in_flight :]):
            # The n-th chunk enters only after chunk n - K has left.
            assert left[number] <= start_ps


@EXAMPLES
@given(programs())
def test_service_time_is_imposed_once_and_delays_by_no_more(document: dict[str, Any]) -> None:
    simulator = replay(document)
    program = simulator.program
    imposed = dict.fromkeys(program.die_of, 0)
    for transfer in simulator.transfers:
        if transfer.kind == "fetch" and transfer.source[0] == 0:
            duration_s = program.serve_fraction * transfer.sent_bytes / program.link_bytes_per_s
            imposed[transfer.source[1:]] += program.duration_ps(duration_s)
    assert simulator.stalled_ps == imposed
    fetches = {transfer.task for transfer in simulator.transfers if transfer.kind == "fetch"}
    for task, end_ps in simulator.end_ps.items():
        work_ps = end_ps - simulator.start_ps[task] - program.compute_ps[task.stage][task.chunk]
        assert work_ps >= 0
        if task not in fetches:
            assert work_ps <= imposed[program.die_of[task.stage]]


@EXAMPLES
@given(ALL)
def test_the_same_input_gives_the_same_output(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    for simulator in (simulate, replay_document):
        assert json.dumps(simulator(document)) == json.dumps(simulator(document))
    assert document == before


@EXAMPLES
@given(programs())
def test_without_transfers_memory_and_window_a_replay_is_a_flow_shop(document: dict[str, Any]) -> None:
    """start(w, s, i) = max(end of the same stage's previous task, end of the previous stage, arrival, not before)."""
    for name in ("spill", "capacity_bytes", "max_in_flight"):
        document.pop(name, None)
    stages, chunks = len(document["die_of"]), len(document["activation_bytes"])
    simulator = replay(document | {"activation_bytes": [0] * chunks, "hop_latency_s": 0})
    free_ps = [0] * stages
    held_ps = simulator.program.not_before_ps or [[0] * chunks] * stages
    for wave, arrival_ps in enumerate(simulator.program.arrivals_ps):
        for chunk in range(chunks):
            at_ps = arrival_ps
            for stage in range(stages):
                at_ps = max(at_ps, free_ps[stage], held_ps[stage][chunk])
                assert simulator.start_ps[Task(wave, chunk, stage)] == at_ps
                at_ps += simulator.program.compute_ps[stage][chunk]
                free_ps[stage] = at_ps
