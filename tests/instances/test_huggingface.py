"""Rules of reading a config.json, each on a small config."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instances.errors import InputError
from instances.huggingface import read_config
from instances.huggingface.runs import layer_runs
from instances.model import Model
from instances.parameters import parameters_total, summary
from tests.instances.configs import DEEPSEEK, LLAMA, MIXTRAL, Reader, without


def attention_of(model: Model, layer: int = 0) -> Any:
    return model.kinds[model.layer_kinds[layer]].attention


def feed_forward_of(model: Model, layer: int = 0) -> Any:
    return model.kinds[model.layer_kinds[layer]].feed_forward


def test_a_plain_llama(read: Reader) -> None:
    model = read(LLAMA)
    assert (model.name, model.hidden, model.vocab, model.tied_embeddings) == ("some-model", 64, 100, False)
    assert model.layer_kinds == ("full-dense",) * 4
    attention = attention_of(model)
    assert (attention.heads, attention.kv_heads, attention.head_dim) == (8, 2, 8)
    assert (feed_forward_of(model).width, feed_forward_of(model).gated) == (96, True)
    assert model.source is not None and "some-model" in model.source and str(read.file) not in model.source


def test_head_counts_and_dimensions(read: Reader) -> None:
    # Without key-value heads: as many as heads (MHA). One of them: MQA.
    assert attention_of(read(without(LLAMA, "num_key_value_heads"))).kv_heads == 8
    assert attention_of(read({**LLAMA, "num_key_value_heads": 1})).kv_heads == 1
    # A head_dim that is given stands, though hidden / heads is 8.
    assert attention_of(read({**LLAMA, "head_dim": 32})).head_dim == 32
    assert read.refusal({**LLAMA, "num_attention_heads": 10}).field == "head_dim"
    assert read.refusal({**LLAMA, "num_key_value_heads": 3}).field == "num_key_value_heads"


@pytest.mark.parametrize(
    "key", ["model_type", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"]
)
def test_a_missing_key_is_named(read: Reader, key: str) -> None:
    assert read.refusal(without(LLAMA, key)).field == key


@pytest.mark.parametrize("key", ["kv_lora_rank", "qk_nope_head_dim", "v_head_dim", "num_experts_per_tok"])
def test_a_missing_key_of_mla_or_experts_is_named(read: Reader, key: str) -> None:
    assert read.refusal(without(DEEPSEEK, key)).field == key


@pytest.mark.parametrize(
    ("model_type", "key"),
    [
        ("gemma3_text", "head_dim"),  # 256 in the model class, and not hidden / heads as for Llama
        ("qwen3", "head_dim"),
        ("mistral", "num_key_value_heads"),  # 8, and not as many as heads
        ("mixtral", "num_local_experts"),
        ("qwen3_moe", "num_experts"),
        ("qwen3_moe", "moe_intermediate_size"),
        ("deepseek_v3", "n_shared_experts"),
        ("deepseek_v3", "first_k_dense_replace"),
        ("qwen2_moe", "shared_expert_intermediate_size"),
        ("gemma4_text", "global_head_dim"),
    ],
)
def test_what_the_model_class_would_fill_in_is_asked_for(read: Reader, model_type: str, key: str) -> None:
    whole = {**DEEPSEEK, "model_type": model_type, "head_dim": 8, "sliding_window": None, "num_experts": 16}
    whole |= {"shared_expert_intermediate_size": 12, "global_head_dim": 8}
    names = ("num_experts", "n_routed_experts", "num_local_experts")
    error = read.refusal(without(whole, *(names if key in names else (key,))))
    assert error.field == ("num_experts" if key in names else key) and "default" in error.allowed


def test_lists_of_dense_layers_hold_numbers(read: Reader) -> None:
    qwen = {**MIXTRAL, "model_type": "qwen3_moe", "moe_intermediate_size": 12}
    assert read.refusal({**qwen, "mlp_only_layers": ["1"]}).field == "mlp_only_layers"


@pytest.mark.parametrize("value", [0, -1, 2.5, "8", True])
def test_impossible_numbers_are_refused(read: Reader, value: Any) -> None:
    assert read.refusal({**LLAMA, "num_hidden_layers": value}).field == "num_hidden_layers"


def test_no_object_and_no_json_are_refused(read: Reader) -> None:
    assert "object" in str(read.refusal([1]))
    read.file.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="valid JSON"):
        read_config(read.file)


@pytest.mark.parametrize(
    "key", ["mamba_d_state", "attn_res_block_size", "cross_attention_layers", "num_experts_of_a_new_kind", "qk_rank"]
)
def test_an_unknown_key_that_sounds_like_a_shape_is_refused(read: Reader, key: str) -> None:
    assert read.refusal({**LLAMA, key: 3}).field == key
    # Switched off, or about something else, it does not matter.
    assert read({**LLAMA, key: None, "bos_token_id": 7}).hidden == 64


def test_unknown_architectures_are_refused(read: Reader) -> None:
    error = read.refusal({**LLAMA, "model_type": "perceiver"})
    assert error.field == "model_type" and "llama" in str(error)
    assert read.refusal({**LLAMA, "is_encoder_decoder": True}).field == "is_encoder_decoder"
    assert read.refusal({**LLAMA, "attention_chunk_size": 64}).field == "attention_chunk_size"


def test_attention_inside_chunks(read: Reader) -> None:
    llama4 = {**MIXTRAL, "model_type": "llama4_text", "attention_chunk_size": 64, "num_hidden_layers": 5}
    llama4 |= {"head_dim": 8, "intermediate_size_mlp": 200, "use_qk_norm": True}
    model = read(llama4)
    # Each fourth layer is without rotary positions and sees everything.
    assert model.layer_kinds == ("chunked-moe",) * 3 + ("full-moe", "chunked-moe")
    attention, experts = attention_of(model), feed_forward_of(model)
    assert (attention.kind, attention.window, attention.chunked) == ("sliding", 64, True)
    # One shared expert as wide as the others; norms of queries and keys have no weights.
    assert (experts.expert_width, experts.shared_width, attention.qk_norm) == (96, 96, "none")
    mixed = read({**llama4, "interleave_moe_layer_step": 2, "no_rope_layers": [1, 1, 1, 1, 0]})
    assert mixed.layer_kinds == ("chunked-dense", "chunked-moe") * 2 + ("full-dense",)
    assert feed_forward_of(mixed).width == 200
    assert read({**llama4, "moe_layers": [4]}).layer_kinds[3:] == ("full-dense", "chunked-moe")
    listed = {**llama4, "layer_types": ["full_attention"] * 4 + ["chunked_attention"]}
    assert read(listed).layer_kinds == ("full-moe",) * 4 + ("chunked-moe",)
    assert read.refusal(without(llama4, "attention_chunk_size")).field == "attention_chunk_size"
    assert read.refusal({**llama4, "no_rope_layers": [1]}).field == "no_rope_layers"
    assert read.refusal({**llama4, "moe_layers": [5]}).field == "moe_layers"


def test_extra_prediction_layers_when_asked_for(read: Reader) -> None:
    config = {**DEEPSEEK, "num_nextn_predict_layers": 2}
    plain, extra = read(config), read(config, prediction_layers=1)
    assert plain.layer_count == 4
    assert extra.layer_kinds == (*plain.layer_kinds, "mla-moe-prediction")
    # One more layer of the last kind, a matrix of 2*64*64, and three norms of 64.
    one = parameters_total(plain) - parameters_total(read({**config, "num_hidden_layers": 3}))
    assert parameters_total(extra) - parameters_total(plain) == one + 2 * 64 * 64 + 3 * 64
    with pytest.raises(InputError) as caught:
        read(config, prediction_layers=3)
    assert caught.value.field == "num_nextn_predict_layers"


def test_a_prediction_layer_picks_its_own_tokens(read: Reader) -> None:
    sparse = {**DEEPSEEK, "model_type": "glm_moe_dsa", "index_topk": 32, "index_n_heads": 2, "index_head_dim": 8}
    sparse |= {"indexer_types": ["full", "shared", "full", "shared"], "num_nextn_predict_layers": 1}
    model = read(sparse, prediction_layers=1)
    assert [attention_of(model, layer).sparse.shared for layer in (3, 4)] == [True, False]


def test_biases(read: Reader) -> None:
    model = read({**LLAMA, "attention_bias": True, "mlp_bias": True})
    assert attention_of(model).qkv_bias and attention_of(model).output_bias and feed_forward_of(model).bias
    qwen = read({**LLAMA, "model_type": "qwen2", "use_sliding_window": False})
    assert attention_of(qwen).qkv_bias and not attention_of(qwen).output_bias
    assert read.refusal({**MIXTRAL, "attention_bias": True}).field == "attention_bias"
    assert read.refusal({**LLAMA, "use_qk_norm": True}).field == "use_qk_norm"


def test_tied_heads(read: Reader) -> None:
    assert read({**LLAMA, "tie_word_embeddings": True}).tied_embeddings
    # What the model class does where the config is silent.
    gemma = {**LLAMA, "model_type": "gemma3_text", "head_dim": 8, "sliding_window": 16}
    assert read(gemma).tied_embeddings
    assert not read({**gemma, "tie_word_embeddings": False}).tied_embeddings


def test_a_nested_text_model(read: Reader) -> None:
    inner = without(LLAMA, "torch_dtype", "model_type") | {"head_dim": 8}
    outer = {"model_type": "gemma3", "torch_dtype": "float32", "text_config": {**inner, "sliding_window": 16}}
    model = read({**outer, "vision_config": {"hidden_size": 9, "num_hidden_layers": 2}})
    assert (model.hidden, model.layer_count, model.kv_bytes) == (64, 4, 4)
    assert read({**outer, "tie_word_embeddings": False}).tied_embeddings is False
    error = read.refusal({**outer, "text_config": without(inner, "vocab_size")})
    assert error.field == "text_config.sliding_window"
    error = read.refusal({**outer, "text_config": {**without(inner, "vocab_size"), "sliding_window": 16}})
    assert error.field == "text_config.vocab_size"


def test_dtypes(read: Reader) -> None:
    assert read({**LLAMA, "torch_dtype": "float32"}).weight_bytes == 4
    assert read({**without(LLAMA, "torch_dtype"), "dtype": "float16"}).kv_bytes == 2
    # The interface page: 2 where none is named.
    assert read(without(LLAMA, "torch_dtype")).activation_bytes == 2
    assert read.refusal({**LLAMA, "torch_dtype": "int3"}).field == "torch_dtype"


def test_experts(read: Reader) -> None:
    experts = feed_forward_of(read(MIXTRAL))
    # Without moe_intermediate_size an expert has intermediate_size.
    assert (experts.experts, experts.top_k, experts.expert_width, experts.shared_width) == (8, 2, 96, 0)
    assert feed_forward_of(read({**MIXTRAL, "moe_intermediate_size": 24})).expert_width == 24
    renamed = {**without(MIXTRAL, "num_local_experts", "num_experts_per_tok"), "num_experts": 8, "experts_per_token": 3}
    assert feed_forward_of(read(renamed)).top_k == 3
    assert read.refusal({**MIXTRAL, "num_experts": 9}).field == "num_experts"
    assert read.refusal({**MIXTRAL, "num_experts_per_tok": 9}).field == "num_experts_per_tok"


def test_shared_experts(read: Reader) -> None:
    # A stated width stands; otherwise number * expert width.
    qwen = {**MIXTRAL, "model_type": "qwen2_moe", "moe_intermediate_size": 12, "use_sliding_window": False}
    stated = feed_forward_of(read({**qwen, "shared_expert_intermediate_size": 40}))
    assert (stated.shared_width, stated.shared_gate) == (40, True)
    assert feed_forward_of(read(DEEPSEEK), 1).shared_width == 2 * 12


def test_first_layers_are_dense(read: Reader) -> None:
    model = read(DEEPSEEK)
    assert model.layer_kinds == ("mla-dense", "mla-moe", "mla-moe", "mla-moe")
    assert feed_forward_of(model).width == 96
    assert model.kinds["mla-moe"].active_width == 24 + 4 * 12
    listed = without(DEEPSEEK, "first_k_dense_replace") | {"mlp_layer_types": ["dense", "sparse", "dense", "sparse"]}
    assert read(listed).layer_kinds == ("mla-dense", "mla-moe") * 2
    assert read.refusal({**DEEPSEEK, "mlp_layer_types": ["dense"]}).field == "mlp_layer_types"
    assert read.refusal({**DEEPSEEK, "moe_layer_freq": 2}).field == "moe_layer_freq"


def test_sparse_steps_and_dense_layers_of_qwen(read: Reader) -> None:
    qwen = {**MIXTRAL, "model_type": "qwen3_moe", "use_sliding_window": False, "moe_intermediate_size": 12}
    # Every second layer, counted from 1, has experts; layer 3 is dense by name.
    model = read({**qwen, "decoder_sparse_step": 2, "mlp_only_layers": [3]})
    assert model.layer_kinds == ("full-dense", "full-moe", "full-dense", "full-dense")


def test_latent_attention(read: Reader) -> None:
    # head_dim and num_key_value_heads mean nothing under MLA.
    attention = attention_of(read({**DEEPSEEK, "head_dim": 99, "num_key_value_heads": 3}))
    assert (attention.kv_lora_rank, attention.qk_rope_head_dim, attention.q_lora_rank) == (16, 4, 24)
    assert attention_of(read({**DEEPSEEK, "q_lora_rank": None})).q_lora_rank is None
    assert read.refusal({**DEEPSEEK, "attention_bias": True}).field == "attention_bias"


def test_sparse_attention(read: Reader) -> None:
    sparse = {**DEEPSEEK, "model_type": "glm_moe_dsa", "index_topk": 32, "index_n_heads": 2, "index_head_dim": 8}
    index = attention_of(read(sparse)).sparse
    assert (index.heads, index.dim, index.top_k, index.shared) == (2, 8, 32, False)
    roles = read({**sparse, "indexer_types": ["full", "shared", "shared", "full"]})
    assert [attention_of(roles, layer).sparse.shared for layer in range(4)] == [False, True, True, False]
    assert read.refusal({**sparse, "index_topk_freq": 4}).field == "indexer_types"
    assert read.refusal({**DEEPSEEK, "indexer_types": ["full"] * 4}).field == "index_topk"


def test_sliding_layers_by_list(read: Reader) -> None:
    types = ["sliding_attention", "full_attention"] * 2
    oss = {**MIXTRAL, "model_type": "gpt_oss", "head_dim": 8, "sliding_window": 16, "layer_types": types}
    model = read(oss)
    assert model.layer_kinds == ("sliding-moe", "full-moe") * 2
    assert attention_of(model).window == 16 and attention_of(model).sinks
    assert read.refusal(without(oss, "layer_types")).field == "layer_types"
    assert read.refusal(without(oss, "sliding_window")).field == "sliding_window"
    assert read.refusal({**oss, "layer_types": [*types[:3], "linear_attention"]}).value == "linear_attention"


def test_sliding_layers_by_pattern(read: Reader) -> None:
    gemma = {**LLAMA, "model_type": "gemma3_text", "head_dim": 8, "sliding_window": 16, "num_hidden_layers": 7}
    # Every third is full; without a stated pattern every sixth, as in the model class.
    assert read({**gemma, "sliding_window_pattern": 3}).layer_kinds == (
        *("sliding-dense", "sliding-dense", "full-dense") * 2,
        "sliding-dense",
    )
    assert read(gemma).layer_kinds.index("full-dense") == 5
    assert read.refusal(without(gemma, "sliding_window")).field == "sliding_window"


def test_sliding_layers_by_model_type(read: Reader) -> None:
    mistral = {**LLAMA, "model_type": "mistral"}
    assert read({**mistral, "sliding_window": 16}).layer_kinds == ("sliding-dense",) * 4
    assert read({**mistral, "sliding_window": None}).layer_kinds == ("full-dense",) * 4
    # Without the key Mistral's model class would slide over 4096 tokens.
    assert read.refusal(mistral).field == "sliding_window"
    qwen = {**LLAMA, "model_type": "qwen3", "head_dim": 8, "sliding_window": 16, "max_window_layers": 3}
    assert read({**qwen, "use_sliding_window": False}).layer_kinds == ("full-dense",) * 4
    # Its default is false in the model class.
    assert read(qwen).layer_kinds == ("full-dense",) * 4
    assert read.refusal({**qwen, "use_sliding_window": "no"}).field == "use_sliding_window"
    upper = read({**qwen, "use_sliding_window": True})
    assert upper.layer_kinds == (*("full-dense",) * 3, "sliding-dense")
    assert read.refusal({**LLAMA, "sliding_window": 16}).field == "layer_types"


def test_lightning_layers_are_refused(read: Reader) -> None:
    mini = {**MIXTRAL, "model_type": "minimax_m2", "head_dim": 8, "use_qk_norm": True}
    assert attention_of(read({**mini, "attn_type_list": [1, 1, 1, 1]})).qk_norm == "full"
    assert read.refusal({**mini, "attn_type_list": [1, 0, 1, 1]}).field == "attn_type_list"


def test_a_modelopt_file_beside_the_config(read: Reader) -> None:
    beside = read.file.with_name("hf_quant_config.json")
    beside.write_text(
        json.dumps({"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", "*self_attn*"]}}),
        encoding="utf-8",
    )
    widths = read(DEEPSEEK).widths
    assert (widths.experts, widths.dense, widths.attention, widths.head) == (9 / 16, 9 / 16, 2, 2)
    beside.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="hf_quant_config"):
        read(DEEPSEEK)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.lists(st.one_of(st.integers(0, 5), st.text(max_size=3)), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
HYBRID: dict[str, Any] = {
    **LLAMA,
    "model_type": "qwen3_5_text",
    "head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"] * 2,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
    "mamba_ssm_dtype": "float32",
    "quantization_config": {"quant_method": "fp8"},
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_junk_under_any_key_gives_a_model_or_a_refusal(read: Reader, data: st.DataObject) -> None:
    base = data.draw(st.sampled_from([LLAMA, MIXTRAL, DEEPSEEK, HYBRID]))
    key = data.draw(st.sampled_from(sorted({*base, "head_dim", "sliding_window", "tie_word_embeddings"})))
    total, refusal = 1, str(read.file)
    try:
        total = summary(read({**base, key: data.draw(JUNK)}))["parameters_total"]
    except InputError as error:
        refusal = str(error)
    assert total > 0
    assert str(read.file) in refusal


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60))
def test_runs_expand_to_the_layers(names: list[str]) -> None:
    runs = layer_runs(names)
    assert [name for run in runs for _ in range(run.repeat) for name in run.pattern] == names


def test_runs_find_the_pattern() -> None:
    # Three dense layers, then (local, local, global) four times, then a rest of two.
    runs = layer_runs(["d"] * 3 + ["l", "l", "g"] * 4 + ["l", "l"])
    assert [(run.pattern, run.repeat) for run in runs] == [(("d",), 3), (("l", "l", "g"), 4), (("l",), 2)]
