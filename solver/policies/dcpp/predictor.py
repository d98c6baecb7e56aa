"""The chunk-size predictors of SGLang (``ChunkSizePredictor``) and vLLM-Ascend (``profiling_chunk_predictor``).

Both fit f(l) = a*l^2 + b*l + c to the times of first chunks and solve f(L + x) - f(L) = T for the next chunk x after L
tokens, with T = f(base) - f(0), the time of a first chunk. They differ in how they round, clamp and share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from instances.errors import InputError

LEAST_ALIGNMENT = 64
"""Tokens; both engines align chunks to the larger of this and a page, or block."""
LEAST_SAMPLES = 8


@dataclass(frozen=True)
class Quadratic:
    """f(l) = square*l^2 + linear*l + constant, seconds for l tokens without a prefix."""

    square: float
    linear: float
    constant: float

    @classmethod
    def fit(cls, tokens: Sequence[int], times_s: npt.ArrayLike) -> Quadratic:
        """Least squares over measured first chunks; a negative linear term counts as 0, as the engines have it.

        Raises
        ------
        InputError
            With fewer than eight samples, or if time does not grow faster than tokens: engines refuse to start then.
        """
        if len(tokens) < LEAST_SAMPLES:
            raise InputError("profile", len(tokens), f"at least {LEAST_SAMPLES} samples")
        scale = float(max(tokens))
        found = np.linalg.lstsq(np.vander(np.array(tokens) / scale, 3), np.asarray(times_s), rcond=None)[0]
        square, linear, constant = (float(number) for number in found)
        if square <= 0:
            raise InputError("profile", square, "times that grow faster than the tokens: the quadratic term is not > 0")
        return cls(square / scale**2, max(0.0, linear / scale), constant)

    def target_s(self, base: int) -> float:
        """T = f(base) - f(0)."""
        return self.square * base**2 + self.linear * base

    def next_tokens(self, before: int, target_s: float) -> float:
        """x with f(before + x) - f(before) = target."""
        slope = 2 * self.square * before + self.linear
        return (-slope + math.sqrt(slope**2 + 4 * self.square * target_s)) / (2 * self.square)


def profile_sizes(base: int, samples: int, longest: float) -> list[int]:
    """Sizes at which an engine times first chunks: from ``longest`` times the base down in equal steps."""
    top = int(longest * base)
    step = max(1, top // samples)
    return [size for size in (top - i * step for i in range(samples)) if size > 0]


def sglang_chunks(
    tokens: int,
    cached: int,
    model: Quadratic,
    base: int,
    smoothing: float,
    alignment: int = LEAST_ALIGNMENT,
    most: int | None = None,
) -> list[int]:
    """Chunk sizes as SGLang cuts them.

    The first chunk of a request is the static base. Then x_s = base + smoothing*(x - base), at least base//4, rounded
    down to the alignment and at most ``most`` (max_prefill_tokens); where nothing is left of it, the base. The last
    chunk is what remains.
    """
    sizes: list[int] = []
    done = 0
    while done < tokens:
        size = base
        if done:
            wanted = model.next_tokens(cached + done, model.target_s(base))
            smooth = max(int(base + smoothing * (wanted - base)), base // 4)
            size = max(smooth - smooth % alignment, alignment)
            if most is not None:
                size = min(size, most - most % alignment)
            size = size if size >= alignment else base
        sizes.append(min(size, tokens - done))
        done += sizes[-1]
    return sizes


def ascend_chunks(
    tokens: int,
    cached: int,
    model: Quadratic,
    base: int,
    smoothing: float,
    least: int,
    alignment: int = 128,
    requests: int = 1,
) -> list[int]:
    """Chunk sizes of each of ``requests`` equal requests that run together, as vLLM-Ascend cuts them.

    x_s = max(base + smoothing*(x - base), least), rounded UP to the alignment and at most the base, which is the token
    budget of a step. All requests of a step share one time budget and one token budget; here equally, so that the list
    of one stands for all. The first chunk is static while the engine still takes times.
    """
    budget_s, budget = model.target_s(base) / requests, base // requests
    sizes: list[int] = []
    done = 0
    while done < tokens:
        size = budget
        if done:
            wanted = model.next_tokens(cached + done, budget_s)
            smooth = max(int(budget + smoothing * (wanted - budget)), min(least, budget))
            size = min(-(-smooth // alignment) * alignment, budget)
        sizes.append(min(size, tokens - done))
        done += sizes[-1]
    return sizes
