"""Where engines put the layers that do not divide evenly, if nobody tells them (facts of mid 2026).

Files: ``vllm/distributed/utils.py`` and ``sglang/srt/distributed/utils.py`` (get_pp_indices),
``tensorrt_llm/mapping.py`` (tensor_split), ``gllm`` (ceil(L/P) each), vLLM-Ascend's ``get_vpp_indices``. SGLang's
larger stages are the last ones, as those of a balanced split are here.
"""

from __future__ import annotations

from instances.pipeline import balanced_layers


def sglang_split(layers: int, stages: int) -> tuple[int, ...]:
    """One more for the last stages."""
    return balanced_layers(layers, stages)


def tensorrt_split(layers: int, stages: int) -> tuple[int, ...]:
    """One more for the first stages."""
    return balanced_layers(layers, stages)[::-1]


def vllm_split(layers: int, stages: int) -> tuple[int, ...]:
    """One more for the stages before the last, which has the head (vllm #13839)."""
    small, larger = divmod(layers, stages)
    return (*balanced_layers(layers - small, stages - 1), small) if larger else (small,) * stages


def gllm_split(layers: int, stages: int) -> tuple[int, ...]:
    """The ceiling for all but the last, which has the rest, even where that is nothing or less."""
    most = -(-layers // stages)
    return (most,) * (stages - 1) + (layers - most * (stages - 1),)


def vpp_split(layers: int, stages: int) -> tuple[int, ...]:
    """Virtual stages 0 .. 2N-1 of a V, one more for the first."""
    return tensorrt_split(layers, 2 * stages)
