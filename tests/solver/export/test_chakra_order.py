"""Graphs that would make ASTRA-sim wait for ever are refused, and the message says why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from instances.errors import InfeasibleError
from solver.export.chakra.files import write_traces
from solver.export.chakra.graph import chakra_nodes
from solver.export.chakra.nodes import Node, NodeType
from solver.export.chakra.order import checked_order
from solver.simulation.engine import run
from solver.simulation.program_file import read_program
from tests.solver.simulation.documents import line, run_document

PIPELINE = line([[1, 1], [1, 1]])
# Nodes of the pipeline: its tasks (chunk by chunk), then send and receipt of chunk 0's activation, then of chunk 1's.
FIRST, LAST, SEND, RECEIPT, LATER_SEND = 0, 3, 4, 5, 6


def _nodes() -> list[Node]:
    return chakra_nodes(*run_document(PIPELINE, traced=True), [0, 1])


def _die_waits_for_itself(nodes: list[Node]) -> None:
    nodes[FIRST].deps.append(SEND)


def _dies_wait_for_each_other(nodes: list[Node]) -> None:
    """Die 1 answers its last chunk, and die 0 wants the answer before its first one (case 15: a block cut in two)."""
    nodes += [
        Node(1, NodeType.SEND, "send answer", 0, [LAST], source=1, target=0, tag=9),
        Node(0, NodeType.RECV, "receive answer", 0, source=1, target=0, tag=9),
    ]
    nodes[FIRST].deps.append(len(nodes) - 1)


def _other_size(nodes: list[Node]) -> None:
    nodes[RECEIPT].size_bytes += 1


def _nobody_listens(nodes: list[Node]) -> None:
    nodes[RECEIPT].type = NodeType.COMP


def _nobody_sends(nodes: list[Node]) -> None:
    nodes[SEND].type = NodeType.COMP


def _same_tag(nodes: list[Node]) -> None:
    nodes[LATER_SEND].tag = nodes[LATER_SEND + 1].tag = nodes[SEND].tag


def _on_another_npu(nodes: list[Node]) -> None:
    nodes[LAST].deps.append(FIRST)


def _nowhere(nodes: list[Node]) -> None:
    nodes[LAST].deps.append(99)


def _wrong_trace(nodes: list[Node]) -> None:
    nodes[SEND].npu = 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_die_waits_for_itself, "each waits for the one before: wave 0 stage 0 chunk 0, send activation"),
        (_dies_wait_for_each_other, "each waits for the one before: .*send answer"),
        (_other_size, "1 senders and 0 receivers"),
        (_nobody_listens, "1 senders and 0 receivers"),
        (_nobody_sends, "0 senders and 1 receivers"),
        (_same_tag, "2 senders and 2 receivers"),
        (_on_another_npu, "'wave 0 stage 1 chunk 1' of NPU 1 depends on what its trace does not have"),
        (_nowhere, "'wave 0 stage 1 chunk 1' of NPU 1 depends on what its trace does not have"),
        (_wrong_trace, "is in the trace of NPU 1, not of NPU 0"),
    ],
)
def test_what_would_hang_is_refused(damage: Callable[[list[Node]], None], reason: str) -> None:
    nodes = _nodes()
    assert sorted(checked_order(nodes)) == list(range(len(nodes)))
    damage(nodes)
    with pytest.raises(InfeasibleError, match=f"deadlock: ASTRA-sim would wait for ever: .*{reason}"):
        checked_order(nodes)


def test_the_order_is_that_of_the_replay() -> None:
    names = [_nodes()[position].name for position in checked_order(_nodes())]
    # Chunk 0: 0 to 1 at stage 0, 1 to 2 at stage 1; chunk 1 a second later. What happens at one time goes by position.
    assert names == [
        "wave 0 stage 0 chunk 0",
        "wave 0 stage 0 chunk 1",
        "send activation wave 0 stage 0 chunk 0",
        "receive activation wave 0 stage 0 chunk 0",
        "wave 0 stage 1 chunk 0",
        "send activation wave 0 stage 0 chunk 1",
        "receive activation wave 0 stage 0 chunk 1",
        "wave 0 stage 1 chunk 1",
    ]


def test_a_task_that_nobody_feeds_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    # Stages that do not fit together: stage 1 waits for a second activation, which nobody sends (case 15).
    program = read_program(PIPELINE)
    program = replace(program, inputs=program.inputs + np.array([0, 1, 0, 0], dtype=np.int32))
    with pytest.raises(InfeasibleError, match=r"deadlock: 2 tasks never ran: stage 1 .* waits for its activations"):
        write_traces(program, run(program, traced=True), (1, 2), {}, tmp_path)
    assert not list(tmp_path.iterdir())
