"""How requests gather in waves, as arrays: for workloads of many thousand waves (spec section 1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Shape = tuple[int, int]
"""(tokens, cached tokens) of a request; requests of one shape share cuts and spill."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """W waves of R requests, each of one kind: a shape and a number of requests.

    Attributes
    ----------
    order, arrival_s
        Index and arrival of each request, sorted by (arrival, index), shape (R,).
    pointers
        Wave w has the entries pointers[w] to pointers[w + 1] of these, shape (W + 1,).
    kinds
        Shapes and sizes that waves have, each once, in the order of their first waves.
    kind
        Which of them each wave has, shape (W,).
    """

    order: Ints
    arrival_s: Floats
    pointers: Ints
    kinds: tuple[tuple[Shape, int], ...]
    kind: Ints

    @property
    def waves(self) -> int:
        """Number of waves W."""
        return len(self.kind)

    @cached_property
    def size(self) -> Ints:
        """Requests of each wave, shape (W,)."""
        return np.diff(self.pointers)

    @cached_property
    def ready_s(self) -> Floats:
        """When each wave may start: its latest arrival, which comes last. Shape (W,)."""
        return self.arrival_s[self.pointers[1:] - 1]

    @cached_property
    def wave_of_request(self) -> Ints:
        """Wave of each request, in the order of ``order``. Shape (R,)."""
        return np.repeat(np.arange(self.waves), self.size)

    @cached_property
    def waves_of_kind(self) -> tuple[int, ...]:
        """Number of waves of each kind."""
        return tuple(np.bincount(self.kind, minlength=len(self.kinds)).tolist())


def gather(arrival_s: npt.ArrayLike, tokens: npt.ArrayLike, cached_tokens: npt.ArrayLike, batch: int) -> Gathered:
    """Gather requests, sorted by (arrival, index), in waves of at most ``batch`` of one shape.

    Parameters
    ----------
    arrival_s, tokens, cached_tokens
        Of each request, shape (R,), R >= 1.
    """
    order = np.argsort(np.asarray(arrival_s), kind="stable")
    shapes = np.stack([np.asarray(tokens)[order], np.asarray(cached_tokens)[order]])
    # A wave starts at each change of shape, and every ``batch`` requests behind one.
    runs = np.flatnonzero(np.append(True, (np.diff(shapes) != 0).any(axis=0)))
    place = np.arange(len(order)) - np.repeat(runs, np.diff(runs, append=len(order)))
    pointers = np.append(np.flatnonzero(place % batch == 0), len(order))
    rows = np.stack([*shapes[:, pointers[:-1]], np.diff(pointers)])
    _, first, kind = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    # Kinds by their first waves, not by their numbers.
    by_first = np.argsort(first)
    rank = np.empty_like(by_first)
    rank[by_first] = np.arange(len(by_first))
    return Gathered(
        order=order,
        arrival_s=np.asarray(arrival_s, dtype=np.float64)[order],
        pointers=pointers,
        kinds=tuple(((int(t), int(c)), int(size)) for t, c, size in rows[:, first[by_first]].T),
        kind=rank[kind.reshape(-1)],
    )
