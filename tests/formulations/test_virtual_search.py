"""Mixtures of paths over a V's dies, and cuts whose times rise and fall."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.virtual.mixture import FoldProblem
from formulations.virtual.path import FoldPath
from formulations.virtual.ramps import ramped_cuts
from formulations.wave_counts import Counts
from tests.formulations.chunk_cases import every_cuts, smooth_table


def problem_of(seed: int, quanta: int, most: int | None = None) -> FoldProblem:
    """A path with random parts: work above what is lost in front and behind."""
    rng = np.random.default_rng(seed)
    shape = (quanta + 1, quanta + 1)
    lead, trail, entry, way_out = (rng.integers(0, 20, shape).astype(float) for _ in range(4))
    work = np.where(np.triu(np.ones(shape), 1) > 0, np.maximum(lead, trail) + rng.integers(1, 20, shape), np.inf)
    problem = FoldProblem(quanta, 1, most or quanta)
    problem.count(FoldPath(work, entry, lead, way_out, trail), Counts(2.0, 1.0, 1.0))
    return problem


def by_hand(problem: FoldProblem, cuts: list[int], entering: int, leaving: int) -> float:
    """Length of one path: the chunks that cover two quanta enter and leave."""
    arcs = list(zip([0, *cuts[:-1]], cuts, strict=True))
    total = sum(problem.work[arc] for arc in arcs)
    for p, e in arcs:
        total += problem.entry[p, e] if p <= entering < e else -problem.lead[p, e] if e <= entering else 0.0
        total += problem.exit[p, e] if p <= leaving < e else -problem.trail[p, e] if p > leaving else 0.0
    return float(total)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 7))
def test_table_is_the_mean_over_paths(seed: int, quanta: int) -> None:
    problem, rng = problem_of(seed, quanta), np.random.default_rng(seed)
    last = int(rng.integers(0, quanta))
    entering, leaving = np.zeros(quanta), np.zeros(quanta)
    entering[: last + 1] = rng.dirichlet(np.ones(last + 1))
    leaving[last:] = rng.dirichlet(np.ones(quanta - last))
    table = problem.table(entering, leaving)
    for cuts in every_cuts(quanta):
        mean = sum(
            entering[p] * leaving[q] * by_hand(problem, cuts, p, q) for p in range(quanta) for q in range(p, quanta)
        )
        arcs = list(zip([0, *cuts[:-1]], cuts, strict=True))
        assert sum(table[arc] for arc in arcs) == pytest.approx(mean)
        assert problem.longest(cuts) == pytest.approx(
            max(by_hand(problem, cuts, p, q) for p in range(quanta) for q in range(p, quanta))
        )


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 7))
def test_mixture_is_between_the_first_path_and_the_longest(seed: int, quanta: int, most: int) -> None:
    problem = problem_of(seed, quanta, min(most, quanta))
    first = problem.solve(problem.table(*problem.first_and_last()))
    assert first is not None
    bound, cuts, others = problem.best_mixture(first, None)
    admitted = list(every_cuts(quanta, 1, min(most, quanta)))
    assert first[0] == pytest.approx(min(by_hand(problem, each, 0, quanta - 1) for each in admitted))
    assert first[0] <= bound <= min(problem.longest(each) for each in admitted) * (1 + 1e-12)
    assert cuts in admitted
    assert all(other in admitted for other in others)
    assert others == sorted(others, key=problem.longest)


def test_a_small_first_chunk_does_not_lower_the_bound() -> None:
    """Four quanta, 2 s each on the die and 1 s on every part, 9 s in and out for each quantum of the chunk that goes.

    With the first chunk entering and the last one leaving: 8 + 9 + 9 s, one quantum each. The second quantum's chunk
    has come in after 1 s and 9 s more a quantum, and so on; equal weights on the first two: no cuts get below 26 + 8.
    """
    n = 4
    length = np.maximum(np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None], 0).astype(float)
    work = np.where(length > 0, 2 * length, np.inf)
    problem = FoldProblem(n, 1, 2)
    problem.count(FoldPath(work, 9 * length, length, 9 * length, length), Counts(1.0, 1.0, 1.0))
    first = problem.solve(problem.table(*problem.first_and_last()))
    assert first is not None
    # Two chunks at most: 1 and 3 quanta, or 2 and 2: 8 + 4*9 s in any case.
    assert first[0] == pytest.approx(44.0)
    assert problem.best_mixture(first, None)[0] >= 44.0


def test_level_chunks_without_ramps() -> None:
    assert ramped_cuts(smooth_table(12, 0.0, 1.0, 0.0), 4, 0, 0) == [3, 6, 9, 12]
    # Growing attention: later chunks are shorter. Times of 1 + 2p a quantum: 36, 28, 36, 44 of 144 at the least level.
    assert ramped_cuts(smooth_table(12, 0.0, 1.0, 2.0), 4, 0, 0) == [6, 8, 10, 12]


def test_ramps_rise_and_fall() -> None:
    """18 equal quanta in 5 chunks, limits of a half, all, all, all, a half of the level: 2, 4 or 5, and 2."""
    cuts = ramped_cuts(smooth_table(18, 0.0, 1.0, 0.0), 5, 1, 1)
    assert cuts is not None
    sizes = np.diff([0, *cuts]).tolist()
    assert (sizes[0], sizes[-1]) == (2, 2)
    assert max(sizes) == 5
    assert ramped_cuts(smooth_table(18, 0.0, 1.0, 0.0), 3, 2, 1) is None


@settings(max_examples=100)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 5), st.integers(0, 5), st.floats(0, 1))
def test_ramped_cuts_are_cuts(quanta: int, count: int, rise: int, fall: int, pair: float) -> None:
    cuts = ramped_cuts(smooth_table(quanta, 0.5, 1.0, pair), count, rise, fall)
    if rise + fall >= count:
        assert cuts is None
        return
    assert cuts is not None
    assert cuts[-1] == quanta
    assert len(cuts) <= count
    assert all(a < b for a, b in zip([0, *cuts], cuts, strict=False))
