"""Bisection over sizes: the largest that runs, where the next one was seen to fail."""

from __future__ import annotations

from collections.abc import Callable

BEYOND = (1.03, 1.06, 1.1, 1.15, 1.2)
"""Sizes tried beyond the first that fails, as multiples of the largest that runs: heuristics fail here and there."""


def largest(runs: Callable[[int], bool], known: int, most: int) -> int:
    """Largest number up to ``most`` that runs and whose next one does not; ``known`` runs or is 0.

    Steps grow from the known one, so that few large sizes, which take longest, are tried. Where a larger one runs
    although the next one does not, it goes on from there; islands between the sizes tried stay unseen.
    """
    good = _bisected(runs, known, most)
    while good > 0:
        further = (min(most, round(good * share)) for share in BEYOND)
        island = next((size for size in further if size > good + 1 and runs(size)), None)
        if island is None:
            break
        good = _bisected(runs, island, most)
    return good


def _bisected(runs: Callable[[int], bool], known: int, most: int) -> int:
    """Largest that runs, if all smaller ones do."""
    good, bad, step = known, most + 1, max(1, known // 8)
    while bad - good > 1:
        middle = good + step if good + step < bad else (good + bad) // 2
        if runs(middle):
            good, step = middle, 2 * step
        else:
            bad, step = middle, max(1, (middle - good) // 2)
    return good
