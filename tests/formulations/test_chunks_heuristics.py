"""The single-label recurrence and the cap scan: right where they should be, wrong where they are known to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.chunks.exact import solve_chunks
from formulations.chunks.single_label import single_label_chunks
from formulations.chunks.terapipe import terapipe_chunks
from instances.errors import InputError
from tests.formulations.chunk_cases import brute_force, random_tables, smooth_table, toy_table, value_of


def test_single_label_on_the_toy() -> None:
    assert single_label_chunks(toy_table(0.0), 2.0, 3).cuts == [7, 10, 12]
    assert single_label_chunks(toy_table(0.0), 2.0, 3).value == 134.0
    assert single_label_chunks(toy_table(2.0), 2.0, 3).value == 180.0


def test_single_label_loses_where_two_labels_are_needed() -> None:
    # Suffix 1..4 in two chunks: (40, 60) has sum 100, max 60, score 160; (52, 50) has 102, 52, 154 and is kept.
    # The first chunk takes 60 anyway, so the label thrown away was the better one: 160+60 against 162+60.
    t = np.full((5, 5), 1000.0)
    t[0, 1] = 60.0
    t[1, 2], t[2, 4] = 40.0, 60.0
    t[1, 3], t[3, 4] = 52.0, 50.0
    assert single_label_chunks(t, 1.0, 3).value == 222.0
    assert solve_chunks(t, t, 1.0, 1.0, 3, 3).value == 220.0


@given(seed=st.integers(0, 10**6), chunks=st.integers(1, 8), kind=st.sampled_from(["smooth", "arbitrary", "gaps"]))
def test_single_label_is_a_plan_no_better_than_the_optimum(seed: int, chunks: int, kind: str) -> None:
    t, _ = random_tables(seed, 8, kind)
    best = brute_force(t, t, 1.0, 15.0, chunks, chunks)
    result = single_label_chunks(t, 15.0, chunks)
    assert (result.value is None) == (best is None)
    if result.value is not None:
        assert best is not None
        assert len(result.cuts) == chunks
        assert result.value == pytest.approx(value_of(t, t, 1.0, 15.0, result.cuts), rel=1e-12)
        assert result.value >= best * (1 - 1e-12)


@pytest.mark.parametrize("chunks", [2, 5, 9])
def test_single_label_is_exact_on_smooth_costs(chunks: int) -> None:
    # The sum of overhead + token*l + pair*l*(p+l/2) does not depend on the cuts, so only the maximum matters.
    t = smooth_table(40, 1.0, 1.0, 0.05)
    exact = solve_chunks(t, t, 1.0, 15.0, chunks, chunks)
    assert single_label_chunks(t, 15.0, chunks).value == pytest.approx(exact.value, rel=1e-9)


@pytest.mark.parametrize("chunks", [0, 5])
def test_single_label_refuses_impossible_counts(chunks: int) -> None:
    with pytest.raises(InputError, match="chunks"):
        single_label_chunks(np.ones((5, 5)), 1.0, chunks)


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["smooth", "kinked", "arbitrary", "coarse", "gaps"]),
    counts=st.tuples(st.integers(1, 8), st.integers(1, 8)).map(sorted),
    A=st.sampled_from([0.0, 1.0, 2.5]),
)
def test_terapipe_without_gap_is_exact(seed: int, kind: str, counts: list[int], A: float) -> None:
    t, u = random_tables(seed, 8, kind)
    fewest, most = counts
    best = brute_force(t, u, A, 9.0, fewest, most)
    result = terapipe_chunks(t, u, A, 9.0, most, gap=0.0, min_chunks=fewest)
    assert result.value == (None if best is None else pytest.approx(best, rel=1e-9))


def test_terapipe_skip_rule_loses() -> None:
    # K = 10. Caps 1.000, 1.005, 1.900 ms; 1.005 lies within 1e-5 s of 1.000 and is skipped, so the two chunks
    # (2.005 + 9*1.005 = 11.05 ms) are only met under 1.900, where the single chunk has the smaller sum: 10*1.9.
    t = np.zeros((3, 3))
    t[0, 1], t[1, 2], t[0, 2] = 0.001, 0.001005, 0.0019
    assert terapipe_chunks(t, t, 1.0, 9.0).value == pytest.approx(0.0190)
    assert terapipe_chunks(t, t, 1.0, 9.0, gap=0.0).value == pytest.approx(0.01105)
    assert solve_chunks(t, t, 1.0, 9.0, None).value == pytest.approx(0.01105)


def test_terapipe_limits_the_number_of_caps() -> None:
    t = smooth_table(60, 1.0, 1.0, 0.05)
    few = terapipe_chunks(t, t, 1.0, 15.0, gap=0.0, max_caps=20)
    every = terapipe_chunks(t, t, 1.0, 15.0, gap=0.0, max_caps=10**6)
    assert few.paths < 40 < every.paths
    assert few.value is not None
    assert every.value is not None
    assert few.value >= every.value
    assert every.value == pytest.approx(solve_chunks(t, t, 1.0, 15.0, None).value, rel=1e-9)


def test_terapipe_refuses_bad_knobs() -> None:
    with pytest.raises(InputError, match="gap"):
        terapipe_chunks(np.ones((3, 3)), np.ones((3, 3)), 1.0, 1.0, gap=-1.0)
