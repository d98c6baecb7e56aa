"""Rows of chunk times that a formula made, with and without noise."""

from __future__ import annotations

import itertools

import numpy as np

from instances.costs import FittedSpec
from instances.costs.fitted import fitted_seconds
from solver.fitting import Samples

SPEC = FittedSpec(chunk_s=1e-3, prefix_s=1e-7, token_s=1e-6, pair_s=1e-10)
CHUNKS = (256, 512, 1024, 2048, 4096)
PREFIXES = (0, 1024, 8192, 32768)


def made(spec: FittedSpec = SPEC, *, chunks: tuple[int, ...] = CHUNKS, prefixes: tuple[int, ...] = PREFIXES) -> Samples:
    """One row for each chunk after each prefix, exactly as the formula has it."""
    rows = [
        (chunk, prefix, float(fitted_seconds(spec, 1, np.array(float(chunk)), np.array(float(prefix)))))
        for chunk, prefix in itertools.product(chunks, prefixes)
    ]
    return Samples.from_rows(rows)


def disturbed(samples: Samples, factors: np.ndarray | dict[int, float]) -> Samples:
    """The same rows with some times multiplied."""
    seconds = samples.seconds.copy()
    if isinstance(factors, dict):
        for row, factor in factors.items():
            seconds[row] *= factor
    else:
        seconds *= factors
    return Samples(samples.batch, samples.chunk, samples.prefix, seconds, samples.layers)
