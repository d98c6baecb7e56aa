"""Where engines put remainder layers: published examples, and what holds of every split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.export.engines.splits import gllm_split, sglang_split, tensorrt_split, vllm_split, vpp_split


def test_61_layers_on_four_stages() -> None:
    assert vllm_split(61, 4) == (15, 15, 16, 15)
    assert sglang_split(61, 4) == (15, 15, 15, 16)
    assert tensorrt_split(61, 4) == (16, 15, 15, 15)
    assert gllm_split(61, 4) == (16, 16, 16, 13)
    assert vpp_split(61, 4) == (8, 8, 8, 8, 8, 7, 7, 7)


def test_gllm_can_leave_the_last_stage_short_or_empty() -> None:
    assert gllm_split(43, 8) == (6,) * 7 + (1,)
    assert gllm_split(9, 8)[-1] == 9 - 2 * 7  # less than nothing


@pytest.mark.parametrize("split", [vllm_split, sglang_split, tensorrt_split])
@given(stages=st.integers(1, 40), more=st.integers(0, 200))
def test_splits_cover_all_layers_evenly(split: object, stages: int, more: int) -> None:
    assert callable(split)
    layers = stages + more
    found = split(layers, stages)
    assert len(found) == stages
    assert sum(found) == layers
    assert max(found) - min(found) <= 1
