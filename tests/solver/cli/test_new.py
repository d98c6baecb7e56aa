"""``waferplan new``: instances that load again and read well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instances.instance import Instance
from tests.solver.cli.running import waferplan

CONFIG = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 6,
    "intermediate_size": 128,
    "vocab_size": 1000,
}


def test_the_written_file_loads_again(tmp_path: Path) -> None:
    target = tmp_path / "i.json"
    outcome = waferplan("new", "--model", "llama3-70b", "--mesh", "4x4", "--tokens", "128k", "--out", target)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    instance = Instance.load(target)
    assert (instance.name, instance.workload.tokens, instance.workload.requests) == ("llama3-70b-4x4-128k", 131072, 16)
    assert (instance.pipeline.stages, instance.hardware.die.peak_flops) == (16, 4.5e15)
    data = json.loads(target.read_text(encoding="utf-8"))
    assert data["model"] == {"name": "llama3-70b"}
    assert data["hardware"]["die"]["hbm_bytes"] == "180 GB"
    assert data["hardware"]["link_bytes_per_s"] == "5 TB/s"
    assert data["hardware"]["hop_latency_s"] == "50 ns"


def test_every_option_is_in_the_file(tmp_path: Path) -> None:
    target = tmp_path / "i.json"
    options = (
        "--model llama3-8b --mesh 2x4 --wafers 1x2 --tokens 64k --requests 3 --stages 4 --hardware mocap-4x4-host "
        "--batch 2 --max-chunks 16 --quantum 2k --weight-bytes 1 --kv-bytes 1 --activation-bytes 2.5 --layers 5,9,9,9 "
        "--objective makespan --name mine"
    )
    assert waferplan("new", *options.split(), "--out", target).code == 0
    instance = Instance.load(target)
    hardware, pipeline, model = instance.hardware, instance.pipeline, instance.model
    assert (hardware.rows, hardware.columns, hardware.wafers) == (2, 4, (1, 2))
    assert hardware.host is not None
    assert (instance.workload.tokens, instance.workload.requests) == (65536, 3)
    assert (pipeline.stages, pipeline.max_batch, pipeline.max_chunks, pipeline.chunk_quantum) == (4, 2, 16, 2048)
    assert pipeline.layers == (5, 9, 9, 9)
    assert (model.weight_bytes, model.kv_bytes, model.activation_bytes) == (1, 1, 2.5)
    assert (instance.objective, instance.name) == ("makespan", "mine")


def test_stages_are_all_dies_but_at_most_the_layers() -> None:
    # llama3-8b has 32 layers; 6x6 dies are 36.
    written = waferplan("new", "--model", "llama3-8b", "--mesh", "6x6", "--tokens", "8k").json
    assert written["pipeline"]["stages"] == 32


def test_standard_output_without_a_file() -> None:
    outcome = waferplan("new", "--model", "llama3-8b", "--mesh", "2x2", "--tokens", "8192")
    assert outcome.code == 0
    assert Instance.read(outcome.json).workload.tokens == 8192


def test_a_config_keeps_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    (tmp_path / "models" / "tiny" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (tmp_path / "instances").mkdir()
    monkeypatch.chdir(tmp_path)
    arguments = ("--model", "models/tiny/config.json", "--mesh", "2x2", "--tokens", "8k")
    assert waferplan("new", *arguments, "--out", "instances/i.json").code == 0
    data = json.loads((tmp_path / "instances" / "i.json").read_text(encoding="utf-8"))
    assert data["model"] == {"huggingface": "../models/tiny/config.json"}
    monkeypatch.chdir("/")
    instance = Instance.load(tmp_path / "instances" / "i.json")
    assert (instance.model.layer_count, instance.pipeline.stages) == (6, 4)


def test_groups_in_nodes(tmp_path: Path) -> None:
    target = tmp_path / "i.json"
    options = "--model qwen3-235b --hardware h20 --tp 4 --wafers 1x4 --tokens 128k --weight-bytes 1"
    assert waferplan("new", *options.split(), "--peak-flops", "296 TFLOP/s", "--out", target).code == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    assert data["hardware"]["die"]["peak_flops"] == "1.184 PFLOP/s"
    assert data["hardware"]["wafer_link_bytes_per_s"] == "200 GB/s"
    instance = Instance.load(target)
    # PP8 x TP4 on 32 accelerators: four nodes of two groups.
    assert (instance.name, instance.pipeline.stages) == ("qwen3-235b-1x8-128k", 8)
    assert (instance.hardware.total_rows, instance.hardware.total_columns) == (1, 8)
    # With a mesh of one's own the groups are counted by it.
    shown = waferplan("new", *options.split(), "--mesh", "2x3", "--wafers", "1x1").json
    assert (shown["hardware"]["rows"], shown["hardware"]["columns"], shown["pipeline"]["stages"]) == (2, 3, 6)


def test_a_table_is_found_beside_its_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("measured", "instances"):
        (tmp_path / name).mkdir()
    (tmp_path / "measured" / "t.csv").write_text("chunk,prefix,s\n1024,0,1\n1024,8192,2\n", encoding="utf-8")
    costs = tmp_path / "measured" / "costs.json"
    costs.write_text('{"kind": "table", "path": "t.csv"}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    arguments = ("--model", "llama3-8b", "--mesh", "1x2", "--tokens", "8k", "--costs", "measured/costs.json")
    assert waferplan("new", *arguments, "--out", "instances/i.json").code == 0
    data = json.loads((tmp_path / "instances" / "i.json").read_text(encoding="utf-8"))
    assert data["costs"] == {"kind": "table", "path": "../measured/t.csv"}
    assert Instance.load(tmp_path / "instances" / "i.json").costs.kind == "table"


def test_the_grid_of_the_hardware_is_the_default() -> None:
    shown = waferplan("new", "--model", "llama3-8b", "--tokens", "8k").json
    assert (shown["name"], shown["hardware"]["rows"], shown["hardware"]["columns"]) == ("llama3-8b-4x4-8k", 4, 4)


def test_prediction_layers_stay_on_the_last_stage(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "num_nextn_predict_layers": 2}), encoding="utf-8")
    target = tmp_path / "i.json"
    arguments = ("--model", path, "--mesh", "2x2", "--tokens", "8k", "--prediction-layers", "2", "--layers", "free")
    assert waferplan("new", *arguments, "--out", target).code == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    assert data["model"]["prediction_layers"] == 2
    instance = Instance.load(target)
    assert (instance.model.layer_count, instance.pipeline.forbidden_cuts) == (8, (6, 7))


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--mesh 4", ("--mesh", "'4'", "4x4")),
        ("--mesh 0x4", ("--mesh", "'0x4'", "at least 1")),
        ("--mesh 9999x9999", ("--mesh", "9999", "at most")),
        ("--tokens 1.5", ("--tokens", "'1.5'", "whole number")),
        ("--tokens 10GB", ("--tokens", "'10GB'", "128k")),
        ("--stages 17", ("--stages", "17", "at most 16")),
        ("--layers 3,4", ("--layers", "[3, 4]", "16 stages")),
        ("--layers even", ("--layers", "'even'", "balanced")),
        ("--objective speed", ("--objective", "'speed'", "mean_latency")),
        ("--hardware dojo", ("--hardware", "'dojo'", "mocap-4x4")),
        ("--model gpt", ("--model", "'gpt'", "gpt-oss-120b")),
        ("--weight-bytes nan", ("--weight-bytes", "'nan'", "at most 16")),
        ("--requests -1", ("--requests", "-1", "at least 1")),
        ("--tp 0", ("--tp", "0", "at least 1")),
        ("--tp 3", ("--tp", "3", "32 heads")),
        ("--tp 16", ("--tp", "16", "8 KV heads", "(--kv-bytes) 4")),
        ("--peak-flops fast", ("--peak-flops", "'fast'", "FLOP/s")),
        ("--prediction-layers 1", ("--prediction-layers", "1", "catalogue")),
        ("--costs absent.json", ("absent.json", "existing file")),
    ],
)
def test_bad_options(options: str, parts: tuple[str, ...]) -> None:
    outcome = waferplan("new", "--model", "llama3-8b", "--mesh", "4x4", "--tokens", "8k", *options.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    for part in parts:
        assert part in outcome.err


def test_an_instance_that_solve_refuses_is_announced() -> None:
    assert "cannot solve for" in " ".join(waferplan("new", "--help", columns=200).out.split())
    outcome = waferplan("new", "--model", "llama3-8b", "--mesh", "4x4", "--tokens", "8k", "--objective", "max_tokens")
    assert (outcome.code, outcome.json["objective"]) == (0, "max_tokens")
