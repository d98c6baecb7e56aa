"""``waferplan schema``: schemas accept what is published and refuse what the reader refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import small_document, small_instance, small_plan_document
from tests.shared_data import REPOSITORY
from tests.solver.cli.json_schema import problems
from tests.solver.cli.running import waferplan

WIDTHS = ("experts", "attention", "dense", "router", "embedding", "head", "norms")

# The example of the interface page, with every key.
EXAMPLE: dict[str, Any] = {
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
        "stages": 15,
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


def broken(kind: str, data: Any) -> list[str]:
    schema = waferplan("schema", kind).json
    return problems(data, schema, schema)


def test_the_published_example_fits() -> None:
    assert broken("instance", EXAMPLE) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {"huggingface": "models/config.json", "weight_bytes": 1}},
        {"model": {"name": "llama3-8b", "weight_bytes": {"experts": 0.5}, "kv_bytes": 1}},
        {"model__weight_bytes": dict.fromkeys(WIDTHS, 1)},
        {"workload": {"trace": "arrivals.jsonl"}},
        {"workload": {"trace": [{"arrival_s": "5 ms", "tokens": "2k", "prefix_id": "a"}]}},
        {"costs": {"kind": "table", "path": "profile.csv"}},
        {"costs": {"kind": "fitted", "chunk_s": 1, "prefix_s": 0, "token_s": 0, "pair_s": 0}},
        {"pipeline__layers": [1, 1, 1, 1]},
        {"hardware__dies": [{"at": [0, 0], "hbm_bytes": "1 GB"}]},
    ],
)
def test_every_form_of_an_instance_fits(changes: dict[str, Any]) -> None:
    assert broken("instance", small_document(**changes)) == []


def test_shipped_instances_fit() -> None:
    schema = waferplan("schema", "instance").json
    folder = REPOSITORY / "instances" / "data" / "suites"
    files = [path for path in sorted(folder.glob("*/*.json")) if path.name != "best_known.json"]
    assert files
    for path in files:
        assert problems(json.loads(path.read_text(encoding="utf-8")), schema, schema) == [], path


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"hardware__rows": -1}, "/hardware/rows: minimum"),
        ({"pipeline__chunk_quantum": 0}, "/pipeline/chunk_quantum: minimum"),
        ({"hardware__die__hbm_bytes": "GB"}, "/hardware/die/hbm_bytes: anyOf"),
        ({"hardware__die__hbm_bytes": True}, "/hardware/die/hbm_bytes: anyOf"),
        ({"hardware__die__memory": 1}, "/hardware/die: additionalProperties"),
        ({"hardware__die": ...}, "/hardware: required"),
        ({"model": {"nme": "x"}}, "/model: anyOf"),
        ({"model": "llama3-70b"}, "/model: anyOf"),
        ({"model__weight_bytes": {"experts": 1}}, "/model: anyOf"),
        ({"costs": {}}, "/costs: oneOf"),
        ({"schema_version": "1"}, "/schema_version: const"),
        ({"objective": "speed"}, "/objective: enum"),
        ({"pipeline__layers": "even"}, "/pipeline/layers: anyOf"),
        ({"workload": {"trace": 3}}, "/workload/trace: anyOf"),
    ],
)
def test_what_the_reader_refuses_does_not_fit(changes: dict[str, Any], place: str) -> None:
    assert place in broken("instance", small_document(**changes))


def test_plan_and_result(tmp_path: Path, instance_file: Path) -> None:
    instance = small_instance()
    spill = [{"stage": 0, "chunk": 0, "creditor": creditor, "tokens": 256} for creditor in (2, "host")]
    assert broken("plan", small_plan_document(instance, spill=spill)) == []
    assert broken("plan", small_plan_document(instance, batch=0)) == ["/batch: minimum"]
    result = waferplan("solve", instance_file, "--json").json
    assert broken("result", result) == []
    assert broken("instance", result["instance"]) == []
    assert "/status: enum" in broken("result", {**result, "status": "good"})
