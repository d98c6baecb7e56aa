"""Tiny models whose every figure can be worked out by hand."""

from __future__ import annotations

from typing import Any

from instances.hardware import Die
from instances.model import Model

DENSE: dict[str, Any] = {"kind": "dense", "width": 6}
GQA: dict[str, Any] = {"kind": "full", "heads": 4, "kv_heads": 2, "head_dim": 3}
SLIDING: dict[str, Any] = {**GQA, "kind": "sliding", "window": 5}
MLA: dict[str, Any] = {
    "kind": "mla",
    "heads": 2,
    "q_lora_rank": 5,
    "kv_lora_rank": 6,
    "qk_nope_head_dim": 3,
    "qk_rope_head_dim": 1,
    "v_head_dim": 2,
}
MOE: dict[str, Any] = {"kind": "moe", "experts": 8, "top_k": 2, "expert_width": 3, "shared_width": 4}


def one_kind(
    attention: dict[str, Any],
    feed_forward: dict[str, Any],
    *,
    layers: int = 2,
    hidden: int = 4,
    vocab: int = 10,
    weight_bytes: Any = 2,
    **other: Any,
) -> Model:
    """A model of equal layers; the kind is called ``layer``."""
    data: dict[str, Any] = {
        "name": "tiny",
        "hidden": hidden,
        "vocab": vocab,
        "kinds": {"layer": {"attention": attention, "feed_forward": feed_forward}},
        "layers": [{"pattern": ["layer"], "repeat": layers}],
        "weight_bytes": weight_bytes,
        "kv_bytes": 2,
        "activation_bytes": 2,
    }
    return Model.parse({**data, **other})


def mixed(**other: Any) -> Model:
    """Sliding, full, sliding, full, then one MLA layer with experts."""
    data: dict[str, Any] = {
        "name": "mixed",
        "hidden": 4,
        "vocab": 10,
        "kinds": {
            "local": {"attention": SLIDING, "feed_forward": DENSE},
            "global": {"attention": GQA, "feed_forward": DENSE},
            "latent": {"attention": MLA, "feed_forward": MOE},
        },
        "layers": [{"pattern": ["local", "global"], "repeat": 2}, {"pattern": ["latent"]}],
        "weight_bytes": 2,
        "kv_bytes": 2,
        "activation_bytes": 2,
    }
    return Model.parse({**data, **other})


def slow_die(**other: Any) -> Die:
    """1 FLOP/s and 1 byte/s, so that times are counts; ``other`` changes fields."""
    return Die.parse({"peak_flops": 1, "hbm_bytes": 1e9, "hbm_bytes_per_s": 1, **other})


def compute_bound(**other: Any) -> Die:
    """1 FLOP/s, and memory so fast that its terms vanish beside the FLOPs."""
    return slow_die(hbm_bytes_per_s=1e18, **other)


def memory_bound(**other: Any) -> Die:
    """1 byte/s, and arithmetic so fast that its terms vanish beside the bytes."""
    return slow_die(peak_flops=1e18, **other)
