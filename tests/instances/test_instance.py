"""Instances: what loads, what is refused and how that reads, the canonical form."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from instances.catalogue import load_model
from instances.costs import FittedSpec, TableSpec
from instances.errors import MISSING, InputError
from instances.instance import Instance
from instances.model import Widths
from tests.builders import changed, small_document, small_instance
from tests.instances.documents import dotted, everything, interface_example, places, with_value, without_key
from tests.shared_data import shared_path

# Words of pydantic and of Python that mean nothing to the author of a JSON file.
JARGON = re.compile(
    r"Input should|Value error|Unable|function-|tuple|literal\[|constrained|discriminator|pydantic|union|"
    r"valid (?!JSON)|instance of|\bdict|\bNone\b|\bstr\b|\bint\b|\bfloat\b|\bbool\b|<class|Error\b"
)
WRONG: dict[type, tuple[Any, ...]] = {
    # A text may also be a quantity, which a number fits.
    str: (None, True, [], {}, [1], {"a": 1}),
    bool: (None, 0, 1, "true", [], {}),
    int: (None, True, "x", "", [], {}, [1], float("nan"), float("inf"), 10**400),
    float: (None, True, "x", "", [], {}, [1], float("nan"), float("-inf"), 10**400),
    list: (None, True, 1, "x", {}, {"a": 1}, [None], [[[]]]),
    dict: (None, True, 1, "x", [], [{}]),
}
NULLABLE = {
    "source",
    "hardware.name",
    "hardware.source",
    "hardware.wafer_link_bytes_per_s",
    "hardware.host",
    "model.source",
    "pipeline.max_in_flight",
}
NULLABLE_WITHIN = re.compile(
    r"hardware\.dies\.0\.(?!at$|at\.).*|.*\.(state_bytes|sparse|output_tokens|prefix_id|prefix_tokens)"
)


def test_the_example_of_the_interface_page() -> None:
    # The page's example has 16 stages on 15 enabled dies; nothing else in it is at odds.
    with pytest.raises(InputError, match=r"^pipeline.stages: 16 is not allowed; expected at most 15, the"):
        Instance.read(interface_example())
    instance = Instance.read(changed(interface_example(), {"pipeline__stages": 15}))
    hardware = instance.hardware
    assert (hardware.link_bytes_per_s, hardware.hop_latency_s, hardware.die.peak_flops) == (5e12, 50e-9, 4.5e15)
    assert (hardware.die.hbm_bytes, hardware.die.layer_overhead_s, len(hardware.live_dies)) == (180e9, 5e-6, 15)
    assert instance.model == load_model("llama3-70b")
    # 80 = 15 * 5 + 5.
    assert instance.fixed_layers == (5,) * 10 + (6,) * 5
    assert (instance.costs.kind, instance.objective) == ("roofline", "mean_latency")
    assert instance.pipeline.max_in_flight is None


def test_the_example_is_the_one_of_the_page() -> None:
    page = shared_path("spec/interface.md").read_text(encoding="utf-8")
    block = re.search(r"## Instance.*?```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    assert json.loads(block.group(1)) == interface_example()


def test_everything_loads() -> None:
    instance = Instance.read(everything())
    assert instance.model.layer_kinds == ("global", "local", "global", "local", "latent", "state")
    assert isinstance(instance.costs, FittedSpec)
    assert instance.fixed_layers == (1, 1, 2, 2)
    assert instance.hardware.die_at((1, 1)).hbm_bytes == 32 * 2**20


@pytest.mark.parametrize("source", [interface_example, everything, small_document])
def test_defaults_may_be_left_out(source: Any) -> None:
    document = changed(source(), {"pipeline__stages": 4, "pipeline__layers": "balanced"})
    without = changed(document, {"objective": "mean_latency"})
    del without["objective"]
    assert Instance.read(without).objective == "mean_latency"
    assert Instance.read(changed(document, {"costs": {"kind": "roofline"}})).costs.kind == "roofline"


@pytest.mark.parametrize("path", [path for path, _ in places(everything())], ids=dotted)
def test_values_of_a_wrong_type_are_refused_in_plain_words(path: tuple[str | int, ...]) -> None:
    document = everything()
    value = dict(places(document))[path]
    field = dotted(path)
    for wrong in WRONG[_json_type(value)]:
        if wrong is None and (field in NULLABLE or NULLABLE_WITHIN.fullmatch(field) or value is None):
            continue
        if type(wrong) is int and field == "model.weight_bytes":  # one width for all groups
            continue
        with pytest.raises(InputError) as caught:
            Instance.read(with_value(document, path, wrong))
        error = caught.value
        assert not JARGON.search(str(error)), str(error)
        assert error.allowed
        inside = error.field == field or error.field.startswith(f"{field}.") or not field
        around = field.startswith(f"{error.field}.") or not error.field
        assert inside or around, (str(error), field, wrong)


def _json_type(value: Any) -> type:
    # Null stands where a number may stand.
    return int if value is None else type(value)


OBJECTS = [path for path, value in places(everything()) if isinstance(value, dict) and path[-1:] != ("kinds",)]


@pytest.mark.parametrize("path", OBJECTS, ids=dotted)
def test_unknown_keys_are_refused_at_every_level(path: tuple[str | int, ...]) -> None:
    document = everything()
    known = list(dict(places(document))[path])
    with pytest.raises(InputError) as caught:
        Instance.read(with_value(document, (*path, "colour"), "red"))
    assert (caught.value.field, caught.value.value) == (dotted((*path, "colour")), "red")
    assert "unknown key" in caught.value.allowed
    listed = re.findall(r"\w+", caught.value.allowed)
    assert set(known) <= set(listed)


REQUIRED = {
    "name",
    *("hardware", "hardware.rows", "hardware.columns", "hardware.link_bytes_per_s"),
    *("hardware.die", "hardware.die.peak_flops", "hardware.die.hbm_bytes", "hardware.die.hbm_bytes_per_s"),
    *("hardware.host.host_bytes", "hardware.host.host_bytes_per_s", "hardware.dies.0.at"),
    *("model", "model.name", "model.hidden", "model.vocab", "model.kinds", "model.layers"),
    *("model.weight_bytes", "model.kv_bytes", "model.activation_bytes"),
    *(f"model.weight_bytes.{group}" for group in Widths.model_fields),
    *("model.layers.0.pattern", "model.layers.1.pattern"),
    *(f"model.kinds.{kind}.attention" for kind in ("global", "local", "latent", "state")),
    *(f"model.kinds.{kind}.feed_forward" for kind in ("global", "local", "latent", "state")),
    *(f"model.kinds.{kind}.attention.kind" for kind in ("global", "local", "latent", "state")),
    *(f"model.kinds.{kind}.feed_forward.kind" for kind in ("global", "local", "latent", "state")),
    *(f"model.kinds.global.attention.{key}" for key in ("heads", "kv_heads", "head_dim")),
    *(f"model.kinds.local.attention.{key}" for key in ("heads", "kv_heads", "head_dim", "window")),
    *(f"model.kinds.latent.attention.{key}" for key in ("heads", "kv_lora_rank", "v_head_dim")),
    *(f"model.kinds.latent.attention.{key}" for key in ("qk_nope_head_dim", "qk_rope_head_dim")),
    *(f"model.kinds.latent.attention.sparse.{key}" for key in ("heads", "dim", "top_k")),
    *("model.kinds.state.attention.name", "model.kinds.state.attention.parameters"),
    *("model.kinds.global.feed_forward.width", "model.kinds.state.feed_forward.width"),
    *(f"model.kinds.local.feed_forward.{key}" for key in ("experts", "top_k", "expert_width")),
    *("workload", "workload.trace.0.tokens", "workload.trace.1.tokens"),
    *("pipeline", "pipeline.stages"),
    *("costs.kind", "costs.chunk_s", "costs.prefix_s", "costs.token_s", "costs.pair_s"),
}


def test_missing_keys_are_named_at_every_level() -> None:
    document = everything()
    messages = {}
    for path, _ in places(document):
        if path and isinstance(path[-1], str):
            try:
                Instance.read(without_key(document, path))
            except InputError as error:
                if error.value is MISSING:
                    messages[dotted(path)] = str(error)
    assert messages == {key: f"{key}: nothing is given; expected a value: this key is required" for key in REQUIRED}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipeline__stages": 5}, "pipeline.stages: 5 is not allowed; expected at most 4, the number of enabled dies"),
        (
            {"pipeline__stages": 5, "hardware__rows": 3},
            "pipeline.stages: 5 is not allowed; expected at most 4, the number of layers",
        ),
        ({"pipeline__layers": [1, 1, 1, 2]}, "pipeline.layers: [1, 1, 1, 2] is not allowed; expected numbers with the"),
        ({"pipeline__layers": [2, 2]}, "pipeline.layers: [2, 2] is not allowed; expected one entry for each of the 4"),
        (
            {"pipeline__forbidden_cuts": [4]},
            "pipeline.forbidden_cuts.0: 4 is not allowed; expected a layer index below",
        ),
        ({"model": "llama3-70b"}, "model: 'llama3-70b' is not allowed; expected an object"),
        ({"model": {"name": "llama3"}}, "model.name: 'llama3' is not allowed; expected one of llama3-"),
        ({"model": {"name": 3}}, "model.name: 3 is not allowed; expected a text"),
        ({"model": {"huggingface": None}}, "model.huggingface: null is not allowed; expected a text"),
        ({"model": {"huggingface": "c.json", "name": "x"}}, "model.name: 'x' is not allowed; expected beside hugging"),
        ({"model": {"name": "llama3-70b", "kv_bytes": 0}}, "model.kv_bytes: 0 is not allowed"),
        ({"model": {"name": "llama3-70b", "weight_bytes": "2"}}, "model.weight_bytes: '2' is not allowed"),
        ({"model": {"name": "llama3-70b", "weight_bytes": {"moe": 1}}}, "model.weight_bytes.moe: 1 is not allowed"),
        ({"costs": {"kind": "magic"}}, "costs.kind: 'magic' is not allowed; expected one of 'roofline', 'fitted'"),
        ({"costs": {"kind": "table"}}, 'costs: {"kind": "table"} is not allowed; expected either a path or rows'),
        ({"costs": {"kind": "table", "path": "a.csv", "at": 1}}, "costs.at: 1 is not allowed; expected one of the key"),
        ({"costs": {"kind": "table", "rows": [[1, 0]]}}, "costs.rows.0: [1, 0] is not allowed; expected a list of 3"),
        ({"costs": {"kind": "table", "rows": [[0, 0, 1]]}}, "costs.rows.0.0: 0 is not allowed; expected a number gr"),
        ({"objective": "latency"}, "objective: 'latency' is not allowed; expected 'mean_latency', 'makespan'"),
        ({"name": ""}, "name: '' is not allowed; expected a text that is not empty"),
        ({"schema_version": 2}, "schema_version: 2 is not allowed; expected 1"),
        ({"schema_version": True}, "schema_version: true is not allowed; expected 1"),
        ({"schema_version": 1.0}, "schema_version: 1.0 is not allowed; expected 1"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        small_instance(**changes)
    assert not JARGON.search(str(caught.value))


def test_equal_requests_are_at_least_a_quantum_long_and_a_trace_may_have_shorter_ones() -> None:
    # 300 tokens with 200 cached leave 100 to compute, and the quantum is 256.
    with pytest.raises(InputError, match=r"workload.tokens: 300 .* chunk_quantum \(256\)"):
        small_instance(workload__tokens=300, workload__cached_tokens=200)
    assert small_instance(workload={"trace": [{"tokens": 100}]}).workload.uncached_counts == [100]


@pytest.mark.parametrize("data", [None, 3, "small", [], [small_document()]])
def test_only_objects_are_instances(data: Any) -> None:
    with pytest.raises(InputError, match="expected a JSON object"):
        Instance.read(data)


def test_files_name_themselves_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small_document(hardware__rows=0)), encoding="utf-8")
    with pytest.raises(InputError, match=r"small.json: hardware.rows: 0 is not allowed"):
        Instance.load(path)
    path.write_text(json.dumps(small_document())[:-30], encoding="utf-8")
    with pytest.raises(InputError, match=r"small.json: .* complete, valid JSON"):
        Instance.load(path)
    with pytest.raises(InputError, match=r"none.json: .* existing file"):
        Instance.load(tmp_path / "none.json")


def test_files_load_as_data_do(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(small_document()), encoding="utf-8")
    assert Instance.load(path) == Instance.load(str(path)) == small_instance()


def test_paths_are_relative_to_the_instance_file(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "profile.csv").write_text("chunk,prefix,ms\n256,0,1\n512,0,2.5\n", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    path = folder / "small.json"
    changes = {
        "model": {"huggingface": "config.json", "kv_bytes": 1},
        "costs": {"kind": "table", "path": "profile.csv"},
    }
    path.write_text(json.dumps(small_document(**changes)), encoding="utf-8")
    instance = Instance.load(path)
    assert (instance.model.hidden, instance.model.kv_bytes, instance.model.weight_bytes) == (64, 1, 2)
    # The rows are in place of the path: the instance stands alone.
    assert instance.costs == TableSpec(rows=((256, 0, 0.001), (512, 0, 0.0025)))
    assert Instance.read(instance.canonical()) == instance


CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
}


def test_errors_in_other_files_name_those(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": "x"}), encoding="utf-8")
    path.write_text(json.dumps(small_document(model={"huggingface": "config.json"})), encoding="utf-8")
    with pytest.raises(InputError, match=r"config.json: hidden_size: 'x' is not allowed"):
        Instance.load(path)
    path.write_text(json.dumps(small_document(costs={"kind": "table", "path": "none.csv"})), encoding="utf-8")
    with pytest.raises(InputError, match=r"small.json: costs.path: .*none.csv.* existing file"):
        Instance.load(path)


def test_widths_beside_a_name_replace_those_of_the_catalogue() -> None:
    reference = {"name": "llama3-70b", "weight_bytes": {"attention": 1}, "kv_bytes": 1, "activation_bytes": 4}
    model = small_instance(model=reference).model
    assert model == load_model("llama3-70b").with_bytes({"attention": 1}, 1, 4)
    # A map changes the groups it names and leaves the others.
    assert (model.widths.attention, model.widths.dense, model.kv_bytes, model.activation_bytes) == (1, 2, 1, 4)


def test_widths_beside_a_config_excuse_its_quantisation(tmp_path: Path) -> None:
    config = {**CONFIG, "quantization_config": {"quant_method": "unheard-of"}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    document = small_document(model={"huggingface": "config.json", "weight_bytes": 0.5})
    assert Instance.read(document, base_dir=tmp_path).model.weight_bytes == 0.5


def test_layer_split() -> None:
    assert small_instance(pipeline__stages=3).fixed_layers == (1, 1, 2)
    assert small_instance(pipeline__layers=[1, 1, 1, 1]).fixed_layers == (1, 1, 1, 1)
    assert small_instance(pipeline__layers="free").fixed_layers is None


def test_the_cost_model_is_the_one_asked_for() -> None:
    # t = 0.001 + 0.5*p + 0.25*c + 0 for the whole model of 4 layers; a stage of 1 layer takes a quarter.
    costs = {"kind": "fitted", "chunk_s": 0.001, "prefix_s": 0.5, "token_s": 0.25, "pair_s": 0}
    instance = small_instance(costs=costs)
    seconds = instance.stage_cost.stage_seconds(instance.hardware.die, 0, 1, 1, 8, 2)
    assert float(seconds) == pytest.approx((0.001 + 0.5 * 2 + 0.25 * 8) / 4)


def test_starts_of_balanced_stages() -> None:
    split = small_instance(pipeline__stages=3).fixed_layers
    assert split is not None
    assert list(accumulate(split)) == [1, 2, 4]
