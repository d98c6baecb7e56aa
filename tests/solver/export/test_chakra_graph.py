"""What nodes a run becomes and what each waits for, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from instances.mesh import Mesh
from solver.export.chakra.graph import chakra_nodes, whole_us
from solver.export.chakra.nodes import Node, NodeType
from solver.export.chakra.order import checked_order
from solver.simulation.engine import run
from solver.simulation.network import build_network
from solver.simulation.program import Program
from solver.simulation.program_file import read_program
from tests.solver.simulation.documents import line, run_document, spill
from tests.strategies import programs

US = 1e-6


def _graph(program: Program) -> dict[str, Node]:
    """Nodes by name, NPUs numbered as dies are."""
    nodes = chakra_nodes(program, run(program, traced=True), list(range(program.dies)))
    checked_order(nodes)
    found = {node.name: node for node in nodes}
    assert len(found) == len(nodes)
    return found


def _waits(graph: dict[str, Node], name: str) -> list[str]:
    names = list(graph)
    return [names[other] for other in graph[name].deps]


def test_a_pipeline_waits_for_program_order_and_activations() -> None:
    graph = _graph(read_program(line([[1, 2], [3, 4]], activation_bytes=[5, 6])))
    assert list(graph) == [
        "wave 0 stage 0 chunk 0",
        "wave 0 stage 1 chunk 0",
        "wave 0 stage 0 chunk 1",
        "wave 0 stage 1 chunk 1",
        "send activation wave 0 stage 0 chunk 0",
        "receive activation wave 0 stage 0 chunk 0",
        "send activation wave 0 stage 0 chunk 1",
        "receive activation wave 0 stage 0 chunk 1",
    ]
    assert _waits(graph, "wave 0 stage 0 chunk 0") == []
    assert _waits(graph, "wave 0 stage 0 chunk 1") == ["wave 0 stage 0 chunk 0"]
    assert _waits(graph, "send activation wave 0 stage 0 chunk 1") == ["wave 0 stage 0 chunk 1"]
    assert _waits(graph, "receive activation wave 0 stage 0 chunk 1") == []
    assert _waits(graph, "wave 0 stage 1 chunk 1") == [
        "receive activation wave 0 stage 0 chunk 1",
        "wave 0 stage 1 chunk 0",
    ]
    sent, received = (graph[f"{what} activation wave 0 stage 0 chunk 1"] for what in ("send", "receive"))
    assert (sent.type, sent.npu, received.type, received.npu) == (NodeType.SEND, 0, NodeType.RECV, 1)
    assert sent.message == received.message == (1, 0, 1, 6)


SPILLED = line([[1, 1, 1], [1, 1, 1]], kv_bytes=[[2] * 3] * 2, spill=[spill(0, 0, 1, 2), spill(0, 1, 1, 1)])


def test_a_fetch_begins_with_its_task_and_brings_back_what_was_written() -> None:
    graph = _graph(read_program(SPILLED))
    task, write, fetch = (
        [f"{what}wave 0 stage 0 chunk {chunk}" for chunk in range(3)] for what in ("", "spill write ", "remote fetch ")
    )
    # A write follows its task's compute; chunk 1 itself waited for its fetch before it ended.
    assert _waits(graph, f"send {write[0]}") == [task[0]]
    assert _waits(graph, f"send {write[1]}") == [task[1], f"receive {fetch[1]}"]
    # The request goes out when the task may start; the bytes are sent once they are there and asked for.
    assert _waits(graph, f"send request of {fetch[1]}") == [task[0]]
    assert _waits(graph, f"send {fetch[1]}") == [f"receive request of {fetch[1]}", f"receive {write[0]}"]
    # Chunk 2 brings back both; what chunk 1 brought back was there then, as chunk 2 starts after that.
    assert _waits(graph, f"send {fetch[2]}") == [f"receive request of {fetch[2]}", f"receive {write[1]}"]
    assert [graph[f"send {fetch[chunk]}"].size_bytes for chunk in (1, 2)] == [2, 3]
    # With overlap compute does not wait for the fetch, but the next task and the activation do.
    assert _waits(graph, task[1]) == [task[0]]
    assert _waits(graph, task[2]) == [task[1], f"receive {fetch[1]}"]
    assert _waits(graph, f"send activation {task[1]}") == [task[1], f"receive {fetch[1]}"]
    # The creditor's compute has nothing to do with it.
    assert _waits(graph, "wave 0 stage 1 chunk 1") == [
        "receive activation wave 0 stage 0 chunk 1",
        "wave 0 stage 1 chunk 0",
    ]


def test_without_overlap_compute_follows_the_fetch() -> None:
    graph = _graph(read_program(SPILLED | {"overlap": False}))
    received = "receive remote fetch wave 0 stage 0 chunk 1"
    assert _waits(graph, "wave 0 stage 0 chunk 1") == [received, "wave 0 stage 0 chunk 0"]
    assert _waits(graph, "send activation wave 0 stage 0 chunk 1") == ["wave 0 stage 0 chunk 1"]


def test_the_host_is_memory_of_the_same_npu() -> None:
    host = {"host_bytes": 9, "host_bytes_per_s": 1}
    graph = _graph(read_program(line([[1, 1]], kv_bytes=[[2, 2]], spill=[spill(0, 0, "host", 2)], host=host)))
    store, load = graph["spill write wave 0 stage 0 chunk 0"], graph["remote fetch wave 0 stage 0 chunk 1"]
    assert (store.type, load.type) == (NodeType.MEM_STORE, NodeType.MEM_LOAD)
    assert (store.npu, load.npu, store.size_bytes, load.size_bytes) == (0, 0, 2, 2)
    assert _waits(graph, store.name) == ["wave 0 stage 0 chunk 0"]
    assert _waits(graph, load.name) == [store.name, "wave 0 stage 0 chunk 0"]
    assert {node.type for node in graph.values()} == {NodeType.COMP, NodeType.MEM_STORE, NodeType.MEM_LOAD}


def test_a_full_window_waits_for_a_free_place() -> None:
    graph = _graph(read_program(line([[1, 1, 1], [1, 1, 1]], max_in_flight=2)))
    # Two chunks are inside at most, so chunk 2 enters when chunk 0 has left.
    assert _waits(graph, "send free place wave 0 stage 1 chunk 0") == ["wave 0 stage 1 chunk 0"]
    assert graph["send free place wave 0 stage 1 chunk 0"].message[1:] == (1, 0, 1)
    assert _waits(graph, "wave 0 stage 0 chunk 2") == [
        "receive free place wave 0 stage 1 chunk 0",
        "wave 0 stage 0 chunk 1",
    ]
    assert _waits(graph, "wave 0 stage 0 chunk 1") == ["wave 0 stage 0 chunk 0"]
    assert sum("free place" in name for name in graph) == 2


def test_a_later_wave_waits_on_the_processor_until_it_arrives() -> None:
    graph = _graph(read_program(line([[US], [US]], arrivals_s=[0, 5 * US, 5 * US, 7.4 * US])))
    first, second = graph["until 5 us"], graph["until 7 us"]
    assert (first.type, first.on_cpu, first.npu, first.duration_us) == (NodeType.COMP, True, 0, 5)
    assert (second.on_cpu, second.duration_us) == (True, 2)
    assert _waits(graph, "until 7 us") == ["until 5 us"]
    assert _waits(graph, "wave 2 stage 0 chunk 0") == ["until 5 us", "wave 1 stage 0 chunk 0"]
    assert _waits(graph, "wave 3 stage 0 chunk 0") == ["until 7 us", "wave 2 stage 0 chunk 0"]
    assert not graph["wave 0 stage 0 chunk 0"].on_cpu
    assert sum("until" in name for name in graph) == 2


def _folded(program: Program) -> Program:
    """A line of two dies folded onto one die, which runs tasks by number."""
    numbers = np.arange(program.tasks, dtype=np.int32)
    ones = {name: getattr(program, name)[:1] for name in ("capacity_units", "static_units", "host_capacity_units")}
    return replace(
        program,
        die=numbers * 0,
        die_ptr=np.array([0, program.tasks]),
        die_tasks=numbers,
        group_die=program.group_die * 0,
        network=build_network(Mesh(1, 1), [(0, 0)], link_bytes_per_s=1.0),
        **ones,
    )


def test_hand_overs_inside_a_die_are_dependencies_without_a_message() -> None:
    graph = _graph(_folded(read_program(line([[2, 3], [4, 5]], max_in_flight=1, activation_bytes=[7, 7]))))
    assert {node.type for node in graph.values()} == {NodeType.COMP}
    assert _waits(graph, "wave 0 stage 1 chunk 0") == ["wave 0 stage 0 chunk 0"]
    assert _waits(graph, "wave 0 stage 0 chunk 1") == ["wave 0 stage 1 chunk 0"]


def test_sizes_are_whole_bytes_and_never_none() -> None:
    document = line([[1, 1], [1, 1]], activation_bytes=[0, 0], kv_bytes=[[1, 1], [0, 0]], spill=[spill(0, 0, 1, 0.25)])
    graph = _graph(read_program(document))
    # ASTRA-sim sends no empty message; a quarter of a byte is rounded up.
    assert graph["send activation wave 0 stage 0 chunk 0"].size_bytes == 1
    assert graph["send spill write wave 0 stage 0 chunk 0"].size_bytes == 1


@pytest.mark.parametrize(("ps", "us"), [(0, 0), (499_999, 0), (500_000, 1), (1_499_999, 1), (1_500_000, 2)])
def test_durations_are_rounded_to_the_nearest_microsecond(ps: int, us: int) -> None:
    assert whole_us(np.array([ps])).tolist() == [us]


@settings(max_examples=100)
@given(programs())
def test_the_replay_keeps_every_wait(document: dict[str, Any]) -> None:
    program, outcome = run_document(document, traced=True)
    if outcome.deadlock:
        return
    assert outcome.events is not None
    nodes = chakra_nodes(program, outcome, list(range(program.dies)))
    checked_order(nodes)
    ends_ps = outcome.end_ps.tolist()
    for position, node in enumerate(nodes):
        for other in node.deps:
            done = nodes[other]
            if done.on_cpu:
                continue
            if done.task < 0:
                assert done.at_ps <= node.at_ps
            elif node.task >= 0 and document.get("overlap", True):
                # The end of a task is that of its compute or of a fetch, and then that fetch is waited for too.
                assert ends_ps[other] <= node.at_ps
            else:
                assert done.at_ps + int(program.duration_ps[other]) <= node.at_ps
        if node.task >= 0:
            assert node.task == position
    # Whatever moved is a message or memory of the host: one for each transfer, and two if a fetch must be asked for.
    kinds = [node.type for node in nodes]
    source, target = outcome.events.transfers[:, 1], outcome.events.transfers[:, 2]
    on_mesh = (source >= 0) & (target >= 0)
    asked = on_mesh & (outcome.events.transfers[:, 0] == 2)
    places = sum(node.name.startswith("send free place") for node in nodes)
    assert kinds.count(NodeType.SEND) == kinds.count(NodeType.RECV) == on_mesh.sum() + asked.sum() + places
    assert kinds.count(NodeType.MEM_STORE) + kinds.count(NodeType.MEM_LOAD) == (~on_mesh).sum()
