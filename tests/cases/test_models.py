"""Reports about models and their costs: what a chunk computes, what it keeps, what its workspace takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formulations.layers.exact import best_split
from formulations.layers.from_instance import layer_problem
from instances.catalogue import load_hardware, load_model
from instances.check import check
from instances.costs import RooflineSpec, make_costs
from instances.errors import InputError
from instances.hardware import Die
from instances.huggingface import read_config
from instances.instance import Instance
from instances.parameters import kv_bytes_per_token, kv_window_bytes, summary
from instances.plan import Plan
from tests.shared_data import shared_path

COMPUTE_BOUND = Die(peak_flops=1e15, hbm_bytes=1e15, hbm_bytes_per_s=1e24)


def config(name: str) -> Path:
    return shared_path(f"data/hf_configs/{name}.json")


def stated(model: dict[str, Any], *, stages: int = 1, hbm: str = "10 TB", **parts: Any) -> Instance:
    """A row of dies of the catalogue with one request of 96K tokens."""
    hardware = load_hardware("h20").model_dump(mode="json")
    document = {
        "name": "reported",
        "hardware": {**hardware, "columns": stages, "die": {**hardware["die"], "hbm_bytes": hbm}},
        "model": model,
        "workload": {"requests": 1, "tokens": "96k"},
        "pipeline": {"stages": stages, "max_batch": 1, "chunk_quantum": 2048, **parts},
    }
    return Instance.read(document)


def test_extra_prediction_layers_take_layers_off_the_last_stage(tmp_path: Path) -> None:
    """TensorRT-LLM #9003: three prediction layers of DeepSeek-V3 on the last of four ranks; [16,16,15,14] beats
    [16,15,15,15]."""
    data = json.loads(config("deepseek-ai--DeepSeek-V3").read_text(encoding="utf-8"))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**data, "num_nextn_predict_layers": 3}), encoding="utf-8")
    cuts: dict[str, Any] = {"layers": "free", "forbidden_cuts": [61, 62, 63]}
    instance = stated({"huggingface": str(path), "prediction_layers": 3}, stages=4, **cuts)
    problem = layer_problem(instance, 1, instance.workload.shapes[0], 8192)
    found = best_split(problem)
    assert found.layers is not None
    # The three are on the last stage, beside 13 or 14 of the 61: the reported splits, extra layers counted.
    assert problem.slowest_s((16, 16, 15, 17)) < problem.slowest_s((16, 15, 15, 18))
    assert problem.slowest_s(found.layers) <= problem.slowest_s((16, 16, 15, 17))
    assert found.layers[-1] == 16
    names = instance.model.layer_kinds
    assert names[-3:] == ("mla-moe-prediction",) * 3


def test_a_chunk_pays_for_its_prefix() -> None:
    """sglang #34298: the FLOPs of a chunk left its prefix out."""
    cost = make_costs(load_model("llama3-70b"), RooflineSpec())
    first, late = (
        float(cost.layer_seconds(COMPUTE_BOUND, "full-dense", 1, 4096, prefix).attention) for prefix in (0, 126976)
    )
    # 4096 * 4097 / 2 pairs, and 4096 * 126976 more.
    assert late / first == pytest.approx(1 + 4096 * 126976 / (4096 * 4097 / 2))
    # All chunks together meet as many pairs as the whole prompt does.
    starts = np.arange(0, 131072, 4096)
    parts = cost.layer_seconds(COMPUTE_BOUND, "full-dense", 1, 4096, starts).attention
    whole = cost.layer_seconds(COMPUTE_BOUND, "full-dense", 1, 131072, 0).attention
    assert float(parts.sum()) == pytest.approx(float(whole))


def test_sliding_layers_count_in_the_kv_of_a_model() -> None:
    """hf-mem #60: the sliding layers of a model were dropped."""
    model = read_config(config("openai--gpt-oss-120b"))
    # Each layer adds 2 * 8 heads * 64 * 2 bytes a token; 18 keep 128 tokens, 18 keep all.
    assert {kind: kv_bytes_per_token(model, kind) for kind in model.kinds} == {"sliding-moe": 2048, "full-moe": 2048}
    assert kv_window_bytes(model) == 18 * 128 * 2048
    cost = make_costs(model, RooflineSpec())
    assert float(cost.kv_held_bytes(0, 36, 1, 100, 100)) == 36 * 100 * 2048
    # Once a chunk of 1024 after 9216 tokens has started: its window and itself in the sliding ones.
    assert float(cost.kv_held_bytes(0, 36, 1, 10240, 1024)) == 18 * 2048 * (10240 + 128 + 1024)


