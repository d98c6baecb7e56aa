"""Coefficients of the fitted cost model from measured rows (spec section 2; command ``fit``)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instances.costs.fitted import fitted_seconds
from instances.costs.profile import Profile
from instances.costs.specs import FittedSpec
from instances.errors import InputError

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """Fitted coefficients, and (fitted - measured) / measured of each row of the profile."""

    spec: FittedSpec
    relative_errors: FloatArray

    @property
    def median_error(self) -> float:
        """Median of the absolute relative errors."""
        return float(np.median(np.abs(self.relative_errors)))

    @property
    def worst_error(self) -> float:
        """Largest absolute relative error."""
        return float(np.max(np.abs(self.relative_errors)))


def fit_profile(profile: Profile) -> Fit:
    """Fit t = c0 + g*p + b*c + a*(2*p*c + c*c) with coefficients of at least 0.

    The sum of squared relative errors is least, so that short chunks count as much as long ones. With four
    coefficients every choice of those that are 0 is tried, and the best answer without a negative one is exact.

    Raises
    ------
    InputError
        If the rows cannot tell the four coefficients apart.
    """
    chunk, prefix = profile.chunk, profile.prefix
    terms = np.stack([np.ones_like(chunk), prefix, chunk, (2 * prefix + chunk) * chunk], axis=1)
    scale = terms.max(axis=0)
    if (scale == 0).any() or np.linalg.matrix_rank(terms / scale) < 4:
        raise InputError(
            "rows", len(chunk), "rows with several chunk sizes and several prefixes, enough for four coefficients"
        )
    weighted = terms / scale / profile.seconds[:, None]
    best, least = np.zeros(4), np.inf
    for size in range(1, 5):
        for used in map(list, itertools.combinations(range(4), size)):
            found = np.linalg.lstsq(weighted[:, used], np.ones_like(chunk), rcond=None)[0]
            loss = float(np.sum((weighted[:, used] @ found - 1) ** 2))
            if (found >= 0).all() and loss < least:
                best, least = np.zeros(4), loss
                best[used] = found
    c0, g, b, a = (float(value) for value in best / scale)
    spec = FittedSpec(chunk_s=c0, prefix_s=g, token_s=b, pair_s=a)
    return Fit(spec, fitted_seconds(spec, 1, chunk, prefix) / profile.seconds - 1)
