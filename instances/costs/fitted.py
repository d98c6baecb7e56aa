"""A fitted cost model: one quadratic for the whole model (spec section 2; the form AMD's ATOM documents)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from instances.costs.specs import FittedSpec

FloatArray = npt.NDArray[np.float64]


def fitted_seconds(spec: FittedSpec, batch: int, chunk: FloatArray, prefix: FloatArray) -> FloatArray:
    """Whole-model time: chunk_s once a chunk, the terms that count tokens once for each sequence of the batch."""
    per_sequence = spec.prefix_s * prefix + spec.token_s * chunk + spec.pair_s * (2 * prefix + chunk) * chunk
    seconds: FloatArray = spec.chunk_s + batch * per_sequence
    return seconds
