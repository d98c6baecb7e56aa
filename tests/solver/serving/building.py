"""Small instances for systems that serve request by request, and their logs."""

from __future__ import annotations

from typing import Any

from instances.instance import Instance
from tests.builders import small_instance

FITTED: dict[str, Any] = {"kind": "fitted", "chunk_s": 1, "prefix_s": 0, "token_s": 0.25, "pair_s": 0}
"""Whole model: 1 s an iteration and a quarter of a second a token."""
FAST_LINKS: dict[str, Any] = {"hardware__link_bytes_per_s": 1e21, "hardware__hop_latency_s": 0}
MIXTURE: dict[str, Any] = {
    "attention": {"kind": "full", "heads": 4, "kv_heads": 2, "head_dim": 16},
    "feed_forward": {"kind": "moe", "experts": 8, "top_k": 2, "expert_width": 32},
}


def row(tokens: int, arrival_s: float = 0.0, **keys: Any) -> dict[str, Any]:
    """A request of a trace."""
    return {"arrival_s": arrival_s, "tokens": tokens, **keys}


def traced(*rows: dict[str, Any], stages: int = 1, **changes: Any) -> Instance:
    """The small instance with a trace."""
    return small_instance(workload={"trace": list(rows)}, pipeline__stages=stages, **changes)
