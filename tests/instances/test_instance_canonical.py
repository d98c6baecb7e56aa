"""The canonical form and the fingerprint: what they depend on, and what not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from instances.catalogue import load_model
from instances.costs import TableSpec
from instances.instance import Instance
from tests.builders import changed, small_document, small_instance
from tests.instances.documents import everything, interface_example
from tests.shared_data import REPOSITORY

FULL: dict[str, Any] = {"kind": "full", "heads": 4, "kv_heads": 2, "head_dim": 16}
MLA: dict[str, Any] = {
    "kind": "mla",
    "heads": 2,
    "kv_lora_rank": 8,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 2,
    "v_head_dim": 4,
}
MOE: dict[str, Any] = {"kind": "moe", "experts": 8, "top_k": 2, "expert_width": 8}
ATTENTION = "model__kinds__layer__attention"
FEED_FORWARD = "model__kinds__layer__feed_forward"
FITTED = {"kind": "fitted", "chunk_s": 1, "prefix_s": 1, "token_s": 1, "pair_s": 1}

IGNORED: dict[str, Any] = {
    "name": "renamed",
    "source": "a remark",
    "hardware__name": "toy",
    "hardware__source": "a remark",
    "model__name": "renamed",
    "model__source": "a remark",
}
"""Names and remarks: another value, and the same instance to a solver."""

CHANGES: dict[str, Any] = {
    "hardware__rows": 3,
    "hardware__columns": 3,
    "hardware__wafers": [1, 2],
    "hardware__topology": "torus",
    "hardware__link_bytes_per_s": "101 GB/s",
    "hardware__wafer_link_bytes_per_s": "100 GB/s",
    "hardware__hop_latency_s": "51 ns",
    "hardware__disabled_dies": [[2, 0]],
    "hardware__disabled_links": [[[0, 0], [0, 1]]],
    "hardware__die__peak_flops": "2 TFLOP/s",
    "hardware__die__hbm_bytes": 64_000_001,
    "hardware__die__hbm_bytes_per_s": "2 TB/s",
    "hardware__die__gemm_efficiency": 0.5,
    "hardware__die__attention_efficiency": 0.5,
    "hardware__die__hbm_efficiency": 0.5,
    "hardware__die__layer_overhead_s": 0,
    "hardware__die__chunk_overhead_s": 0,
    "hardware__dies": [{"at": [0, 0], "hbm_bytes": "64 MB"}],
    "hardware__host": {"host_bytes": 1, "host_bytes_per_s": 1},
    "model__hidden": 65,
    "model__vocab": 1001,
    "model__tied_embeddings": True,
    "model__layers": [{"pattern": ["layer"], "repeat": 5}],
    "model__weight_bytes": 1,
    "model__kv_bytes": 1,
    "model__activation_bytes": 1,
    f"{ATTENTION}__kind": "sliding",
    f"{ATTENTION}__heads": 8,
    f"{ATTENTION}__kv_heads": 4,
    f"{ATTENTION}__head_dim": 17,
    f"{ATTENTION}__qkv_bias": True,
    f"{ATTENTION}__output_bias": True,
    f"{ATTENTION}__sinks": True,
    f"{ATTENTION}__output_gate": True,
    f"{ATTENTION}__keys_as_values": True,
    f"{ATTENTION}__qk_norm": "head",
    f"{FEED_FORWARD}__kind": "moe",
    f"{FEED_FORWARD}__width": 129,
    f"{FEED_FORWARD}__gated": False,
    f"{FEED_FORWARD}__bias": True,
    "model__kinds__layer__norms": 4,
    "workload__requests": 5,
    "workload__tokens": 2049,
    "workload__cached_tokens": 1,
    "workload__trace": [{"tokens": 2048}] * 4,
    "pipeline__stages": 3,
    "pipeline__chunk_quantum": 128,
    "pipeline__max_chunks": 9,
    "pipeline__max_batch": 3,
    "pipeline__max_in_flight": 4,
    "pipeline__overlap": False,
    "pipeline__serve_fraction": 0.5,
    "pipeline__switching": "store_and_forward",
    "pipeline__routing": "yx",
    "pipeline__one_send_per_die": True,
    "pipeline__integer_ns": True,
    "pipeline__layers": "free",
    "pipeline__forbidden_cuts": [1],
    "costs__kind": FITTED,
    "objective": "makespan",
}
"""For every other field of a small instance's canonical form, another value."""

ALONG: dict[str, dict[str, Any]] = {
    # What has to change with a field for the instance to stay sound.
    "hardware__disabled_dies": {"hardware__rows": 3},
    "workload__trace": {"workload__requests": ..., "workload__tokens": ...},
    f"{ATTENTION}__kind": {f"{ATTENTION}__window": 100_000},
    f"{FEED_FORWARD}__kind": {
        FEED_FORWARD: {"kind": "moe", "experts": 1, "top_k": 1, "expert_width": 128},
    },
    "costs__kind": {"costs": FITTED},
}


