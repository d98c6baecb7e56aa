"""Qwen3-235B-A22B-FP8 on 32 H20: two published times to first token give the other two."""

from __future__ import annotations

import pytest

from tests.performance.h20 import (
    BF16_FLOPS,
    FP8_FLOPS,
    PUBLISHED_S,
    Efficiencies,
    fitted,
    instance,
    replayed_s,
    unfilled_s,
)


def test_two_lengths_predict_the_other_two() -> None:
    share = fitted((131072, 1048576))
    for tokens, seconds in PUBLISHED_S.items():
        assert replayed_s(tokens, share) == pytest.approx(seconds, rel=0.05)
    # Attention at 92 % of the bf16 peak: H20 has few FLOPs for its bandwidth, and its kernels come close.
    assert share.attention * FP8_FLOPS / BF16_FLOPS == pytest.approx(0.92, abs=0.02)
    assert share.gemm == pytest.approx(0.64, abs=0.03)


def test_matrix_products_seem_slow_where_the_filling_is_not_replayed() -> None:
    # Everything that grows with the tokens then falls to them: 0.61 s at the fp8 peak for 128K tokens look like 4 s.
    share = fitted((131072, 1048576), unfilled_s)
    assert share.gemm < 0.2
    for tokens, seconds in PUBLISHED_S.items():
        assert unfilled_s(tokens, share) == pytest.approx(seconds, rel=0.05)


def test_eight_groups_of_four_in_four_nodes() -> None:
    stated = instance(131072, Efficiencies(0.5, 0.4))
    hardware = stated.hardware
    assert (hardware.total_rows, hardware.total_columns, hardware.wafers) == (1, 8, (1, 4))
    # Four H20 together: 4 * 296 TFLOP/s, 4 * 96 GB, NVLink and ports of all four.
    assert (hardware.die.peak_flops, hardware.die.hbm_bytes) == (4 * 296e12, 4 * 96e9)
    assert (hardware.link_bytes_per_s, hardware.seam_bytes_per_s) == (4 * 450e9, 4 * 50e9)
