"""Plain documents in the published form: the interface page's example, and one that uses every kind of field."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]

_EXAMPLE: dict[str, Any] = {
    "schema_version": 1,
    "name": "llama3-70b-4x4-128k",
    "hardware": {
        "rows": 4,
        "columns": 4,
        "wafers": [1, 1],
        "link_bytes_per_s": "5 TB/s",
        "wafer_link_bytes_per_s": "5 TB/s",
        "hop_latency_s": "50 ns",
        "disabled_dies": [[0, 3]],
        "disabled_links": [[[0, 0], [0, 1]]],
        "die": {
            "peak_flops": "4.5 PFLOP/s",
            "hbm_bytes": "180 GB",
            "hbm_bytes_per_s": "7.7 TB/s",
            "gemm_efficiency": 0.7,
            "attention_efficiency": 0.5,
            "hbm_efficiency": 0.8,
            "layer_overhead_s": "5 us",
            "chunk_overhead_s": "20 us",
        },
        "host": {"host_bytes": "1 TB", "host_bytes_per_s": "64 GB/s"},
    },
    "model": {"name": "llama3-70b"},
    "workload": {"requests": 16, "tokens": 131072, "cached_tokens": 0},
    "pipeline": {
        "stages": 16,
        "chunk_quantum": 1024,
        "max_chunks": 64,
        "max_batch": 8,
        "max_in_flight": None,
        "overlap": True,
        "serve_fraction": 1.0,
        "switching": "cut_through",
        "routing": "xy",
        "one_send_per_die": False,
        "integer_ns": False,
        "layers": "balanced",
        "forbidden_cuts": [],
    },
    "costs": {"kind": "roofline"},
    "objective": "mean_latency",
}

_KINDS: dict[str, Any] = {
    "global": {
        "attention": {
            "kind": "full",
            "heads": 4,
            "kv_heads": 2,
            "head_dim": 16,
            "qkv_bias": True,
            "output_bias": False,
            "sinks": False,
            "output_gate": False,
            "keys_as_values": False,
            "qk_norm": "head",
        },
        "feed_forward": {"kind": "dense", "width": 128, "gated": True, "bias": False},
        "norms": 2,
    },
    "local": {
        "attention": {"kind": "sliding", "heads": 4, "kv_heads": 2, "head_dim": 16, "window": 256},
        "feed_forward": {
            "kind": "moe",
            "experts": 8,
            "top_k": 2,
            "expert_width": 32,
            "shared_width": 16,
            "router_bias": True,
            "shared_gate": False,
        },
    },
    "latent": {
        "attention": {
            "kind": "mla",
            "heads": 2,
            "q_lora_rank": None,
            "kv_lora_rank": 8,
            "qk_nope_head_dim": 4,
            "qk_rope_head_dim": 2,
            "v_head_dim": 4,
            "sparse": {"heads": 1, "dim": 4, "top_k": 16, "shared": False},
        },
        "feed_forward": {"kind": "none"},
    },
    "state": {
        "attention": {"kind": "linear", "name": "mamba2", "parameters": 100, "state_bytes": "1 kB"},
        "feed_forward": {"kind": "dense", "width": 128},
    },
}

_EVERYTHING: dict[str, Any] = {
    "schema_version": 1,
    "name": "everything",
    "source": "made up",
    "hardware": {
        "name": "toy",
        "source": "made up",
        "rows": 2,
        "columns": 2,
        "wafers": [1, 2],
        "topology": "mesh",
        "link_bytes_per_s": "100 GB/s",
        "wafer_link_bytes_per_s": "50 GB/s",
        "hop_latency_s": "50 ns",
        "disabled_dies": [[0, 3]],
        "disabled_links": [[[0, 0], [0, 1]]],
        "die": {
            "peak_flops": "1 TFLOP/s",
            "hbm_bytes": "64 MiB",
            "hbm_bytes_per_s": "1 TB/s",
            "gemm_efficiency": 0.5,
            "attention_efficiency": 0.5,
            "hbm_efficiency": 1,
            "layer_overhead_s": "1 us",
            "chunk_overhead_s": 5e-6,
        },
        "dies": [
            {
                "at": [1, 1],
                "peak_flops": 2e12,
                "hbm_bytes": "32 MiB",
                "hbm_bytes_per_s": "2 TB/s",
                "gemm_efficiency": 0.25,
                "attention_efficiency": 0.25,
                "hbm_efficiency": 0.5,
                "layer_overhead_s": 0,
                "chunk_overhead_s": 0,
            }
        ],
        "host": {"host_bytes": "1 GB", "host_bytes_per_s": "1 GB/s"},
    },
    "model": {
        "name": "four-kinds",
        "source": "made up",
        "hidden": 64,
        "vocab": 1000,
        "tied_embeddings": False,
        "kinds": _KINDS,
        "layers": [{"pattern": ["global", "local"], "repeat": 2}, {"pattern": ["latent", "state"]}],
        "weight_bytes": {
            "experts": 0.5,
            "attention": 1,
            "dense": 1,
            "router": 2,
            "embedding": 2,
            "head": 2,
            "norms": 2,
        },
        "kv_bytes": 2,
        "activation_bytes": 2,
    },
    "workload": {
        "trace": [
            {"arrival_s": 0, "tokens": 1024},
            {
                "arrival_s": "2 ms",
                "tokens": "2k",
                "cached_tokens": 512,
                "output_tokens": 16,
                "prefix_id": "a",
                "prefix_tokens": 512,
            },
        ]
    },
    "pipeline": {
        "stages": 4,
        "chunk_quantum": 256,
        "max_chunks": 8,
        "max_batch": 2,
        "max_in_flight": 4,
        "overlap": False,
        "serve_fraction": 0.5,
        "switching": "store_and_forward",
        "routing": "yx",
        "one_send_per_die": True,
        "integer_ns": True,
        "layers": [1, 1, 2, 2],
        "forbidden_cuts": [3],
    },
    "costs": {"kind": "fitted", "chunk_s": "1 ms", "prefix_s": 1e-9, "token_s": "1 us", "pair_s": 0},
    "objective": "makespan",
}


def interface_example() -> dict[str, Any]:
    """The instance of the interface page, word for word."""
    return copy.deepcopy(_EXAMPLE)


def everything() -> dict[str, Any]:
    """An instance in which every kind of field is written out: four kinds of layer, a trace, a host, an override."""
    return copy.deepcopy(_EVERYTHING)


def places(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value of a document with its path, the document itself first."""
    yield path, data
    if isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from places(value, (*path, index))


def with_value(data: Any, path: Path, value: Any) -> Any:
    """A copy in which the value at a path is another one."""
    if not path:
        return value
    result = copy.deepcopy(data)
    _parent(result, path)[path[-1]] = value
    return result


def without_key(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """A copy without the key at a path."""
    result = copy.deepcopy(data)
    del _parent(result, path)[path[-1]]
    return result


def dotted(path: Path) -> str:
    """The path as errors name it."""
    return ".".join(map(str, path))


def _parent(data: Any, path: Path) -> Any:
    for part in path[:-1]:
        data = data[part]
    return data
