"""The exact chunk search against every cut sequence, closed forms and its own promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.chunks.exact import path_value, solve_chunks
from instances.errors import InputError
from tests.formulations.chunk_cases import brute_force, every_cuts, random_tables, smooth_table, toy_table, value_of

KINDS = ("smooth", "kinked", "arbitrary", "coarse", "gaps")


@given(
    seed=st.integers(0, 10**6),
    quanta=st.integers(1, 9),
    kind=st.sampled_from(KINDS),
    weights=st.tuples(st.sampled_from([0.0, 1.0, 2.5]), st.sampled_from([0.0, 1.0, 15.0])),
    counts=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_exact_equals_brute_force(
    seed: int, quanta: int, kind: str, weights: tuple[float, float], counts: tuple[int, int]
) -> None:
    t, u = random_tables(seed, quanta, kind)
    fewest, most = min(*counts, quanta), min(max(counts), quanta)
    best = brute_force(t, u, *weights, fewest, most)
    result = solve_chunks(t, u, *weights, most, fewest)
    assert result.exact
    if best is None:
        assert result.cuts == []
        assert result.value is None
        assert result.bound is None
        return
    assert result.value == pytest.approx(best, rel=1e-9)
    assert result.bound is not None
    assert result.bound <= best * (1 + 1e-12)
    assert result.bound == pytest.approx(best, rel=1e-8)
    assert fewest <= len(result.cuts) <= most
    assert value_of(t, u, *weights, result.cuts) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(
    ("per_token", "chunks", "value"),
    [
        # 12 positions, three stages: sum 78 + 2*max. Twelve single chunks: 78 + 2*12.
        (0.0, None, 102.0),
        # (7, 3, 2): 28, 27, 23; 78 + 2*28.
        (0.0, 3, 134.0),
        # Two more per position: sum 102, single chunks end with 12 + 2: 102 + 2*14.
        (2.0, None, 130.0),
        # (5, 4, 3): 25, 38, 39; 102 + 2*39.
        (2.0, 3, 180.0),
    ],
)
def test_toy_oracle(per_token: float, chunks: int | None, value: float) -> None:
    table = toy_table(per_token)
    result = solve_chunks(table, table, 1.0, 2.0, chunks, chunks or 1)
    assert result.value == value
    assert result.exact


@pytest.mark.parametrize(("quanta", "chunks"), [(12, 4), (13, 4), (64, 5), (7, 7), (9, 1)])
def test_proportionate_shop_closed_form(quanta: int, chunks: int) -> None:
    # Time = length: the sum is n for every cut sequence, and the longest of m chunks has at least ceil(n/m) quanta.
    table = smooth_table(quanta, 0.0, 1.0, 0.0)
    result = solve_chunks(table, table, 3.0, 15.0, chunks, chunks)
    assert result.value == 3.0 * quanta + 15.0 * -(-quanta // chunks)
    assert len(result.cuts) == chunks


def test_last_chunk_has_its_own_costs() -> None:
    # The head costs 10 on any chunk that ends at 2, wherever it starts: [0,2] 2+10; [0,1],[1,2] 1+11, max 11.
    table = smooth_table(2, 0.0, 1.0, 0.0, head=10.0)
    assert solve_chunks(table, table, 1.0, 1.0, None).value == 12 + 11
    assert solve_chunks(table, table, 1.0, 1.0, 1).value == 12 + 12


def test_first_chunk_extra_is_added_to_the_sum_only() -> None:
    # Lengths 1 and 2 of two quanta; the extra makes a first chunk of length 1 dearer by 5: 1+1+5+3*1 against 2+0+3*2.
    table = smooth_table(2, 0.0, 1.0, 0.0)
    extra = np.array([0.0, 5.0, 0.0])
    result = solve_chunks(table, table, 1.0, 3.0, None, first_chunk_extra=extra)
    assert (result.cuts, result.value) == ([2], 8.0)
    assert path_value(table, table, 1.0, first_chunk_extra=extra) == 7.0


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS[:4]), most=st.integers(1, 9))
def test_deadline_leaves_a_valid_bound(seed: int, kind: str, most: int) -> None:
    t, u = random_tables(seed, 9, kind)
    best = brute_force(t, u, 1.0, 15.0, 1, most)
    result = solve_chunks(t, u, 1.0, 15.0, most, deadline_s=0.0)
    assert best is not None
    assert result.bound is not None
    assert result.bound <= best * (1 + 1e-12)
    assert result.value is None or result.value >= best * (1 - 1e-12)


def test_deadline_is_admitted() -> None:
    table = smooth_table(40, 1.0, 1.0, 0.1)
    assert not solve_chunks(table, table, 1.0, 15.0, None, deadline_s=0.0).exact


def test_upper_bound_hides_worse_plans_and_keeps_better_ones() -> None:
    table = toy_table(0.0)
    nothing_better = solve_chunks(table, table, 1.0, 2.0, None, upper_bound=102.0)
    assert (nothing_better.cuts, nothing_better.value, nothing_better.exact) == ([], None, True)
    assert nothing_better.bound == 102.0
    assert solve_chunks(table, table, 1.0, 2.0, None, upper_bound=103.0).value == 102.0


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), counts=st.tuples(st.integers(1, 7), st.integers(1, 7)))
def test_path_value_is_the_least_sum_under_a_cap(seed: int, kind: str, counts: tuple[int, int]) -> None:
    t, u = random_tables(seed, 7, kind)
    cap = float(np.median(u[np.isfinite(u)]))
    fewest, most = min(counts), max(counts)
    sums = [
        value_of(t, u, 1.0, 0.0, cuts)
        for cuts in every_cuts(7, fewest, most)
        if all(u[arc] <= cap for arc in zip([0, *cuts[:-1]], cuts, strict=True))
    ]
    least = min(sums, default=np.inf)
    assert path_value(t, u, cap, most, fewest) == (None if np.isinf(least) else pytest.approx(least, rel=1e-12))


def test_binding_limit_without_a_hull_corner_needs_layers() -> None:
    # Sums by number of chunks: 1 -> 9, 2 -> 8, 3 -> 0. Two chunks lie above the line from 1 to 3, so no price finds
    # them; every u is 1.
    t = np.full((4, 4), 50.0)
    t[0, 3], t[0, 1], t[1, 3] = 9.0, 0.0, 8.0
    t[1, 2] = t[2, 3] = 0.0
    u = np.ones((4, 4))
    assert solve_chunks(t, u, 1.0, 1.0, 2).value == 8.0 + 1.0
    t[0, 1] = 0.5
    t[0, 3], t[1, 3] = 0.0, 8.0
    t[1, 2], t[2, 3] = 3.0, 3.0  # 1 -> 0, 2 -> 8.5, 3 -> 6.5: at least two chunks
    assert solve_chunks(t, u, 1.0, 1.0, 2, 2).value == 8.5 + 1.0
    assert solve_chunks(t, u, 1.0, 1.0, 3, 2).value == 6.5 + 1.0


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("t.shape", (np.ones((2, 3)), np.ones((2, 3)), 1.0, 1.0, None)),
        ("u.shape", (np.ones((2, 2)), np.ones((3, 3)), 1.0, 1.0, None)),
        ("t", (-np.ones((3, 3)), np.ones((3, 3)), 1.0, 1.0, None)),
        ("u", (np.ones((3, 3)), np.full((3, 3), np.nan), 1.0, 1.0, None)),
        ("A, Z", (np.ones((3, 3)), np.ones((3, 3)), 1.0, np.inf, None)),
        ("max_chunks", (np.ones((3, 3)), np.ones((3, 3)), 1.0, 1.0, 0)),
    ],
)
def test_bad_input_is_named(field: str, arguments: tuple[np.ndarray, np.ndarray, float, float, int | None]) -> None:
    with pytest.raises(InputError) as caught:
        solve_chunks(*arguments)
    assert caught.value.field == field


def test_too_many_chunks_asked_for_is_infeasible() -> None:
    result = solve_chunks(np.ones((4, 4)), np.ones((4, 4)), 1.0, 1.0, 5, 4)
    assert (result.cuts, result.bound, result.exact) == ([], None, True)
