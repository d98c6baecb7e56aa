"""The engines' chunk predictors: published lists and speedups, each rule by hand, and the methods on instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from instances.errors import InputError
from solver.api import solve
from solver.limits import Limits
from solver.policies.dcpp.predictor import Quadratic, ascend_chunks, profile_sizes, sglang_chunks
from tests.builders import small_instance


def with_share(share: float, base: int) -> Quadratic:
    """Attention's share of a first chunk: rho = a*B/b."""
    return Quadratic(share / base, 1.0, 0.0)


@pytest.mark.parametrize(("share", "chunks"), [(0.274, 96), (0.275, 97), (0.28, 97), (0.287, 97), (0.289, 98)])
def test_ascend_makes_the_published_number_of_chunks(share: float, chunks: int) -> None:
    # 512K tokens from a base of 24K, smoothing 1, least chunk 4096, blocks of 128: 97 chunks, where equal ones are 22.
    sizes = ascend_chunks(512 * 1024, 0, with_share(share, 24576), 24576, 1.0, 4096)
    assert len(sizes) == chunks
    assert sum(sizes) == 512 * 1024
    assert -(-512 * 1024 // 24576) == 22


def test_published_speedups_of_fixed_and_dynamic_chunks() -> None:
    """128K tokens on four stages, base 12K, attention share 0.03: 3.00x fixed and 3.17x dynamic (smoothing 0.65)."""
    base, tokens = 12288, 128 * 1024
    model = with_share(0.03, base)

    def speedup(sizes: list[int]) -> float:
        ends = np.cumsum([0, *sizes], dtype=float)
        times = np.diff(model.square * ends**2 + model.linear * ends)
        return float(times.sum() / ((times.sum() + 3 * times.max()) / 4))

    fixed = [base] * 10 + [tokens - 10 * base]
    assert speedup(fixed) == pytest.approx(3.00, abs=0.005)
    assert speedup(sglang_chunks(tokens, 0, model, base, 0.65)) == pytest.approx(3.17, abs=0.005)


def test_the_next_chunk_takes_as_long_as_the_first() -> None:
    # f = l^2 + 10 l: T = f(10) = 200; after 10 tokens (10 + x)^2 + 10 (10 + x) = 400, x = -15 + sqrt(225 + 200).
    model = Quadratic(1.0, 10.0, 3.0)
    assert model.target_s(10) == 200
    assert model.next_tokens(10, 200) == pytest.approx(-15 + np.sqrt(425))
    assert model.next_tokens(0, 200) == pytest.approx(10)


def test_sglang_rounds_down_keeps_a_quarter_and_starts_static() -> None:
    # f = l^2, T = 1000^2: after 1000 tokens sqrt(2)*1000 - 1000 = 414 -> 384; then 323 -> 320; then 272 -> 256.
    steep = Quadratic(1.0, 0.0, 0.0)
    assert sglang_chunks(2000, 0, steep, 1000, 1.0) == [1000, 384, 320, 256, 40]
    # After 5000 tokens 99 are predicted: a quarter of the base, 250, rounded down.
    assert sglang_chunks(1400, 4000, steep, 1000, 1.0) == [1000, 192, 192, 16]
    # Smoothing 0 is the static base; the last chunk is the rest.
    assert sglang_chunks(2500, 0, steep, 1024, 0.0) == [1024, 1024, 452]
    # A cap on later chunks alone.
    assert sglang_chunks(2000, 0, steep, 1000, 0.0, most=512) == [1000, 512, 488]


def test_ascend_rounds_up_keeps_its_least_chunk_and_its_budget() -> None:
    steep = Quadratic(1.0, 0.0, 0.0)
    # After 1024: sqrt(2)*1024 - 1024 = 424 -> 512; after 1536: 310 -> 384; after 1920: 256 -> 256; then the rest.
    assert ascend_chunks(2400, 0, steep, 1024, 1.0, 1) == [1024, 512, 384, 256, 224]
    assert ascend_chunks(2400, 0, steep, 1024, 1.0, 600) == [1024, 640, 640, 96]
    # Two requests share the budgets of time and tokens: half of each.
    assert ascend_chunks(1200, 0, steep, 1024, 0.0, 1, requests=2) == [512, 512, 176]


def test_cached_tokens_count_as_prefix() -> None:
    model = Quadratic(1.0, 0.0, 0.0)
    late = sglang_chunks(3000, 10_000, model, 1000, 1.0)
    early = sglang_chunks(3000, 0, model, 1000, 1.0)
    assert late[0] == early[0] == 1000
    assert late[1] < early[1]


def test_the_fit_gives_its_coefficients_back_and_refuses_what_engines_refuse() -> None:
    sizes = profile_sizes(4096, 128, 1.25)
    assert (len(sizes), sizes[0], sizes[1]) == (128, 5120, 5080)
    times = [2e-9 * size**2 + 1e-5 * size + 1e-3 for size in sizes]
    found = Quadratic.fit(sizes, times)
    assert (found.square, found.linear) == pytest.approx((2e-9, 1e-5), rel=1e-6)
    # Falling at first: the linear term counts as 0.
    assert Quadratic.fit(sizes, [(size - 1000) ** 2 for size in sizes]).linear == 0.0
    with pytest.raises(InputError, match="grow faster"):
        Quadratic.fit(sizes, [np.sqrt(size) for size in sizes])
    with pytest.raises(InputError, match="at least 8"):
        Quadratic.fit([1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize("method", ["dcpp-sglang", "dcpp-ascend"])
@pytest.mark.parametrize("cost", ["fit", "true"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"workload": {"requests": 3, "tokens": 2000, "cached_tokens": 300}},
        {"workload": {"trace": [{"arrival_s": 0.001 * i, "tokens": 700 + 300 * (i % 3)} for i in range(5)]}},
        {"costs": {"kind": "fitted", "chunk_s": 1e-5, "prefix_s": 1e-9, "token_s": 1e-8, "pair_s": 1e-12}},
    ],
    ids=["equal", "cached", "trace", "fitted"],
)
def test_methods_keep_the_bound(method: str, cost: str, changes: dict[str, Any]) -> None:
    instance = small_instance(pipeline__chunk_quantum=64, pipeline__max_chunks=32, **changes)
    result = solve(instance, method, knobs={"cost": cost}, limits=Limits(time_s=10))
    assert result.plan is not None
    assert result.objective.value is not None
    assert result.objective.bound is not None
    assert result.objective.bound <= result.objective.value
    assert result.details["base_tokens"] % 64 == 0


def test_a_base_and_a_number_of_chunks_are_kept() -> None:
    instance = small_instance(pipeline__chunk_quantum=64, pipeline__max_chunks=32)
    fixed = solve(instance, "dcpp-sglang", knobs={"base": 512, "smoothing": 0}, limits=Limits(time_s=10))
    assert fixed.plan is not None
    assert fixed.plan.chunk_sizes(2048) == (512,) * 4
    counted = solve(instance, "dcpp-ascend", chunks=3, limits=Limits(time_s=10))
    assert counted.plan is None or len(counted.plan.chunk_sizes(2048)) == 3
