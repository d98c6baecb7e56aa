"""What a fit is worth: warnings, contexts it has not seen, and the measured tables."""

from __future__ import annotations

import numpy as np
import pytest

from instances.costs import FittedSpec
from instances.errors import InputError
from solver.fitting import Samples, diagnose, read_samples
from tests.shared_data import shared_path
from tests.solver.fitting.rows import disturbed, made

WHOLE = FittedSpec(chunk_s=1e-3, prefix_s=0, token_s=1e-6, pair_s=1e-10)


def test_exact_rows_need_no_warning() -> None:
    found = diagnose(made())
    assert (found.warnings, found.better_shape, found.min_chunk) == ((), "causal", 256)
    assert found.held_out is not None and found.held_out.p95_error < 1e-6
    # Half of 32768 + 4096; five chunk sizes after 32768.
    assert (found.held_out.fitted_to_tokens, found.held_out.rows) == (18432, 5)


def test_short_chunks_are_left_out_where_there_are_enough_others() -> None:
    everything = made(chunks=(16, 64, 256, 512, 1024))
    rows = disturbed(everything, np.where(everything.chunk < 256, 3.0, 1.0))
    found = diagnose(rows)
    assert (found.min_chunk, found.shorter_rows, found.fit.p95_error < 1e-6) == (256, 8, True)
    assert found.shorter_error == pytest.approx(2 / 3, rel=1e-3)
    assert diagnose(rows, min_chunk=1).fit.p95_error > 0.1
    # Too few long ones: everything is fitted.
    assert diagnose(made(chunks=(16, 64, 256))).min_chunk == 1
    with pytest.raises(InputError, match="4096 tokens, the longest"):
        diagnose(made(), min_chunk=8192)


def test_whole_prompts_say_little_about_prefixes() -> None:
    found = diagnose(made(WHOLE, prefixes=(0,)), extrapolate_to=131072)
    assert any("no row has a prefix" in line for line in found.warnings)
    assert any("prefix_s cannot be told" in line for line in found.warnings)
    assert any("nothing measured says" in line for line in found.warnings)
    assert any("32 times the longest" in line and "do not support" in line for line in found.warnings)


def test_a_constant_prefix_is_named() -> None:
    assert any("every row has the prefix 1024" in line for line in diagnose(made(prefixes=(1024,))).warnings)


def test_extrapolation_is_told_with_its_deviation() -> None:
    noisy = disturbed(made(), np.random.default_rng(1).normal(1, 0.02, 20))
    inside = diagnose(noisy, extrapolate_to=32768)
    assert inside.extrapolation is not None and not any("times the longest" in line for line in inside.warnings)
    beyond = diagnose(noisy, extrapolate_to=65536)
    assert any("1.78 times the longest one measured (36864)" in line for line in beyond.warnings)
    assert not any("do not support" in line for line in beyond.warnings)
    assert any("do not support" in line for line in diagnose(noisy, extrapolate_to=2**20).warnings)
    deviation_s = None if beyond.extrapolation is None else beyond.extrapolation.deviation_s
    assert deviation_s is not None
    # The last 4096 tokens of 65536: 1e-3 + 1e-7*61440 + 1e-6*4096 + 1e-10*(2*61440 + 4096)*4096.
    assert beyond.extrapolation is not None
    expected = 1e-3 + 1e-7 * 61440 + 1e-6 * 4096 + 1e-10 * (2 * 61440 + 4096) * 4096
    assert beyond.extrapolation.seconds == pytest.approx(expected, abs=4 * deviation_s)


def test_only_uncertainty_that_matters_is_told() -> None:
    # The same time everywhere: what is left for prefixes and tokens is rounding, far below a thousandth of a row.
    flat = made(FittedSpec(chunk_s=0.5, prefix_s=0, token_s=0, pair_s=0))
    assert diagnose(flat).warnings == ()
    # 5 % of noise hide an overhead of 20 us, which may yet be a tenth of the shortest chunk's time.
    noise = np.random.default_rng(4).normal(1, 0.05, 20)
    noisy = disturbed(made(FittedSpec(chunk_s=2e-5, prefix_s=1e-7, token_s=1e-6, pair_s=1e-10)), noise)
    assert any("is uncertain" in line for line in diagnose(noisy).warnings)


