"""The graph of a plan as Chakra sees it, before it becomes protobuf messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class NodeType(IntEnum):
    """Node types of the public schema that a plan needs, with its numbers."""

    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    SEND = 5
    RECV = 6


@dataclass(slots=True)
class Node:
    """One node; dependencies are positions in the list of all nodes.

    Parameters
    ----------
    npu
        The NPU whose file it is in.
    at_ps
        When the replay had it started or, for a receipt, complete: the order among nodes that are free at once.
    deps
        Nodes of the same NPU that must be complete.
    duration_us
        Of a COMP node.
    on_cpu
        Whether a COMP node keeps the NPU's processor, not its accelerator, busy: so a delay costs no compute.
    size_bytes
        Of a message, or of host memory moved.
    source, target, tag
        NPUs of a message, and its number, which no other message has.
    task
        Task of the program that a COMP node stands for; -1 where it stands for none.
    """

    npu: int
    type: NodeType
    name: str
    at_ps: int
    deps: list[int] = field(default_factory=list)
    duration_us: int = 0
    on_cpu: bool = False
    size_bytes: int = 0
    source: int = -1
    target: int = -1
    tag: int = -1
    task: int = -1

    @property
    def message(self) -> tuple[int, int, int, int]:
        """What a send and its receipt agree on: tag, source, target, size."""
        return self.tag, self.source, self.target, self.size_bytes
