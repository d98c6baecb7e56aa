"""How a plan is brought down to an engine's knobs: windows, tails, searches held against all settings, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instances.errors import InfeasibleError
from instances.instance import Instance
from instances.plan import Plan
from solver.api import solve
from solver.evaluate import Evaluator
from solver.export import export_result
from solver.export.engines import sglang, vllm, vllm_ascend
from solver.export.engines.knobs import Chunker, Knobs
from solver.export.engines.projection import project
from solver.limits import Limits
from solver.policies.dcpp.predictor import Quadratic, sglang_chunks
from solver.result import Result
from tests.builders import small_instance, small_plan
from tests.solver.export.results import result_of
from tests.solver.test_exact import with_memory_for
from tests.solver.test_policies import seconds_instance
from tests.solver.test_vpp import v_document


def replayed(instance: Instance, plan: Plan) -> float:
    value = Evaluator(instance).full(plan).value
    assert value is not None
    return value


def test_the_static_size_is_the_best_of_all() -> None:
    """Every multiple of 64 tokens that the rules admit, replayed one by one within four chunks in flight."""
    instance = small_instance(pipeline__chunk_quantum=64, pipeline__max_chunks=32)
    plan = small_plan(instance)
    found = project(instance, plan, replayed(instance, plan), vllm.TARGET)
    assert found.window == 4
    narrow = small_instance(pipeline__chunk_quantum=64, pipeline__max_chunks=32, pipeline__max_in_flight=4)
    values = {}
    for size in range(64, 2048 + 1, 64):
        whole, rest = divmod(2048, size)
        chunks = [size] * whole + [rest] * (rest > 0)
        values[size] = replayed(narrow, small_plan(narrow, chunks={"2048": chunks}))
    assert found.value_s == pytest.approx(min(values.values()))


def test_a_narrow_window_starves_the_pipeline() -> None:
    """One request after another through four stages (vllm #41682): growing chunks need more than four in flight.

    SGLang can be given more, vLLM cannot.
    """
    attention = {"costs": {"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1 / 256, "pair_s": 1 / 256**2}}
    instance = seconds_instance(**attention, pipeline__max_batch=1)
    plan = solve(instance, "cpp", limits=Limits(time_s=10)).plan
    assert plan is not None
    planned_s = replayed(instance, plan)
    narrow, wide = (project(instance, plan, planned_s, target) for target in (vllm.TARGET, sglang.TARGET))
    assert narrow.window == 4
    assert wide.window is not None
    assert wide.window > 4
    assert narrow.window_s is not None
    assert narrow.window_s > planned_s * 1.02
    assert wide.value_s < narrow.value_s * 0.98


def test_a_tail_of_192_tokens_is_avoided() -> None:
    """SGLang from 16K with smoothing 0.65 can end in a tail that costs a whole step (sglang #23621).

    A step costs as much as 4096 tokens here; the fitted settings have no such tail and are faster.
    """
    costs = {"kind": "fitted", "chunk_s": 4096.0, "prefix_s": 0, "token_s": 1.0, "pair_s": 1e-5}
    small = {"pipeline__chunk_quantum": 64, "pipeline__max_chunks": 64, "hardware__die__hbm_bytes": "64 GB"}
    model = Quadratic(1e-5, 1.0, 4096.0)
    tokens = next(
        tokens for tokens in range(65536, 131072, 64) if sglang_chunks(tokens, 0, model, 16384, 0.65)[-1] == 192
    )
    instance = small_instance(costs=costs, workload={"requests": 1, "tokens": tokens}, **small)
    chunker = Chunker(instance, (1, 1, 1, 1), "sglang", 64, 64)
    reported = Knobs(16384, 0.65)
    sizes = chunker.sizes(reported)
    assert sizes is not None
    assert sizes[tokens][-1] == 192
    plan = small_plan(instance, chunks={str(tokens): list(sizes[tokens])})
    found = project(instance, plan, replayed(instance, plan), sglang.TARGET)
    assert found.sizes[tokens][-1] > 192
    assert found.loss < -0.01


def test_spill_that_an_engine_cannot_do_is_refused(tmp_path: Path) -> None:
    instance = with_memory_for(6, pipeline__max_batch=1)
    result = solve(instance, "pool", limits=Limits(time_s=20))
    assert result.plan is not None
    assert result.plan.spill
    with pytest.raises(InfeasibleError, match="no engine does for a running request"):
        export_result(result, "sglang", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_ranks_that_jump_between_nodes_are_refused(tmp_path: Path) -> None:
    instance = small_instance(hardware__rows=2, hardware__columns=1, hardware__wafers=[1, 2])
    plan = small_plan(instance, placement=[[0, 0], [0, 1], [1, 1], [1, 0]])
    for engine in ("sglang", "vllm-ascend", "tensorrt-llm"):
        with pytest.raises(InfeasibleError, match=r"placement: .* 1 on node 0, 2 on node 1, 1 on node 0"):
            export_result(result_of(instance, plan), engine, tmp_path / "out")


def v_result(tokens: int = 1024) -> Result:
    instance = Instance.read(v_document(workload={"requests": 1, "tokens": tokens}, pipeline__max_chunks=16))
    return solve(instance, "vpp-async", limits=Limits(time_s=10))


@pytest.mark.parametrize("engine", ["sglang", "vllm", "tensorrt-llm"])
def test_v_shaped_plans_are_for_ascend_alone(tmp_path: Path, engine: str) -> None:
    with pytest.raises(InfeasibleError, match=r"schedule: .* has no V-shaped schedule"):
        export_result(v_result(), engine, tmp_path / "out")


def test_a_v_names_two_runs_of_layers_a_rank(tmp_path: Path) -> None:
    export_result(v_result(), "vllm-ascend", tmp_path / "out")
    script = (tmp_path / "out" / "node-0.sh").read_text(encoding="utf-8")
    assert "export ENABLE_VPP=true" in script
    assert "VLLM_PP_LAYER_PARTITION" not in script
    (line,) = [line for line in script.splitlines() if "--additional-config" in line]
    config = json.loads(line.split("'")[1])
    assert config["virtual_pipeline_parallel_size"] == 2
    assert config["vpp_layer_ranges"] == [[[0, 1], [7, 8]], [[1, 2], [6, 7]], [[2, 3], [5, 6]], [[3, 4], [4, 5]]]
    assert "its order is not the plan's" in (tmp_path / "out" / "HOWTO.md").read_text(encoding="utf-8")


def test_published_ranges_of_61_layers() -> None:
    # Eight parts, larger ones first: rank 0 has the first and the last, rank 3 the two at the fold.
    found = vllm_ascend.v_ranges((8, 8, 8, 8, 8, 7, 7, 7))
    assert found[0] == [[0, 8], [54, 61]]
    assert found[3] == [[24, 32], [32, 40]]


def test_stages_without_attention_are_refused(tmp_path: Path) -> None:
    linear = {"kind": "linear", "name": "mamba", "parameters": 1000, "state_bytes": 1024}
    kinds = {
        "layer": {
            "attention": {"kind": "full", "heads": 4, "kv_heads": 2, "head_dim": 16},
            "feed_forward": {"kind": "dense", "width": 128},
        },
        "mix": {"attention": linear, "feed_forward": {"kind": "dense", "width": 128}},
    }
    instance = seconds_instance(model__kinds=kinds, model__layers=[{"pattern": ["layer", "mix"], "repeat": 2}])
    with pytest.raises(InfeasibleError, match="no layer of stage 1 has attention"):
        export_result(result_of(instance, small_plan(instance)), "vllm", tmp_path / "out")


def test_a_v_is_replayed_in_the_one_order_of_its_engine(tmp_path: Path) -> None:
    """The same number as the method that runs V-shaped plans so: 3 s a chunk and more on four dies, Q = 5."""
    result = v_result(4096)
    export_result(result, "vllm-ascend", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "waferplan-export.json").read_text(encoding="utf-8"))
    instance = Instance.read(result.instance)
    knobs = {"order": "single_fifo", "chunk": found["step_tokens"]}
    fine = Instance.read(
        {**instance.canonical(), "pipeline": {**instance.canonical()["pipeline"], "chunk_quantum": 64}}
    )
    same = solve(fine, "vpp-async", knobs=knobs, limits=Limits(time_s=10))
    assert found["max_in_flight"] == 5
    assert found["engine_s"] == pytest.approx(same.objective.value)
    assert found["loss"] > 0.1


def sglang_by_hand(tokens: int, base: int, smoothing: float, square: float, linear: float) -> list[int]:
    """Chunks of f(l) = square*l^2 + linear*l as facts 1.3 word it, with pages of 64 and max_prefill_tokens 16384."""
    sizes, done = [], 0
    while done < tokens:
        size = base
        if done:
            slope = 2 * square * done + linear
            target = square * base**2 + linear * base
            x = (-slope + (slope**2 + 4 * square * target) ** 0.5) / (2 * square)
            size = max(int(base + smoothing * (x - base)), base // 4) // 64 * 64
            size = max(64, min(size, max(16384, base) // 64 * 64))
        sizes.append(min(size, tokens - done))
        done += sizes[-1]
    return sizes


@pytest.mark.parametrize("quantum", [1, 100, 256])
def test_dynamic_chunks_are_those_of_the_rule(quantum: int) -> None:
    """Engines know no quantum: chunks are multiples of 64 whatever the plan's are."""
    costs = {"kind": "fitted", "chunk_s": 0.0, "prefix_s": 0.0, "token_s": 1e-3, "pair_s": 1e-7}
    small = {"pipeline__chunk_quantum": quantum, "pipeline__max_chunks": 2048, "hardware__die__hbm_bytes": "64 GB"}
    instance = small_instance(costs=costs, workload={"requests": 1, "tokens": 50000}, **small)
    chunker = Chunker(instance.with_pipeline(chunk_quantum=1), (1, 1, 1, 1), "sglang", 64, 64)
    for knobs in (Knobs(4096, 0.75), Knobs(8192, 1.0), Knobs(1024, 0.6)):
        assert knobs.smoothing is not None
        # A stage is a quarter of the model.
        by_hand = sglang_by_hand(50000, knobs.base, knobs.smoothing, 0.25e-7, 0.25e-3)
        assert chunker.sizes(knobs) == {50000: tuple(by_hand)}
    found = project(instance, small_plan(instance, chunks={"50000": [50000]}), 1.0, sglang.TARGET)
    assert all(size % 64 == 0 for size in found.sizes[50000][:-1])


def test_no_engine_holds_fewer_chunks_than_stages() -> None:
    instance = small_instance(pipeline__max_in_flight=2)
    plan = small_plan(instance)
    assert project(instance, plan, replayed(instance, plan), vllm.TARGET).window == 4
    assert project(instance, plan, replayed(instance, plan), sglang.TARGET).window == 4


def test_a_predictor_needs_a_pipeline() -> None:
    # pp_size 1 refuses it, in SGLang as in vLLM-Ascend.
    instance = small_instance(pipeline__stages=1)
    plan = small_plan(instance, layers=[4], placement=[[0, 0]])
    for target in (sglang.TARGET, vllm_ascend.TARGET):
        assert not project(instance, plan, replayed(instance, plan), target).knobs.dynamic


def test_a_step_that_holds_several_requests_is_a_batch() -> None:
    """Four requests of 300 tokens: a budget of 1200 takes all of them in one step, never one each."""
    tokens = {"workload": {"requests": 4, "tokens": 300}, "pipeline__chunk_quantum": 300, "pipeline__max_batch": 4}
    instance = small_instance(**tokens)
    chunker = Chunker(instance.with_pipeline(chunk_quantum=1), (1, 1, 1, 1), "", 64, 8)
    tried = list(chunker.first())
    assert all(knobs.base < 600 for knobs in tried if knobs.batch == 1)
    assert {knobs.base for knobs in tried if knobs.batch > 1} == {600, 900, 1200}


def test_prefixes_that_are_cut_differently_are_left_out() -> None:
    trace = [{"tokens": 65536}, {"tokens": 327680, "cached_tokens": 262144}]
    costs = {"kind": "fitted", "chunk_s": 0.0, "prefix_s": 0.0, "token_s": 1e-3, "pair_s": 1e-7}
    instance = small_instance(costs=costs, workload={"trace": trace}, hardware__die__hbm_bytes="64 GB")
    chunker = Chunker(instance.with_pipeline(chunk_quantum=1, max_chunks=4096), (1, 1, 1, 1), "sglang", 64, 64)
    assert chunker.sizes(Knobs(4096, 1.0)) is None
    assert chunker.sizes(Knobs(4096)) == {65536: (4096,) * 16}