def test_a_slow_first_row_is_told() -> None:
    (warning,) = diagnose(disturbed(made(), {0: 33.0})).warnings
    assert "first row took 33 times" in warning
    (warning,) = diagnose(disturbed(made(), {7: 0.2})).warnings
    assert "1 of 20 rows" in warning


def test_a_rectangle_is_noticed() -> None:
    rows = [(c, p, 1e-3 + 1e-6 * c + 1e-9 * c * (p + c)) for c in (256, 512, 1024) for p in (0, 4096, 16384)]
    found = diagnose(Samples.from_rows(rows))
    assert found.better_shape == "rectangle"
    assert any("rectangle fits better" in line for line in found.warnings)


def test_as_few_rows_as_coefficients() -> None:
    warnings = diagnose(made(chunks=(512,), prefixes=(0,))).warnings
    assert any(line.startswith("1 row for as many coefficients") for line in warnings)
    # What the errors are is not known then: not 0.
    single = diagnose(made(chunks=(512,), prefixes=(0,)), extrapolate_to=4096)
    assert single.extrapolation is not None and single.extrapolation.deviation_s is None
    assert set(single.plain()["deviation_s"].values()) == {None}
    assert any("standard deviation unknown" in line for line in single.warnings)
    whole = diagnose(made(WHOLE, prefixes=(0,))).plain()["deviation_s"]
    assert whole["prefix_s"] is None and whole["pair_s"] is not None


# Median, 95th percentile and share of all time of the errors with causal attention; share with the rectangle.
MEASURED = {
    "rtxpro6000-qwen3-32b-attention": (0.028, 0.084, 0.029, 0.074),
    "rtxpro6000-llama-3.1-8b-attention": (0.028, 0.248, 0.042, 0.078),
    "rtxpro6000-qwen3-30b-a3b-instruct-2507-attention": (0.030, 0.243, 0.042, 0.078),
}


@pytest.mark.parametrize("name", MEASURED)
def test_measured_attention_is_causal(name: str) -> None:
    found = diagnose(read_samples(shared_path(f"data/measured/{name}.csv")))
    median, p95, total, other = MEASURED[name]
    assert found.fit.median_error == pytest.approx(median, abs=0.001)
    assert found.fit.p95_error == pytest.approx(p95, abs=0.001)
    assert found.fit.total_error(found.samples) == pytest.approx(total, abs=0.001)
    assert found.rectangle.total_error(found.samples) == pytest.approx(other, abs=0.001)
    assert found.rectangle.median_error > 2 * found.fit.median_error
    assert found.better_shape == "causal"
    # Fitted to contexts of at most 9216 tokens, the longer ones are met within 3 % in the median.
    assert found.held_out is not None
    assert found.held_out.fitted_to_tokens == 9216 and found.held_out.median_error < 0.03
    assert not found.fit.undetermined and found.samples.layers == 1


def test_measured_prompts_have_a_floor() -> None:
    """Llama2-70B on eight H100 (Splitwise): flat up to 512 tokens, then linear, then faster than linear."""
    found = diagnose(read_samples(shared_path("data/measured/splitwise-llama2-70b-h100-tp8.csv")))
    assert 0.04 < found.fit.spec.chunk_s < 0.055
    assert found.fit.p95_error == pytest.approx(0.175, abs=0.001)
    assert any("no row has a prefix" in line for line in found.warnings)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-32b", "qwen3-30b-a3b-instruct-2507"])
def test_measured_dense_operators_are_linear_above_a_floor(name: str) -> None:
    found = diagnose(read_samples(shared_path(f"data/measured/rtxpro6000-{name}-dense.csv")))
    fit = found.fit
    assert fit.spec.chunk_s > 0 and fit.p95_error < 0.1
    longest = float(fit.seconds(np.ones(1), np.array([2048.0]), np.zeros(1))[0])
    assert fit.spec.pair_s * 2048**2 < 0.02 * longest
