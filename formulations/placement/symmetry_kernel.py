"""Symmetries in a compiled depth-first search: which of them the choices made so far have broken."""

from __future__ import annotations

from typing import NamedTuple

from formulations.placement.assignment import Ints
from formulations.placement.compiled import part

NEVER = 1 << 30


class Symmetry(NamedTuple):
    """Permutations that change no value, and the depth at which a choice broke each."""

    images: Ints
    """Shape (P, size)."""
    broken_at: Ints
    """Shape (P,): the depth of the first choice that the permutation does not keep; NEVER while there is none."""


@part
def break_symmetry(images: Ints, broken_at: Ints, chosen: int, depth: int) -> None:
    """Note which permutations do not keep a choice made at a depth."""
    for number in range(broken_at.shape[0]):
        if broken_at[number] == NEVER and images[number, chosen] != chosen:
            broken_at[number] = depth


@part
def mend_symmetry(broken_at: Ints, depth: int) -> None:
    """Undo what choices at this depth or deeper broke."""
    for number in range(broken_at.shape[0]):
        if broken_at[number] != NEVER and broken_at[number] >= depth:
            broken_at[number] = NEVER


@part
def is_repeated(images: Ints, broken_at: Ints, choice: int) -> bool:
    """True if a permutation that keeps all choices so far moves this one to a smaller one: it need not be tried."""
    smallest = choice
    for number in range(broken_at.shape[0]):
        if broken_at[number] == NEVER:
            smallest = min(smallest, images[number, choice])
    return smallest < choice
