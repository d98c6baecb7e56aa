"""Numbers of chunks worth a try."""

from __future__ import annotations


def growing_counts(most: int) -> set[int]:
    """Numbers from 1 to ``most`` in growing steps, by the square root of two, and ``most``."""
    return {count for step in range(2 * most.bit_length()) if (count := round(2 ** (step / 2))) <= most} | {most}
