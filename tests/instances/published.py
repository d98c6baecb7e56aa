"""Published sizes of the models whose config.json is among the shared data, each with where it was read.

"checkpoint" is the number of parameters that the safetensors index or header, or a converted GGUF file, states for the
released weights; "card" is the model card. KV bytes a token are at 2 bytes an element and count the layers that keep
every token.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """Total parameters, active ones in billions as the card rounds them (None: dense), KV bytes a token; sources."""

    total: float
    active_billions: str | None
    kv_bytes_per_token: int
    sizes: str
    kv: str


_HEADS = "layers * 2 * KV heads * head size * 2 of the card"
_LATENT = "layers * (512 + 64) * 2 of the card"
_INSIGHTS = "arXiv 2505.09343, table 1"
_MOCAP = "facts/mocap.md, section 1"

PUBLISHED: dict[str, Published] = {
    "MiniMaxAI--MiniMax-M2.7": Published(228_689_764_864, "10", 62 * 2 * 8 * 128 * 2, "checkpoint; card", _HEADS),
    "Qwen--Qwen3-235B-A22B": Published(235_093_634_560, "22", 192_512, "checkpoint; card", _MOCAP),
    "Qwen--Qwen3-235B-A22B-FP8": Published(235_093_634_560, "22", 192_512, "as the bf16 checkpoint", _MOCAP),
    "Qwen--Qwen3-30B-A3B": Published(30_532_122_624, "3.3", 48 * 2 * 4 * 128 * 2, "checkpoint; card", _HEADS),
    "Qwen--Qwen3-32B": Published(32_762_123_264, None, 64 * 2 * 8 * 128 * 2, "checkpoint", _HEADS),
    "Qwen--Qwen3.5-35B-A3B": Published(
        34_660_610_688, "3", 10 * 2 * 2 * 256 * 2, "checkpoint, text model; card", _HEADS
    ),
    "deepseek-ai--DeepSeek-V3": Published(671_026_419_200, "37", 70_272, "checkpoint; card", _INSIGHTS),
    "google--gemma-4-26B-A4B": Published(25.2e9, "3.8", 5 * 2 * 2 * 512 * 2, "card", _HEADS),
    "meta-llama--Llama-4-Scout-17B-16E-Instruct": Published(
        107.77e9, "17", 12 * 2 * 8 * 128 * 2, "text model in llama.cpp (109 B with vision); card", _HEADS
    ),
    "meta-llama--Meta-Llama-3.1-405B": Published(405_853_388_800, None, 516_096, "checkpoint", _INSIGHTS),
    "meta-llama--Meta-Llama-3.1-70B": Published(70_553_706_496, None, 327_680, "checkpoint", _MOCAP),
    "meta-llama--Meta-Llama-3.1-8B": Published(8_030_261_248, None, 32 * 2 * 8 * 128 * 2, "checkpoint", _HEADS),
    "microsoft--phi-4": Published(14_659_507_200, None, 40 * 2 * 10 * 128 * 2, "checkpoint", _HEADS),
    "mistralai--Devstral-2-123B-Instruct": Published(
        122_610_069_504 + 2 * (131_072 - 32_768) * 12_288,
        None,
        360_448,
        "checkpoint of Mistral-Large-2407 (122 610 069 504), of the same layers, with the larger vocabulary",
        _MOCAP,
    ),
    "mistralai--Mixtral-8x22B-v0.1": Published(140_620_634_112, "39", 56 * 2 * 8 * 128 * 2, "checkpoint; card", _HEADS),
    "moonshotai--Kimi-K2-Instruct": Published(1_026_408_232_448, "32", 61 * 576 * 2, "checkpoint; card", _LATENT),
    "nvidia--DeepSeek-V3.1-NVFP4": Published(671_026_419_200, "37", 70_272, "as DeepSeek-V3", _INSIGHTS),
    "nvidia--Llama-3.1-70B-Instruct-FP8": Published(70_553_706_496, None, 327_680, "as Llama-3.1-70B", _MOCAP),
    "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": Published(
        31_577_940_288, "3.2", 6 * 2 * 2 * 128 * 2, "checkpoint; card (3.6 with embeddings)", _HEADS
    ),
    "openai--gpt-oss-120b": Published(
        116_829_156_672, "5.13", 36_864, "checkpoint; card", "spec, section 2 (18 full layers)"
    ),
    "zai-org--GLM-5.2": Published(
        743_377_019_904, "40", 78 * 576 * 2, "checkpoint without its MTP layer; card", _LATENT
    ),
}
