"""Chunk lists of the engines' predictors on the costs of an instance, for a layer split."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from instances.instance import Instance
from instances.workload import Shape
from solver.policies.dcpp.predictor import LEAST_ALIGNMENT, Quadratic, ascend_chunks, profile_sizes, sglang_chunks

Seconds = npt.NDArray[np.float64]
SGLANG_SAMPLES, SGLANG_LONGEST = 128, 1.25
ASCEND_SAMPLES = 64


@dataclass(frozen=True)
class Predictor:
    """What an engine's predictor is set to, and the pipeline on which it takes times.

    Attributes
    ----------
    layers
        Layers of each stage.
    size
        Requests of a wave.
    smoothing
        Share of the way from the base to the predicted size.
    page
        Tokens of a page or block, to which chunks are rounded.
    true_cost
        Sizes from the stage's own times in place of a fit to first chunks.
    """

    instance: Instance
    layers: tuple[int, ...]
    size: int
    smoothing: float
    page: int
    true_cost: bool = False

    @property
    def alignment(self) -> int:
        """Tokens to which chunks are rounded: what the engine asks for, in whole quanta."""
        return math.lcm(self.instance.pipeline.chunk_quantum, max(self.page, LEAST_ALIGNMENT))

    def sglang(self, shape: Shape, base: int, most: int | None) -> list[int]:
        """Chunks of a request as SGLang cuts them; ``most`` is max_prefill_tokens.

        Raises
        ------
        InputError
            If the engine would refuse its own profile.
        """
        if self.true_cost:
            return self._true_chunks(shape, base, 0, least=base // 4, most=most, up=False)
        model = self._fitted(0, profile_sizes(base, SGLANG_SAMPLES, SGLANG_LONGEST))
        return sglang_chunks(shape[0] - shape[1], shape[1], model, base, self.smoothing, self.alignment, most)

    def ascend(self, shape: Shape, base: int, least: int) -> list[int]:
        """Chunks of a request as vLLM-Ascend cuts them; ``least`` is min_chunk. Errors as above."""
        last = len(self.layers) - 1
        if self.true_cost:
            return self._true_chunks(shape, base, last, least=least, most=base, up=True)
        model = self._fitted(last, profile_sizes(base, ASCEND_SAMPLES, 1.0))
        # One budget of time and tokens for all requests of a wave, equally: base is each one's part.
        return ascend_chunks(shape[0] - shape[1], shape[1], model, base, self.smoothing, least, self.alignment)

    def _seconds(self, stage: int, chunk: npt.ArrayLike, prefix: npt.ArrayLike) -> Seconds:
        stop = list(accumulate(self.layers))[stage]
        found: Seconds = self.instance.stage_cost.stage_seconds(
            self.instance.hardware.best_die,
            stop - self.layers[stage],
            stop,
            self.size,
            chunk,
            prefix,
            outside=np.inf,
        )
        return found

    def _fitted(self, stage: int, sizes: list[int]) -> Quadratic:
        """What the engine would fit to its profile of first chunks."""
        times = self._seconds(stage, np.array(sizes), 0)
        known = np.isfinite(times)  # a measured table may not reach so far
        return Quadratic.fit([size for size, fine in zip(sizes, known, strict=True) if fine], times[known])

    def _true_chunks(self, shape: Shape, base: int, stage: int, *, least: int, most: int | None, up: bool) -> list[int]:
        """The engine's rule with the stage's own times in place of a fit."""
        tokens, cached, alignment = shape[0] - shape[1], shape[1], self.alignment
        target_s = float(self._seconds(stage, base, 0))
        ceiling = min(tokens, most or tokens)
        candidates = np.arange(alignment, ceiling + alignment, alignment)
        sizes: list[int] = []
        done = 0
        while done < tokens:
            size = base
            if done:
                inside = candidates[candidates <= max(alignment, tokens - done)]
                fits = self._seconds(stage, inside, cached + done) <= target_s
                reached = int(inside[fits][-1]) if fits.any() else 0
                wanted = reached + alignment if up else reached
                smooth = int(base + self.smoothing * (wanted - base))
                smooth = -(-smooth // alignment) * alignment if up else smooth - smooth % alignment
                size = max(smooth, -(-min(least, base) // alignment) * alignment, alignment)
                size = size if most is None else max(alignment, min(size, most - most % alignment))
            sizes.append(min(size, tokens - done))
            done += sizes[-1]
        return sizes
