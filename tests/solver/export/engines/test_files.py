"""Exported settings, read back as the engines would: by a shell, a JSON and a YAML parser."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from instances.instance import Instance
from instances.plan import Plan
from solver.export import export_result
from tests.builders import small_instance, small_plan
from tests.shared_data import shared_path
from tests.solver.export.engines.launched import start
from tests.solver.export.results import result_of, small_result, wafer_result

ENGINES = ("sglang", "vllm", "vllm-ascend", "tensorrt-llm")
LAUNCHERS = {"--model-path", "--tp-size"}
"""Flags of engines that the facts page does not need to name."""


def summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "waferplan-export.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of all engines for 16 stages of Llama 3 70B."""
    folder = tmp_path_factory.mktemp("exports")
    for engine in ENGINES:
        export_result(wafer_result(), engine, folder / engine)
    return folder


@pytest.mark.parametrize("engine", ENGINES)
def test_layers_chunks_and_ranks_are_whole(exported: Path, engine: str) -> None:
    found = summary(exported / engine)
    assert sum(found["layers"]) == 80
    assert len(found["layers"]) == len(found["ranks"]) == 16
    devices = [device for rank in found["ranks"] for device in rank["devices"]]
    assert sorted(devices) == list(range(16))
    # The snake of the plan: row 1 is walked from its end.
    assert devices[:8] == [0, 1, 2, 3, 7, 6, 5, 4]
    (sizes,) = found["chunks"].values()
    assert sum(sizes) == 131072
    assert sizes[0] == found["step_tokens"]
    aligned = max(found["page_tokens"], 64)
    assert all(size % aligned == 0 and size > 0 for size in sizes[:-1])
    assert found["loss"] == pytest.approx(found["engine_s"] / found["planned_s"] - 1)


def test_sglang_script(exported: Path, tmp_path: Path) -> None:
    found = summary(exported / "sglang")
    started = start(exported / "sglang" / "node-0.sh", tmp_path, "--trust-remote-code", MODEL="/models/my model")
    assert started.arguments[:2] == ["-m", "sglang.launch_server"]
    assert started.value("--model-path") == "/models/my model"
    assert started.value("--pp-size") == "16"
    assert int(started.value("--chunked-prefill-size")) == found["step_tokens"]
    assert started.environment["SGLANG_PP_LAYER_PARTITION"] == ",".join(["5"] * 16)
    assert started.environment["CUDA_VISIBLE_DEVICES"].startswith("0,1,2,3,7,6,5,4,8")
    if found["smoothing"] is None:
        assert "--enable-dynamic-chunking" not in started.arguments
    else:
        assert float(started.environment["SGLANG_DYNAMIC_CHUNKING_SMOOTH_FACTOR"]) == found["smoothing"]
    assert 16 + int(started.value("--pp-async-batch-depth")) == found["max_in_flight"]
    assert started.arguments[-1] == "--trust-remote-code"


def test_vllm_ascend_script_and_rank_table(exported: Path, tmp_path: Path) -> None:
    found = summary(exported / "vllm-ascend")
    started = start(exported / "vllm-ascend" / "node-0.sh", tmp_path, MODEL="m")
    assert started.arguments[:2] == ["serve", "m"]
    assert started.environment["VLLM_PP_LAYER_PARTITION"] == ",".join(["5"] * 16)
    config = json.loads(started.value("--additional-config"))["scheduler_config"]["profiling_chunk_config"]
    assert config["enabled"] is True
    assert 0 < config["smooth_factor"] <= 1
    assert config["min_chunk"] <= found["step_tokens"] == int(started.value("--max-num-batched-tokens"))
    table = json.loads((exported / "vllm-ascend" / "rank_table.json").read_text(encoding="utf-8"))
    (server,) = table["server_list"]
    assert [entry["rank_id"] for entry in server["device"]] == [str(rank) for rank in range(16)]
    assert [entry["device_id"] for entry in server["device"]][4:8] == ["7", "6", "5", "4"]


def test_tensorrt_options_are_yaml(exported: Path) -> None:
    options = yaml.safe_load((exported / "tensorrt-llm" / "llm_args.yaml").read_text(encoding="utf-8"))
    assert options["pipeline_parallel_size"] == 16
    assert options["pp_partition"] == [5] * 16
    assert options["enable_chunked_prefill"] is True
    assert options["max_num_tokens"] == summary(exported / "tensorrt-llm")["step_tokens"]
    assert options["max_num_tokens"] % options["kv_cache_config"]["tokens_per_block"] == 0


def test_flags_and_variables_are_those_of_the_engines(exported: Path) -> None:
    facts = shared_path("facts/serving.md").read_text(encoding="utf-8")
    scripts = [path.read_text(encoding="utf-8") for path in exported.glob("*/*.sh")]
    assert len(scripts) == 3
    flags = {flag for script in scripts for flag in re.findall(r"(?<=\s)--?[a-z][a-z-]+", script)} - LAUNCHERS
    variables = {name for script in scripts for name in re.findall(r"(?m)^export (\w+)=", script)}
    flags -= {"-euo", "-m"}  # of bash and python
    assert len(flags) > 8
    assert len(variables) > 3
    options = re.findall(r"(?m)^(\w+):", (exported / "tensorrt-llm" / "llm_args.yaml").read_text(encoding="utf-8"))
    known = {*re.findall(r"--?[a-z][a-z-]*[a-z]", facts), *re.findall(r"\w+", facts)}
    assert {*flags, *variables, *options} - known == {"tensor_parallel_size"}  # as the others, not on the page