def test_a_stated_head_size_is_not_hidden_over_heads() -> None:
    """LMCache #688: head_dim was taken as hidden_size / heads."""
    model = read_config(config("Qwen--Qwen3-32B"))
    assert model.hidden // 64 == 80
    # 8 heads of 128, not of 80.
    assert kv_bytes_per_token(model, "full-dense") == 2 * 8 * 128 * 2


def test_latent_attention_keeps_one_latent_a_token() -> None:
    """LMCache #688: MLA was sized as if each head had keys and values."""
    facts = summary(read_config(config("deepseek-ai--DeepSeek-V3")))
    assert facts["kv_bytes_per_token"] == 61 * (512 + 64) * 2
    assert facts["kv_bytes_per_token"] < 61 * 2 * 128 * 128 * 2 / 50


def test_a_mixture_computes_its_active_and_reads_its_touched_experts() -> None:
    """llmfit #474: a mixture of experts was timed by its total parameters."""
    model = read_config(config("Qwen--Qwen3-30B-A3B"))
    cost = make_costs(model, RooflineSpec())
    # A long chunk computes 2 FLOPs with each active weight but the head's: 2.73 of 30.5 billion.
    matrices = summary(model)["parameters_active"] - model.vocab * model.hidden
    long = 48 * float(cost.layer_seconds(COMPUTE_BOUND, "full-moe", 1, 8192, 0).gemm)
    assert long == pytest.approx(2 * 8192 * matrices / 1e15, rel=1e-3)
    # One token reads 8 of the 128 experts, a chunk of 1024 all of them: 3 * 2048 * 768 weights of 2 bytes each.
    memory_bound = Die(peak_flops=1e24, hbm_bytes=1e15, hbm_bytes_per_s=1.0)
    expert = 3 * 2048 * 768 * 2
    one, many = (float(cost.layer_seconds(memory_bound, "full-moe", 1, c, 0).gemm) for c in (1, 1024))
    # Besides them the activations of both groups, 2 * 2 * hidden * 2 bytes a token.
    assert many - one == pytest.approx(120 * expert + 1023 * 2 * 2 * 2048 * 2, rel=1e-6)


def test_the_workspace_grows_with_the_chunk() -> None:
    """vllm-ascend #15920: memory was profiled with 2048 tokens, and a prompt of 98K in one chunk overflowed it."""
    # Llama-3.1-8B: 16.06 GB of weights, 128 KiB of KV a token (12.9 GB for 96K), workspace (2*4096 + 14336)*2 a token.
    instance = stated({"name": "llama3-8b"}, hbm="30 GB")
    tokens = 98304

    def capacity(chunk: int) -> Any:
        sizes = (chunk,) * (tokens // chunk)
        plan = Plan(
            instance=instance.fingerprint, batch=1, layers=(32,), placement=((0, 0),), chunks={str(tokens): sizes}
        )
        return next(finding for finding in check(instance, plan) if finding.rule == "capacity_at_rest")

    small, whole = (
        instance.stage_cost.workspace_bytes(0, 32, 1, 2048),
        instance.stage_cost.workspace_bytes(0, 32, 1, tokens),
    )
    assert (small, whole) == (2048 * 45056, 48 * small)
    assert capacity(2048).ok
    # 4.4 GB beside the weights alone fit; with the KV of the prompt they do not.
    assert small + 16.1e9 + tokens * 131072 < 30e9 < whole + 16.1e9 + tokens * 131072
    tight = stated({"name": "llama3-8b"}, hbm="20 GB")
    plan = Plan(instance=tight.fingerprint, batch=1, layers=(32,), placement=((0, 0),), chunks={str(tokens): (tokens,)})
    finding = next(each for each in check(tight, plan) if each.rule == "capacity_at_rest")
    # 16.06 + 4.43 - 20 GB too much.
    assert not finding.ok and finding.amount == pytest.approx(16.0605e9 + whole - 20e9, rel=1e-3)


def test_a_quantum_above_the_request_is_refused() -> None:
    """sglang #36344: a chunk size of 128 under an alignment of 4096 let a prompt of 129 tokens wait for ever."""
    base = stated({"name": "llama3-8b"}).canonical()
    aligned = {
        **base,
        "workload": {"requests": 1, "tokens": 129},
        "pipeline": {**base["pipeline"], "chunk_quantum": 4096},
    }
    with pytest.raises(InputError, match=r"workload\.tokens: 129 .*chunk_quantum \(4096\)"):
        Instance.read(aligned)
    # In whole quanta it fits: a chunk of 128 and a last one of the token that remains.
    fine = Instance.read({**aligned, "pipeline": {**base["pipeline"], "chunk_quantum": 128}})
    plan = Plan(instance=fine.fingerprint, batch=1, layers=(32,), placement=((0, 0),), chunks={"129": (128, 1)})
    assert all(finding.ok for finding in check(fine, plan))