def _fields(data: dict[str, Any], prefix: str = "") -> set[str]:
    """Fields of a canonical form; lists and nulls count whole."""
    found: set[str] = set()
    for key, value in data.items():
        inner = f"{prefix}{key}"
        found |= _fields(value, f"{inner}__") if isinstance(value, dict) else {inner}
    return found


def _with(field: str, value: Any) -> Instance:
    along = ALONG.get(field, {})
    if field in ("costs__kind", f"{FEED_FORWARD}__kind"):
        return small_instance(**along)
    return small_instance(**{**along, field: value})


def test_every_field_has_another_value_here() -> None:
    fields = _fields(small_instance().canonical())
    # The canonical form leaves the mesh out, which is how dies are joined unless something else is said.
    assert fields | {"hardware__topology"} == CHANGES.keys() | IGNORED.keys() | {"schema_version"}


@pytest.mark.parametrize("field", CHANGES)
def test_the_fingerprint_changes_with_every_field(field: str) -> None:
    before, after = small_instance(**_without_field(field)), _with(field, CHANGES[field])
    assert before != after
    assert before.fingerprint != after.fingerprint


def _without_field(field: str) -> dict[str, Any]:
    """What a field is compared with: the small instance, changed alike in what has to change along."""
    return {"hardware__rows": 3} if field == "hardware__disabled_dies" else {}


@pytest.mark.parametrize("field", IGNORED)
def test_the_fingerprint_ignores_names_and_remarks(field: str) -> None:
    after = small_instance(**{field: IGNORED[field]})
    assert after != small_instance()
    assert after.fingerprint == small_instance().fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        *({"costs": {**FITTED, key: 2}} for key in ("chunk_s", "prefix_s", "token_s", "pair_s")),
        {"costs": {"kind": "table", "rows": [[1, 0, 1]]}},
        {"costs": {"kind": "table", "rows": [[1, 0, 2]]}},
        *({ATTENTION: {**MLA, key: 3}} for key in MLA if key != "kind"),
        {ATTENTION: {**MLA, "q_lora_rank": 3}},
        {ATTENTION: {**MLA, "sparse": {"heads": 1, "dim": 1, "top_k": 1}}},
        {ATTENTION: {**FULL, "kind": "sliding", "window": 9}},
        {ATTENTION: {**FULL, "kind": "sliding", "window": 10}},
        *({FEED_FORWARD: {**MOE, "experts": experts, "top_k": top_k}} for experts, top_k in ((4, 1), (4, 2), (5, 2))),
        *({FEED_FORWARD: {**MOE, key: 3}} for key in ("expert_width", "shared_width")),
        *({FEED_FORWARD: {**MOE, key: True}} for key in ("bias", "router_bias", "shared_gate")),
        {FEED_FORWARD: {**MOE, "gated": False}},
        {"hardware__topology": "switch"},
        {"hardware__dies": [{"at": [0, 1], "hbm_bytes": "1 MB"}]},
        {"hardware__dies": [{"at": [0, 1], "hbm_bytes": "2 MB"}]},
        {"hardware__host": {"host_bytes": 1, "host_bytes_per_s": 2}},
        {"hardware__host": {"host_bytes": 2, "host_bytes_per_s": 1}},
        {"workload": {"trace": [{"tokens": 9}]}},
        {"workload": {"trace": [{"tokens": 9, "arrival_s": 1}]}},
        {"workload": {"trace": [{"tokens": 9, "cached_tokens": 1}]}},
        {"workload": {"trace": [{"tokens": 9, "output_tokens": 1}]}},
        {"workload": {"trace": [{"tokens": 9, "prefix_id": "1"}]}},
        {"workload": {"trace": [{"tokens": 9, "prefix_id": 1}]}},
        {"workload": {"trace": [{"tokens": 9}, {"tokens": 8}]}},
        {"workload": {"trace": [{"tokens": 8}, {"tokens": 9}]}},
        {"pipeline__layers": [1, 1, 1, 1]},
    ],
    ids=lambda changes: json.dumps(changes)[:60],
)
def test_fingerprints_inside_other_forms(changes: dict[str, Any], seen: dict[str, str]) -> None:
    fingerprint = small_instance(**changes).fingerprint
    assert fingerprint != small_instance().fingerprint
    assert seen.setdefault(fingerprint, str(changes)) == str(changes)


@pytest.fixture(scope="module")
def seen() -> dict[str, str]:
    """Fingerprints of the cases before this one."""
    return {}


