"""What a corruption is, and the changes that several of them share.

The plans are `tests.builders.small_plan` with changes: a 2x2 mesh, 4 layers, 4 requests of 2048 tokens, quantum 256, at
most 8 chunks and batch 2; the plan has one layer a stage, stages on (0,0) (0,1) (1,1) (1,0), chunks of 1024 and 1024.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Corruption:
    """A plan that breaks one rule.

    ``amounts`` are those of the findings of that rule, in order, in ``unit``. ``plan`` and ``instance`` are changes as
    in `tests.builders`; ``inside`` changes the plan so that on the same instance every rule holds. ``also`` names rules
    that cannot but break too.
    """

    rule: str
    title: str
    amounts: tuple[float, ...]
    unit: str
    plan: Changes
    inside: Changes = field(default_factory=dict)
    instance: Changes = field(default_factory=dict)
    also: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.rule}: {self.title}"


def row(stage: int, chunk: int, creditor: int | str, tokens: int, shape: list[int] | None = None) -> dict[str, Any]:
    """A spill row as in a plan's file."""
    plain: dict[str, Any] = {"stage": stage, "chunk": chunk, "creditor": creditor, "tokens": tokens}
    return plain if shape is None else {**plain, "shape": shape}


FREE: Changes = {"pipeline__layers": "free"}
FIVE_LAYERS: Changes = {"model__layers": [{"pattern": ["layer"], "repeat": 5}]}
HOST: Changes = {"hardware__host": {"host_bytes": "1 GB", "host_bytes_per_s": "1 GB/s"}}
TWO_SHAPES: Changes = {"workload": {"trace": [{"tokens": 2048}, {"tokens": 2304, "cached_tokens": 256}]}}

# Layers 0 and 2 keep full-attention KV, layers 1 and 3 a window of 64 tokens.
_FEED_FORWARD = {"kind": "dense", "width": 128}
ALTERNATING: Changes = {
    "model__kinds": {
        kind: {"attention": {"heads": 4, "kv_heads": 2, "head_dim": 16, **form}, "feed_forward": _FEED_FORWARD}
        for kind, form in (("global", {"kind": "full"}), ("local", {"kind": "sliding", "window": 64}))
    },
    "model__layers": [{"pattern": ["global", "local"], "repeat": 2}],
}

# A V over two dies has stages 0 and 3 on the first, stages 1 and 2 on the second.
V_DIES = [[0, 0], [0, 1], [0, 1], [0, 0]]
V: Changes = {"schedule": "vpp", "placement": V_DIES}
TWO_STAGES: Changes = {"pipeline__stages": 2}
