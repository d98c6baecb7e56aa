"""``waferplan methods`` and ``waferplan models``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instances.catalogue import load_model, model_names
from instances.parameters import summary
from solver.methods import METHODS
from tests.solver.cli.running import waferplan
from tests.solver.cli.test_new import CONFIG


def test_methods_with_their_knobs() -> None:
    rows = waferplan("methods", "--json").json
    assert [row["method"] for row in rows] == list(METHODS)
    for row in rows:
        knobs = METHODS[row["method"]].knobs
        assert {knob["name"]: knob["default"] for knob in row["knobs"]} == {
            name: knob.default for name, knob in knobs.items()
        }
    people = waferplan("methods").out
    for name, method in METHODS.items():
        assert name in people
        for knob, meaning in method.knobs.items():
            assert f"{knob}={meaning.default}" in people


@pytest.mark.parametrize("columns", [80, 120])
def test_tables_fit(columns: int) -> None:
    for command in ("methods", "models"):
        out = waferplan(command, columns=columns).out
        assert "\x1b" not in out
        assert max(map(len, out.splitlines())) <= columns


def test_models_of_the_catalogue() -> None:
    rows = waferplan("models", "--json").json
    assert rows == [summary(load_model(name)) for name in model_names()]
    people = waferplan("models").out.splitlines()
    # One line a model under the heading, never wrapped.
    assert [line.split()[0] for line in people[2:]] == list(model_names())


def test_one_model() -> None:
    assert waferplan("models", "--show", "gpt-oss-120b", "--json").json == summary(load_model("gpt-oss-120b"))
    out = waferplan("models", "--show", "gpt-oss-120b").out
    # 2 * 8 heads * 64 * 2 bytes in each of its 18 full layers (specification, section 2).
    assert "36864 B" in out
    assert "18 sliding-moe" in out


def test_a_config_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    facts = waferplan("models", "--show", path, "--json").json
    # 6 layers with 2 * 2 heads * 16 * 2 bytes a token.
    assert (facts["layers"], facts["kv_bytes_per_token"]) == ({"full-dense": 6}, 768)


def test_one_model_says_what_each_kind_of_layer_keeps() -> None:
    facts = waferplan("models", "--show", "gpt-oss-120b", "--json").json
    # 2 * 8 heads * 64 * 2 bytes in a layer of either kind; a sliding one keeps it for its window only.
    assert facts["kv_bytes_per_token_layer"] == {"sliding-moe": 2048, "full-moe": 2048}
    assert facts["weight_bytes"] == pytest.approx(65.2e9, rel=1e-3)
    out = waferplan("models", "--show", "gpt-oss-120b", columns=200).out
    assert "sliding-moe 2048 B a token, full-moe 2048 B a token" in out
    # 65.249 GB for 116.83 billion parameters: whether a config without a quantization_config means the released weights
    # shows here.
    assert "65.25 GB, 0.5585 B a parameter" in out


def test_prediction_layers_of_a_config(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**CONFIG, "num_nextn_predict_layers": 1}), encoding="utf-8")
    assert waferplan("models", "--show", path, "--json").json["layers"] == {"full-dense": 6}
    shown = waferplan("models", "--show", path, "--prediction-layers", "1", "--json").json
    assert shown["layers"] == {"full-dense": 6, "full-dense-prediction": 1}
    for arguments in (
        ("--show", str(path), "--prediction-layers", "2"),
        ("--show", "llama3-8b", "--prediction-layers", "1"),
        ("--show", str(path), "--prediction-layers", "-1"),
    ):
        outcome = waferplan("models", *arguments)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
        assert "predict" in outcome.err
