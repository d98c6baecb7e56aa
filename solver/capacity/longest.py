"""Bisection over sizes: the largest that runs, where the next one was seen to fail."""

from __future__ import annotations

from collections.abc import Callable


def largest(runs: Callable[[int], bool], known: int, most: int) -> int:
    """Largest number up to ``most`` that runs, if all smaller ones do; ``known`` runs or is 0.

    Steps grow from the known one, so that few large sizes, which take longest, are tried.
    """
    good, bad, step = known, most + 1, max(1, known // 8)
    while bad - good > 1:
        middle = good + step if good + step < bad else (good + bad) // 2
        if runs(middle):
            good, step = middle, 2 * step
        else:
            bad, step = middle, max(1, (middle - good) // 2)
    return good
