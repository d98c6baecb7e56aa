"""Fitting: exact rows, noise, slow samples, rows that cannot tell coefficients apart, and the other shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.costs import FittedSpec
from instances.errors import InputError
from solver.fitting import Fit, Samples, fit_samples
from tests.solver.fitting.rows import PREFIXES, SPEC, disturbed, made

TRUTH = [SPEC.chunk_s, SPEC.prefix_s, SPEC.token_s, SPEC.pair_s]


def found(fit: Fit) -> list[float]:
    return [fit.spec.chunk_s, fit.spec.prefix_s, fit.spec.token_s, fit.spec.pair_s]


@given(st.tuples(*[st.floats(0.5, 2)] * 4), st.sampled_from([None, 0, 1, 2]))
def test_exact_rows_give_their_coefficients_back(factors: tuple[float, ...], absent: int | None) -> None:
    truth = np.array(TRUTH) * np.array(factors)
    if absent is not None:
        truth[absent] = 0
    spec = FittedSpec(chunk_s=truth[0], prefix_s=truth[1], token_s=truth[2], pair_s=truth[3])
    fit = fit_samples(made(spec))
    assert found(fit) == pytest.approx(truth.tolist(), rel=1e-6, abs=1e-14)
    assert fit.p95_error < 1e-7
    assert fit.undetermined == () and fit.kept.all()


@given(st.integers(0, 2**32 - 1))
def test_noise_moves_the_coefficients_a_little(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(1, 0.02, len(made().seconds))
    fit = fit_samples(disturbed(made(), noise))
    # Errors of 2 %: 95 % of them are below 3.9 % where none was fitted away.
    assert fit.median_error < 0.03 and fit.p95_error < 0.08
    longest = fit.seconds(np.ones(1), np.array([4096.0]), np.array([32768.0]))[0]
    assert longest == pytest.approx(made().seconds[-1], rel=0.05)


@pytest.mark.parametrize("factor", [1.6, 33.0, 0.3])
@pytest.mark.parametrize("row", [0, 11])
def test_one_sample_that_is_far_off_does_not_count(row: int, factor: float) -> None:
    # A first sample of 7234 ms in place of 221 ms (sglang#17198) is 33 times too slow.
    fit = fit_samples(disturbed(made(), {row: factor}))
    assert found(fit) == pytest.approx(TRUTH, rel=1e-5)
    assert (~fit.kept).nonzero()[0].tolist() == [row]
    assert fit.relative_errors[row] == pytest.approx(1 / factor - 1, rel=1e-4)


def test_a_slow_first_sample_amid_noise() -> None:
    noise = np.random.default_rng(5).normal(1, 0.02, len(made().seconds))
    clean = fit_samples(disturbed(made(), noise))
    noise[0] *= 33
    slow = fit_samples(disturbed(made(), noise))
    assert not slow.kept[0] and slow.kept[1:].all()
    assert slow.p95_error < 1.5 * clean.p95_error


def test_many_slow_rows_among_very_many() -> None:
    # 20 000 rows with 2 % noise, one in 50 three times too slow: 400 go, and the rest give the coefficients.
    generator = np.random.default_rng(2)
    factors = generator.normal(1, 0.02, 20_000)
    slow = generator.permutation(20_000)[:400]
    factors[slow] *= 3
    few = made()
    batch, chunk, prefix, seconds = (np.tile(part, 1000) for part in (few.batch, few.chunk, few.prefix, few.seconds))
    rows = Samples(batch, chunk, prefix, seconds)
    fit = fit_samples(disturbed(rows, factors))
    assert (~fit.kept).nonzero()[0].tolist() == sorted(slow.tolist())
    assert found(fit) == pytest.approx(TRUTH, rel=0.02)


def test_many_rows_that_are_off_are_kept() -> None:
    # Half of the rows take twice as long: that is no slip, and shows in the errors.
    fit = fit_samples(disturbed(made(), dict.fromkeys(range(0, 20, 2), 2.0)))
    assert fit.kept.all() and fit.p95_error > 0.2


def test_coefficients_are_never_negative() -> None:
    # Time falls with the prefix: the best coefficient that is allowed is 0.
    rows = [(chunk, prefix, 1.0 + chunk - prefix / 1e6) for chunk in (1, 2, 4, 8) for prefix in (0, 1000, 5000)]
    fit = fit_samples(Samples.from_rows(rows))
    assert min(found(fit)) >= 0 and fit.spec.prefix_s == 0


def test_batches_count_everything_but_the_overhead_for_each_sequence() -> None:
    # 1e-3 + 3 * (1e-7 * 1024 + 1e-6 * 512 + 1e-10 * (2 * 1024 * 512 + 512 * 512)) at a batch of 3.
    single = made()
    rows = [(c, p, t, 1.0) for c, p, t in zip(single.chunk, single.prefix, single.seconds, strict=True)]
    rows += [(c, p, 1e-3 + 3 * (t - 1e-3), 3.0) for c, p, t, _ in rows]
    fit = fit_samples(Samples.from_rows(rows))
    assert found(fit) == pytest.approx(TRUTH, rel=1e-6)


def test_what_the_rows_cannot_tell_is_named() -> None:
    # Without a prefix: overhead, tokens and pairs only.
    whole = fit_samples(made(FittedSpec(chunk_s=1e-3, prefix_s=0, token_s=1e-6, pair_s=1e-10), prefixes=(0,)))
    assert whole.undetermined == ("prefix_s",)
    assert whole.spec.pair_s == pytest.approx(1e-10, rel=1e-6)
    # One prefix throughout: its own term looks like the overhead.
    assert fit_samples(made(prefixes=(1024,))).undetermined == ("prefix_s",)
    # One chunk size: a line in the prefix, which two coefficients describe.
    assert fit_samples(made(chunks=(512,))).undetermined == ("chunk_s", "prefix_s")
    single = fit_samples(made(chunks=(512,), prefixes=(0,)))
    assert single.undetermined == ("chunk_s", "prefix_s", "pair_s")
    assert single.p95_error == pytest.approx(0, abs=1e-12)


def test_the_rectangle_is_fitted_with_its_own_pairs() -> None:
    rows = [(c, p, 1e-3 + 1e-6 * c + 1e-9 * c * (p + c)) for c in (256, 512, 1024, 2048) for p in PREFIXES]
    samples = Samples.from_rows(rows)
    rectangle, causal = fit_samples(samples, "rectangle"), fit_samples(samples)
    assert found(rectangle) == pytest.approx([1e-3, 0, 1e-6, 1e-9], rel=1e-6, abs=1e-14)
    assert causal.total_error(samples) > 100 * rectangle.total_error(samples)


def test_deviations_shrink_with_more_rows() -> None:
    generator = np.random.default_rng(3)
    few = disturbed(made(), generator.normal(1, 0.03, 20))
    parts = [disturbed(made(), generator.normal(1, 0.03, 20)) for _ in range(16)]
    many = Samples.from_rows(
        (c, p, t) for part in parts for c, p, t in zip(part.chunk, part.prefix, part.seconds, strict=True)
    )
    # Sixteen times the rows: a quarter of the deviation, give or take what noise there is in it.
    less, more = (fit_samples(rows).deviation_s(4096, 131072) for rows in (many, few))
    assert less is not None and more is not None
    assert 0.15 < less / more < 0.4


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="at least one"):
        fit_samples(made().chosen(np.zeros(20, dtype=np.bool_)))
