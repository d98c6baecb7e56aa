"""A small instance and its plan, which tests change in the places they are about."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from instances.instance import Instance
from instances.plan import Plan

_DOCUMENT: dict[str, Any] = {
    "schema_version": 1,
    "name": "small",
    "hardware": {
        "rows": 2,
        "columns": 2,
        "link_bytes_per_s": "100 GB/s",
        "hop_latency_s": "50 ns",
        "die": {
            "peak_flops": "1 TFLOP/s",
            "hbm_bytes": "64 MB",
            "hbm_bytes_per_s": "1 TB/s",
            "layer_overhead_s": "1 us",
            "chunk_overhead_s": "5 us",
        },
    },
    "model": {
        "name": "four-layers",
        "hidden": 64,
        "vocab": 1000,
        "kinds": {
            "layer": {
                "attention": {"kind": "full", "heads": 4, "kv_heads": 2, "head_dim": 16},
                "feed_forward": {"kind": "dense", "width": 128},
            }
        },
        "layers": [{"pattern": ["layer"], "repeat": 4}],
        "weight_bytes": 2,
        "kv_bytes": 2,
        "activation_bytes": 2,
    },
    "workload": {"requests": 4, "tokens": 2048},
    "pipeline": {"stages": 4, "chunk_quantum": 256, "max_chunks": 8, "max_batch": 2},
}


def small_document(**changes: Any) -> dict[str, Any]:
    """The published form: 4 layers on 4 dies of a 2x2 mesh, 4 requests of 2048 tokens, at most 8 chunks.

    A key ``hardware__die__hbm_bytes`` changes that field; the value ``...`` removes it.
    """
    return changed(_DOCUMENT, changes)


def small_instance(**changes: Any) -> Instance:
    """`small_document` read."""
    return Instance.read(small_document(**changes))


def small_plan_document(instance: Instance, /, **changes: Any) -> dict[str, Any]:
    """Plain data of `small_plan`; changes as in `small_document`."""
    plan = {
        "schema_version": 1,
        "instance": instance.fingerprint,
        "batch": 1,
        "layers": [1, 1, 1, 1],
        "placement": [[0, 0], [0, 1], [1, 1], [1, 0]],
        "chunks": {str(tokens): _halves(tokens) for tokens in instance.workload.uncached_counts},
        "spill": [],
        "schedule": "chunked",
    }
    return changed(plan, changes)


def small_plan(instance: Instance, /, **changes: Any) -> Plan:
    """One layer a stage, stages around the ring of the 2x2 mesh, two chunks, no spill."""
    return Plan.parse(small_plan_document(instance, **changes))


def changed(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with the fields named ``outer__inner`` replaced, or removed where the value is ``...``."""
    result = copy.deepcopy(dict(document))
    for path, value in changes.items():
        *outer, last = path.split("__")
        place = result
        for key in outer:
            place = place.setdefault(key, {})
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return result


def _halves(tokens: int) -> list[int]:
    """Two chunks, the first a multiple of 256 tokens; one chunk where that is all there is."""
    first = tokens // 512 * 256
    return [first, tokens - first] if first else [tokens]
