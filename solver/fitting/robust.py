"""Robust least squares with coefficients of at least 0 for t = c0 + B*(g*p + b*c + a*pairs) (spec section 2, fitted).

Relative errors are fitted, so that short chunks count as much as long ones. Huber's loss, by reweighting, lets rows
that are far off count less; the scale is the median absolute error. A row that is far from what a fit to the others
says is then left out, and so on, at most a twentieth of all (but one at least): a first sample that paid for warming
up, a hiccup.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from formulations.bounds import nearest_rank
from instances.costs import FittedSpec
from instances.errors import InputError
from solver.fitting.samples import Samples

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
Shape = Literal["causal", "rectangle"]
NAMES = ("chunk_s", "prefix_s", "token_s", "pair_s")
_PREFERENCE = (2, 3, 0, 1)  # what explains rows that cannot tell coefficients apart: tokens, pairs, overhead, prefix
_HUBER = 1.345  # 95 % as good as least squares where errors are normal
_NORMAL_SCALE = 1.4826  # of the median absolute error
_FAR = 6.0
_LEAST_FAR = 0.5  # half as long again; kernels of other tile sizes differ by up to 0.4
_MAYBE_FAR = 0.15
_MOST_LEFT_OUT = 1 / 20
_CANDIDATES = 5
_NO_PULL = 0.005
_ROUNDS_AT_ONCE = 10
_ROUNDS = 100
_EXACT = 1e-10


@dataclass(frozen=True)
class Fit:
    """Coefficients in seconds, of shape (4,) in the order of `NAMES`, and how well they fit.

    Parameters
    ----------
    coefficients
        At least 0 each.
    deviations
        Standard deviation of each as far as the errors tell; 0 where a coefficient is 0.
    covariance
        (4, 4), of the coefficients.
    undetermined
        Names that the rows cannot tell from others; these are 0.
    kept
        Rows that were used in the end.
    relative_errors
        (fitted - measured) / measured of every row, kept or not.
    """

    shape: Shape
    coefficients: FloatArray
    covariance: FloatArray
    undetermined: tuple[str, ...]
    kept: BoolArray
    relative_errors: FloatArray

    @property
    def spec(self) -> FittedSpec:
        """The ``costs`` part of an instance."""
        c0, g, b, a = (float(value) for value in self.coefficients)
        return FittedSpec(chunk_s=c0, prefix_s=g, token_s=b, pair_s=a)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of each coefficient."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def known_deviations(self) -> tuple[float | None, ...]:
        """The same, None for a coefficient that is not determined, and for all where no row is left to tell errors."""
        spare = int(self.kept.sum()) > int((self.coefficients > 0).sum())
        return tuple(
            float(value) if spare and name not in self.undetermined else None
            for name, value in zip(NAMES, self.deviations, strict=True)
        )

    @property
    def median_error(self) -> float:
        """Median of the absolute relative errors of the rows that were kept."""
        return float(np.median(np.abs(self.relative_errors[self.kept])))

    @property
    def p95_error(self) -> float:
        """95th percentile of the same, the nearest rank."""
        return float(nearest_rank(np.abs(self.relative_errors[self.kept]).tolist(), 0.95))

    def total_error(self, samples: Samples) -> float:
        """Sum of the absolute errors over the sum of the times, of the rows that were kept."""
        off = np.abs(self.relative_errors) * samples.seconds
        return float(off[self.kept].sum() / samples.seconds[self.kept].sum())

    def seconds(self, batch: FloatArray, chunk: FloatArray, prefix: FloatArray) -> FloatArray:
        """What the fit says about any points; arrays of one shape."""
        seconds: FloatArray = _terms(batch, chunk, prefix, self.shape) @ self.coefficients
        return seconds

    def largest_shares(self, samples: Samples) -> FloatArray:
        """Of the time of any row, the largest part that each coefficient accounts for; shape (4,)."""
        terms = _terms(samples.batch, samples.chunk, samples.prefix, self.shape) / samples.seconds[:, None]
        shares: FloatArray = terms.max(axis=0) * self.coefficients
        return shares

    def deviation_s(self, chunk: float, prefix: float) -> float | None:
        """Standard deviation of what the fit says about one chunk of a single sequence, in seconds; None if unknown."""
        if int(self.kept.sum()) <= int((self.coefficients > 0).sum()):
            return None
        terms = _terms(np.ones(1), np.array([chunk]), np.array([prefix]), self.shape)[0]
        return float(np.sqrt(max(0.0, terms @ self.covariance @ terms)))


def fit_samples(samples: Samples, shape: Shape = "causal") -> Fit:
    """Fit the four coefficients.

    ``causal`` counts 2*p*c + c*c for a chunk, twice the pairs of a query with a key before it; ``rectangle`` counts
    p*c + c*c, as if every token of a chunk met the whole chunk.

    Raises
    ------
    InputError
        Without rows.
    """
    count = len(samples.seconds)
    if count == 0:
        raise InputError("rows", [], "at least one measured row")
    terms = _terms(samples.batch, samples.chunk, samples.prefix, shape)
    relative = terms / samples.seconds[:, None]
    scale = np.where(relative.max(axis=0) > 0, relative.max(axis=0), 1.0)
    usable = _independent(relative / scale)
    kept = np.ones(count, dtype=np.bool_)
    solved = _huber(relative / scale, usable)
    most = min(max(1, int(count * _MOST_LEFT_OUT)), count - len(usable) - 1)
    for _ in range(_ROUNDS_AT_ONCE):
        far = _plainly_far(relative / scale, kept, solved, usable)[: most - int((~kept).sum())]
        if not len(far):
            break
        kept[far] = False
        solved = _huber((relative / scale)[kept], usable)
    for _ in range(most - int((~kept).sum())):
        found = _without_the_farthest(relative / scale, kept, solved, usable)
        if found is None:
            break
        kept, solved = found
    errors = relative / scale @ solved - 1
    covariance = _covariance((relative / scale)[kept], errors[kept], solved > 0)
    return Fit(
        shape=shape,
        coefficients=solved / scale,
        covariance=covariance / np.outer(scale, scale),
        undetermined=tuple(name for place, name in enumerate(NAMES) if place not in usable),
        kept=kept,
        relative_errors=errors,
    )


def _terms(batch: FloatArray, chunk: FloatArray, prefix: FloatArray, shape: Shape) -> FloatArray:
    pairs = (2 * prefix + chunk) * chunk if shape == "causal" else (prefix + chunk) * chunk
    return np.stack([np.ones_like(chunk), batch * prefix, batch * chunk, batch * pairs], axis=1)


def _independent(terms: FloatArray) -> tuple[int, ...]:
    """Columns that the rows tell apart; of those they do not, the ones that are preferred."""
    found: list[int] = []
    for place in _PREFERENCE:
        wanted = [*found, place]
        if np.linalg.matrix_rank(terms[:, wanted], tol=1e-9 * np.sqrt(len(terms))) == len(wanted):
            found = wanted
    return tuple(sorted(found))


def _plainly_far(terms: FloatArray, kept: BoolArray, solved: FloatArray, usable: tuple[int, ...]) -> IntArray:
    """Rows that are far off and hardly move the fit, the farthest first: among many rows they need no fit of their own.

    A row's pull is its leverage; below `_NO_PULL` a fit without it says the same about it.
    """
    rows = np.flatnonzero(kept)
    basis = np.linalg.qr(terms[rows][:, list(usable)])[0]
    errors = terms[rows] @ solved - 1
    said = np.maximum(errors + 1, _EXACT)
    off = np.maximum(said, 1 / said) - 1
    limit = max(_LEAST_FAR, _FAR * _spread(errors))
    far = (off > limit) & (np.sum(basis**2, axis=1) < _NO_PULL)
    ordered: IntArray = rows[far][np.argsort(-off[far], kind="stable")]
    return ordered


def _without_the_farthest(
    terms: FloatArray, kept: BoolArray, solved: FloatArray, usable: tuple[int, ...]
) -> tuple[BoolArray, FloatArray] | None:
    """Leave out the row that is farthest from a fit to the others, if it is far; None where none is.

    A row that a coefficient hangs on pulls the fit towards itself. So candidates are those with the largest errors once
    that pull is discounted (deleted residuals), and each is judged by a fit without it.
    """
    columns = list(usable)
    rows = np.flatnonzero(kept)
    basis = np.linalg.qr(terms[rows][:, columns])[0]
    leverage = np.sum(basis**2, axis=1)
    deleted = np.abs(terms[rows] @ solved - 1) / np.maximum(1 - leverage, _EXACT)
    deleted[leverage < _NO_PULL] = 0.0  # `_plainly_far` has judged them
    best: tuple[BoolArray, FloatArray] | None = None
    farthest = 1.0
    for place in np.argsort(-deleted, kind="stable")[:_CANDIDATES]:
        if deleted[place] < _MAYBE_FAR:
            break
        row = rows[place]
        rest = kept.copy()
        rest[row] = False
        if _independent(terms[rest]) != usable:
            continue
        other = _huber(terms[rest], usable)
        said = max(float(terms[row] @ other), _EXACT)
        off = max(said, 1 / said) - 1
        errors = terms[rest] @ other - 1
        # At the edge of the data the others say little about the row: that is no reason to distrust it.
        unsure = float(np.sqrt(terms[row] @ _covariance(terms[rest], errors, _marked(usable)) @ terms[row]))
        limit = max(_LEAST_FAR, _FAR * _spread(errors), _FAR * unsure)
        if off > limit * farthest:
            best, farthest = (rest, other), off / limit
    return best


def _marked(usable: tuple[int, ...]) -> BoolArray:
    return np.isin(np.arange(len(NAMES)), usable)


def _huber(terms: FloatArray, usable: tuple[int, ...]) -> FloatArray:
    """Coefficients of least Huber loss of terms @ x - 1."""
    weights = np.ones(len(terms))
    solved = _nonnegative(terms, weights, usable)
    for _ in range(_ROUNDS):
        errors = np.abs(terms @ solved - 1)
        limit = max(_HUBER * _spread(errors), _EXACT)
        weights = np.minimum(1.0, limit / np.maximum(errors, _EXACT))
        previous, solved = solved, _nonnegative(terms, weights, usable)
        if np.allclose(previous, solved, rtol=1e-9, atol=1e-15):
            break
    return solved


def _spread(errors: FloatArray) -> float:
    return _NORMAL_SCALE * float(np.median(np.abs(errors)))


def _nonnegative(terms: FloatArray, weights: FloatArray, usable: tuple[int, ...]) -> FloatArray:
    """Weighted least squares of terms @ x = 1 with x >= 0: with four columns every choice of those in use is tried.

    Not where the least without that demand meets it already.
    """
    root = np.sqrt(weights)
    free = np.linalg.lstsq(terms[:, list(usable)] * root[:, None], root, rcond=None)[0]
    if (free >= 0).all():
        whole = np.zeros(terms.shape[1])
        whole[list(usable)] = free
        return whole
    best, least = np.zeros(terms.shape[1]), np.inf
    for size in range(1, len(usable)):
        for used in map(list, itertools.combinations(usable, size)):
            found = np.linalg.lstsq(terms[:, used] * root[:, None], root, rcond=None)[0]
            loss = float(np.sum(weights * (terms[:, used] @ found - 1) ** 2))
            if (found >= 0).all() and loss < least:
                best, least = np.zeros(terms.shape[1]), loss
                best[used] = found
    return best


def _covariance(terms: FloatArray, errors: FloatArray, used: BoolArray) -> FloatArray:
    """Of the coefficients that are not 0, for errors that are independent and alike."""
    covariance = np.zeros((len(used), len(used)))
    spare = len(terms) - int(used.sum())
    if spare > 0 and used.any():
        inverse = np.linalg.pinv(terms[:, used].T @ terms[:, used])
        covariance[np.ix_(used, used)] = inverse * float(errors @ errors) / spare
    return covariance
