"""Small config.json files, and what writes and reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.huggingface import read_config
from instances.model import Model

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "torch_dtype": "bfloat16",
}
MIXTRAL: dict[str, Any] = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
DEEPSEEK: dict[str, Any] = {
    **LLAMA,
    "model_type": "deepseek_v3",
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "n_routed_experts": 16,
    "n_shared_experts": 2,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 12,
    "first_k_dense_replace": 1,
}


class Reader:
    """Writes a config and reads it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "config.json"

    def __call__(self, data: Any, **widths: Any) -> Model:
        self.file.write_text(json.dumps(data), encoding="utf-8")
        return read_config(self.file, **widths)

    def refusal(self, data: Any) -> InputError:
        with pytest.raises(InputError) as caught:
            self(data)
        assert str(self.file) in str(caught.value)
        return caught.value


def without(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}