SOURCES = {
    "interface page": changed(interface_example(), {"pipeline__stages": 15}),
    "everything": everything(),
    "torus": small_document(hardware__topology="torus"),
    "small": small_document(),
    "trace": small_document(workload={"trace": [{"tokens": 9, "cached_tokens": 1, "prefix_id": "a"}, {"tokens": 8}]}),
    "table": small_document(costs={"kind": "table", "rows": [[256, 0, 0.1], [512, 0, 1]]}),
    "experts": small_document(model={"name": "deepseek-v3", "weight_bytes": {"experts": 0.5625}}),
    "sliding": small_document(model={"name": "gpt-oss-120b"}),
}


@pytest.mark.parametrize("document", SOURCES.values(), ids=SOURCES.keys())
def test_the_canonical_form_reads_back(document: dict[str, Any]) -> None:
    instance = Instance.read(document)
    canonical = instance.canonical()
    # Also through a file.
    for form in (canonical, json.loads(json.dumps(canonical, allow_nan=False))):
        again = Instance.read(form)
        assert again == instance
        assert again.fingerprint == instance.fingerprint
        assert again.canonical() == canonical


def test_the_canonical_form_spells_everything_out() -> None:
    canonical = Instance.read(SOURCES["interface page"]).canonical()
    assert canonical["model"] == load_model("llama3-70b").model_dump(mode="json")
    assert canonical["hardware"]["die"]["hbm_bytes"] == 180e9
    assert canonical["hardware"]["hop_latency_s"] == 50e-9
    assert canonical["hardware"]["dies"] == []
    assert canonical["workload"] == {"requests": 16, "tokens": 131072, "cached_tokens": 0, "trace": None}


def test_key_order_does_not_matter() -> None:
    def reordered(data: Any) -> Any:
        if isinstance(data, dict):
            return {key: reordered(data[key]) for key in reversed(data)}
        return [reordered(item) for item in data] if isinstance(data, list) else data

    for document in SOURCES.values():
        again = Instance.read(reordered(document))
        assert again.fingerprint == Instance.read(document).fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"hardware__link_bytes_per_s": 100e9},
        {"hardware__link_bytes_per_s": 100_000_000_000},
        {"hardware__link_bytes_per_s": "0.1 TB/s"},
        {"hardware__link_bytes_per_s": "1e5 MB/s"},
        {"hardware__hop_latency_s": 5e-8},
        {"hardware__hop_latency_s": "0.05 us"},
        {"hardware__die__peak_flops": "1000 GFLOPS"},
        {"hardware__die__gemm_efficiency": 1},
        {"hardware__wafers": [1, 1], "hardware__host": None, "hardware__topology": "mesh"},
        {"workload__tokens": "2k"},
        {"workload__tokens": 2048.0},
        {"workload__cached_tokens": "0"},
        {"model__weight_bytes": 2.0},
        {"pipeline__serve_fraction": 1},
        {"pipeline__layers": "balanced", "objective": "mean_latency", "costs": {"kind": "roofline"}},
    ],
)
def test_how_a_quantity_is_written_does_not_matter(changes: dict[str, Any]) -> None:
    assert small_instance(**changes) == small_instance()
    assert small_instance(**changes).fingerprint == small_instance().fingerprint


def test_a_catalogue_model_is_the_model_in_place() -> None:
    named = Instance.read(changed(interface_example(), {"pipeline__stages": 15}))
    spelled = {**load_model("llama3-70b").model_dump(mode="json"), "name": "mine", "source": None}
    in_place = Instance.read(changed(interface_example(), {"pipeline__stages": 15, "model": spelled}))
    assert in_place.fingerprint == named.fingerprint


def test_the_order_of_measured_rows_is_kept() -> None:
    rows = [[512, 0, 1], [256, 0, 0.1]]
    assert small_instance(costs={"kind": "table", "rows": rows}).costs == TableSpec(rows=((512, 0, 1), (256, 0, 0.1)))


def test_the_fingerprint_has_32_hexadecimal_digits() -> None:
    assert len(small_instance().fingerprint) == 32
    assert int(small_instance().fingerprint, 16) >= 0


def test_the_fingerprint_is_the_same_in_another_process() -> None:
    program = (
        "import json, sys; from instances.instance import Instance; "
        "print(*(Instance.read(data).fingerprint for data in json.load(sys.stdin)))"
    )
    documents = list(SOURCES.values())
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(REPOSITORY)}
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(documents),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [Instance.read(document).fingerprint for document in documents]


def test_a_changed_copy_has_its_own_fingerprint() -> None:
    instance = small_instance()
    before = instance.fingerprint
    after = instance.model_copy(update={"objective": "makespan"})
    assert after.fingerprint == small_instance(objective="makespan").fingerprint != before