def two_nodes(placement: list[list[int]]) -> tuple[Instance, Plan]:
    """Two nodes of two dies each, side by side."""
    instance = small_instance(hardware__rows=2, hardware__columns=1, hardware__wafers=[1, 2])
    return instance, small_plan(instance, placement=placement)


def test_several_nodes_have_a_script_each(tmp_path: Path) -> None:
    # Node 0 is the left column. Stages 0 and 1 are there, upside down.
    result = result_of(*two_nodes([[1, 0], [0, 0], [0, 1], [1, 1]]))
    for engine in ("sglang", "vllm"):
        export_result(result, engine, tmp_path / engine)
        nodes = [start(tmp_path / engine / f"node-{node}.sh", tmp_path, MODEL="m", HEAD="head:1") for node in range(2)]
        assert [node.environment["CUDA_VISIBLE_DEVICES"] for node in nodes] == ["1,0", "0,1"]
        assert [node.value("--node-rank") for node in nodes] == ["0", "1"]
        assert {node.value("--nnodes") for node in nodes} == {"2"}
    assert "--headless" not in (tmp_path / "vllm" / "node-0.sh").read_text(encoding="utf-8")
    assert "--headless" in (tmp_path / "vllm" / "node-1.sh").read_text(encoding="utf-8")


def test_ranks_that_jump_between_nodes_need_ray(tmp_path: Path) -> None:
    result = result_of(*two_nodes([[0, 0], [0, 1], [1, 1], [1, 0]]))
    export_result(result, "vllm", tmp_path / "vllm")
    started = start(tmp_path / "vllm" / "ray.sh", tmp_path, MODEL="m")
    # Bundles are the devices in use, node by node: left 0 and 1, right 2 and 3.
    assert started.environment["VLLM_RAY_BUNDLE_INDICES"] == "0,2,3,1"
    assert started.value("--distributed-executor-backend") == "ray"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_how_to_names_what_it_costs(tmp_path: Path, engine: str) -> None:
    export_result(small_result(), engine, tmp_path / "out")
    text = (tmp_path / "out" / "HOWTO.md").read_text(encoding="utf-8")
    assert f"# small on {engine}" in text
    assert "with these settings, replayed" in text
    cells = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    assert all(one == other == 3 for one, other in pairwise(cells))


def test_a_tensor_parallel_group_is_one_rank_of_several_devices(tmp_path: Path) -> None:
    instance = small_instance(hardware__tensor_parallel=4, hardware__columns=1, hardware__wafers=[1, 2])
    plan = small_plan(instance, placement=[[0, 0], [1, 0], [1, 1], [0, 1]])
    for engine, flag in (("sglang", "--tp-size"), ("vllm", "-tp")):
        export_result(result_of(instance, plan), engine, tmp_path / engine)
        started = start(tmp_path / engine / "node-1.sh", tmp_path, MODEL="m", HEAD="h")
        assert started.value(flag) == "4"
        assert started.environment["CUDA_VISIBLE_DEVICES"] == "4,5,6,7,0,1,2,3"
    # The predictor's profile shrinks by int(1.25 B) // 128 tokens, which four devices have to share (sglang #23621).
    knobs = summary(tmp_path / "sglang")
    assert knobs["smoothing"] is None or int(1.25 * knobs["step_tokens"]) // 128 % 4 == 0
    export_result(result_of(instance, plan), "tensorrt-llm", tmp_path / "trt")
    assert yaml.safe_load((tmp_path / "trt" / "llm_args.yaml").read_text("utf-8"))["tensor_parallel_size"] == 4
    export_result(result_of(instance, plan), "vllm-ascend", tmp_path / "ascend")
    table = json.loads((tmp_path / "ascend" / "rank_table.json").read_text("utf-8"))
    assert [[entry["rank_id"] for entry in server["device"]] for server in table["server_list"]] == [
        [str(rank) for rank in range(8)],
        [str(rank) for rank in range(8, 16)],
    ]


def test_scripts_are_named_after_the_node_they_run_on(tmp_path: Path) -> None:
    # The pipeline starts on the right node, number 1, and ends on node 0.
    export_result(result_of(*two_nodes([[0, 1], [1, 1], [1, 0], [0, 0]])), "sglang", tmp_path / "out")
    left, right = (start(tmp_path / "out" / f"node-{node}.sh", tmp_path, MODEL="m", HEAD="h") for node in range(2))
    assert (right.value("--node-rank"), right.environment["CUDA_VISIBLE_DEVICES"]) == ("0", "0,1")
    assert (left.value("--node-rank"), left.environment["CUDA_VISIBLE_DEVICES"]) == ("1", "1,0")
    assert [rank["node"] for rank in summary(tmp_path / "out")["ranks"]] == [1, 1, 0, 0]


def test_bundles_of_ray_are_those_in_use(tmp_path: Path) -> None:
    instance = small_instance(
        pipeline__stages=3, hardware__columns=1, hardware__wafers=[1, 2], hardware__disabled_dies=[[0, 0]]
    )
    plan = small_plan(instance, layers=[1, 1, 2], placement=[[1, 0], [1, 1], [0, 1]])
    export_result(result_of(instance, plan), "vllm", tmp_path / "out")
    started = start(tmp_path / "out" / "ray.sh", tmp_path, MODEL="m")
    assert started.environment["VLLM_RAY_BUNDLE_INDICES"] == "0,2,1"


def test_a_hostile_name_stays_one_heading(tmp_path: Path) -> None:
    instance = small_instance(name="x\n# evil $(touch evil)")
    export_result(result_of(instance, small_plan(instance)), "sglang", tmp_path / "out")
    text = (tmp_path / "out" / "HOWTO.md").read_text(encoding="utf-8")
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1
    assert "evil" not in (tmp_path / "out" / "node-0.sh").read_text(encoding="utf-8")
