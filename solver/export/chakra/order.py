"""Numbers the nodes of a graph so that each comes after what it waits for, and refuses a graph that would hang."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from instances.errors import InfeasibleError
from solver.export.chakra.nodes import Node, NodeType


def checked_order(nodes: Sequence[Node]) -> list[int]:
    """Positions of all nodes in the order of the replay, each after its dependencies and, a receipt, its send.

    That such an order exists is all that ASTRA-sim needs to come to its end: it runs one computation and one send at a
    time on each NPU, but each of them ends by itself once it has begun, and receipts are not limited. (Versions before
    2024 count a receipt as a send, and may hang.) A simulation that hangs there ends with code 0 all the same.

    Raises
    ------
    InfeasibleError
        Where ASTRA-sim would wait for ever: dependencies in a circle, or on another NPU's node, a message without
        sender or receiver, or with another size or end on one side.
    """
    send_of = _matched(nodes)
    waits: list[int] = []
    awaited_by: list[list[int]] = [[] for _ in nodes]
    for position, node in enumerate(nodes):
        before = [*node.deps, send_of[position]] if position in send_of else node.deps
        for other in node.deps:
            if not 0 <= other < len(nodes) or nodes[other].npu != node.npu:
                raise _hangs(f"{node.name!r} of NPU {node.npu} depends on what its trace does not have")
        waits.append(len(before))
        for other in before:
            awaited_by[other].append(position)
    free = [(node.at_ps, position) for position, node in enumerate(nodes) if not waits[position]]
    heapq.heapify(free)
    order = []
    while free:
        position = heapq.heappop(free)[1]
        order.append(position)
        for later in awaited_by[position]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(free, (nodes[later].at_ps, later))
    if len(order) < len(nodes):
        circle = _circle(nodes, send_of, {position for position, left in enumerate(waits) if left})
        raise _hangs(f"each waits for the one before: {', '.join(nodes[position].name for position in circle)}")
    return order


def _matched(nodes: Sequence[Node]) -> dict[int, int]:
    """The send of each receipt."""
    sends: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    receipts: dict[tuple[int, int, int, int], list[int]] = defaultdict(list)
    for position, node in enumerate(nodes):
        if node.type in (NodeType.SEND, NodeType.RECV):
            here, ends = (node.source, sends) if node.type == NodeType.SEND else (node.target, receipts)
            if node.npu != here:
                raise _hangs(f"{node.name!r} is in the trace of NPU {node.npu}, not of NPU {here}")
            ends[node.message].append(position)
    for message in sends.keys() | receipts.keys():
        pair = sends[message], receipts[message]
        if [len(side) for side in pair] != [1, 1]:
            some = nodes[(pair[0] or pair[1])[0]]
            raise _hangs(f"{some.name!r} has {len(pair[0])} senders and {len(pair[1])} receivers that agree on it")
    return {receipts[message][0]: sends[message][0] for message in sends}


def _circle(nodes: Sequence[Node], send_of: dict[int, int], stuck: set[int]) -> list[int]:
    """A circle of waits among nodes that are stuck; each of them waits for another one that is."""
    position, path, seen = min(stuck), [], set()
    while position not in seen:
        seen.add(position)
        path.append(position)
        before = [*nodes[position].deps, send_of.get(position, -1)]
        position = next(other for other in before if other in stuck)
    return path[path.index(position) :]


def _hangs(reason: str) -> InfeasibleError:
    return InfeasibleError("deadlock", f"ASTRA-sim would wait for ever: {reason}")
