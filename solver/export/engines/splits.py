"""Where engines put the layers that do not divide evenly, if nobody tells them (facts of mid 2026).

Files: ``vllm/distributed/utils.py`` and ``sglang/srt/distributed/utils.py`` (get_pp_indices),
``tensorrt_llm/mapping.py`` (tensor_split), ``gllm`` (ceil(L/P) each), vLLM-Ascend's ``get_vpp_indices``.
"""

from __future__ import annotations


def vllm_split(layers: int, stages: int) -> tuple[int, ...]:
    """One more for the stages before the last, from the back: the last has the head (vllm #13839)."""
    small, larger = divmod(layers, stages)
    return tuple(small + (stages - 1 - larger <= stage < stages - 1) for stage in range(stages))


def sglang_split(layers: int, stages: int) -> tuple[int, ...]:
    """One more for the last stages."""
    small, larger = divmod(layers, stages)
    return tuple(small + (stage >= stages - larger) for stage in range(stages))


def tensorrt_split(layers: int, stages: int) -> tuple[int, ...]:
    """One more for the first stages."""
    small, larger = divmod(layers, stages)
    return tuple(small + (stage < larger) for stage in range(stages))


def gllm_split(layers: int, stages: int) -> tuple[int, ...]:
    """The ceiling for all but the last, which has the rest, even where that is nothing or less."""
    most = -(-layers // stages)
    return (most,) * (stages - 1) + (layers - most * (stages - 1),)


def vpp_split(layers: int, stages: int) -> tuple[int, ...]:
    """Virtual stages 0 .. 2N-1 of a V, one more for the first."""
    return tensorrt_split(layers, 2 * stages)
