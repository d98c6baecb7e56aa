"""The catalogue: complete, consistent, and equal to the configs it restates."""

from __future__ import annotations

import pytest

from instances.catalogue import hardware_names, load_hardware, load_model, model_names
from instances.costs import RooflineSpec, make_costs
from instances.errors import InputError
from instances.huggingface import read_config
from tests.shared_data import shared_path

CONFIGS = {
    "deepseek-v3": "deepseek-ai--DeepSeek-V3",
    "devstral-2-123b": "mistralai--Devstral-2-123B-Instruct",
    "gemma-4-26b-a4b": "google--gemma-4-26B-A4B",
    "glm-5.2": "zai-org--GLM-5.2",
    "gpt-oss-120b": "openai--gpt-oss-120b",
    "kimi-k2": "moonshotai--Kimi-K2-Instruct",
    "llama3-405b": "meta-llama--Meta-Llama-3.1-405B",
    "llama3-70b": "meta-llama--Meta-Llama-3.1-70B",
    "llama3-8b": "meta-llama--Meta-Llama-3.1-8B",
    "minimax-m2.7": "MiniMaxAI--MiniMax-M2.7",
    "mixtral-8x22b": "mistralai--Mixtral-8x22B-v0.1",
    "phi-4": "microsoft--phi-4",
    "qwen3-235b": "Qwen--Qwen3-235B-A22B",
    "qwen3-30b-a3b": "Qwen--Qwen3-30B-A3B",
    "qwen3-32b": "Qwen--Qwen3-32B",
}


def test_the_models_of_the_paper_and_more_are_there() -> None:
    names = model_names()
    assert {"llama3-70b", "llama3-405b", "mistral-123b", "qwen3-235b"} < set(names)
    assert set(names) == CONFIGS.keys() | {"gemma-3-27b", "glm-4.5", "mistral-123b"}


@pytest.mark.parametrize("name", model_names())
def test_models_are_named_sourced_and_timed(name: str) -> None:
    model = load_model(name)
    assert model.name == name
    assert model.source
    die = load_hardware("mocap-4x4").die
    seconds = make_costs(model, RooflineSpec()).stage_seconds(die, 0, model.layer_count, 1, 4096, 32768, head=True)
    # Between a model of 3 B active parameters and one of 400 B, on a die of some PFLOP/s.
    assert 5e-3 < float(seconds) < 3


@pytest.mark.parametrize("name", CONFIGS)
def test_models_equal_their_config(name: str) -> None:
    model, config = load_model(name), read_config(shared_path(f"data/hf_configs/{CONFIGS[name]}.json"))
    assert model.layer_kinds == config.layer_kinds
    facts = {"name", "source", "layers"}
    assert model.model_dump(exclude=facts) == config.model_dump(exclude=facts)


def test_mistral_123b_has_the_layers_of_devstral() -> None:
    mistral, devstral = load_model("mistral-123b"), load_model("devstral-2-123b")
    assert (mistral.kinds, mistral.layers, mistral.hidden) == (devstral.kinds, devstral.layers, devstral.hidden)
    assert (mistral.vocab, devstral.vocab) == (32768, 131072)


def test_gemma_3_slides_five_layers_out_of_six() -> None:
    kinds = load_model("gemma-3-27b").layer_kinds
    assert len(kinds) == 62
    assert all((kind == "full-dense") == ((layer + 1) % 6 == 0) for layer, kind in enumerate(kinds))


def test_unknown_names_list_the_closest_first() -> None:
    with pytest.raises(InputError, match=r"'llama-70b'.*one of llama3-70b, ") as caught:
        load_model("llama-70b")
    assert all(name in str(caught.value) for name in model_names())
    with pytest.raises(InputError, match="one of mocap-4x"):
        load_hardware("mocap")


@pytest.mark.parametrize("name", ["../hardware/mocap-4x4", "", "llama3-70b.json"])
def test_names_are_no_paths(name: str) -> None:
    with pytest.raises(InputError):
        load_model(name)


@pytest.mark.parametrize("name", hardware_names())
def test_hardware_is_named_and_sourced(name: str) -> None:
    hardware = load_hardware(name)
    assert hardware.name == name
    assert hardware.source
    assert hardware.mesh().rows == hardware.rows


def test_the_die_of_the_paper() -> None:
    hardware = load_hardware("mocap-4x4")
    die = hardware.die
    assert (hardware.rows, hardware.columns, hardware.link_bytes_per_s) == (4, 4, 5e12)
    assert (die.peak_flops, die.hbm_bytes, die.hbm_bytes_per_s) == (4.5e15, 180e9, 7.7e12)
    # The same die at half the rate for 2-byte numbers.
    assert load_hardware("mocap-4x4-bf16").die == die.model_copy(update={"peak_flops": 2.25e15})
    host = load_hardware("mocap-4x4-host").host
    assert host is not None and (host.host_bytes, host.host_bytes_per_s) == (1e12, 64e9)
