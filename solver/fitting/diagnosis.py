"""What a fit is worth: the other shape beside it, a test on contexts it has not seen, and warnings in words.

Chunks below 256 tokens do not fill the tiles of attention kernels and often run on other kernels, where the time has
another shape. They are left out where there are enough longer ones, unless the caller says from where on to fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulations.bounds import nearest_rank
from instances.errors import InputError
from solver.fitting.robust import NAMES, Fit, fit_samples
from solver.fitting.samples import Samples

SHORT_CHUNK = 256
"""Chunks below this many tokens are fitted only where there are too few longer ones."""
_FEWEST_LONG = 8
_FEWEST_HELD_OUT = 4
_UNSURE = 0.5
_MATTERS = 1e-3  # of a row's time: below that an uncertain coefficient changes nothing
_FAR_OFF = 0.1
_ROUGH = 0.25
_FAR_BEYOND = 2.0
_SLOW_START = 1.5
_ALIKE = 1e-6


@dataclass(frozen=True)
class HeldOut:
    """A fit on contexts up to half the longest one, and its relative errors on the longer ones."""

    fitted_to_tokens: int
    rows: int
    median_error: float
    p95_error: float


@dataclass(frozen=True)
class Extrapolation:
    """What the fit says about a context of ``tokens``, met by the largest chunk that was measured."""

    tokens: int
    chunk: int
    seconds: float
    deviation_s: float | None
    beyond: float


@dataclass(frozen=True)
class Diagnosis:
    """A fit, the same with the rectangle, the test on longer contexts, and warnings.

    ``samples`` are the rows with chunks of at least ``min_chunk`` tokens; ``shorter_error`` is the median error on the
    others, None where there are none.
    """

    samples: Samples
    min_chunk: int
    shorter_rows: int
    shorter_error: float | None
    fit: Fit
    rectangle: Fit
    held_out: HeldOut | None
    extrapolation: Extrapolation | None
    warnings: tuple[str, ...]

    @property
    def better_shape(self) -> str:
        """The shape that accounts for more of the measured time; causal where there is no difference."""
        ours, theirs = self.fit.total_error(self.samples), self.rectangle.total_error(self.samples)
        return "rectangle" if theirs < ours - _ALIKE else "causal"

    def plain(self) -> dict[str, Any]:
        """Plain data, as the command prints it."""
        return {
            "costs": self.fit.spec.model_dump(mode="json"),
            "deviation_s": dict(zip(NAMES, self.fit.known_deviations, strict=True)),
            "undetermined": list(self.fit.undetermined),
            "layers": self.samples.layers,
            "rows": len(self.samples.seconds),
            "rows_left_out": int((~self.fit.kept).sum()),
            "chunk_tokens": [int(self.samples.chunk.min()), int(self.samples.chunk.max())],
            "prefix_tokens": [int(self.samples.prefix.min()), int(self.samples.prefix.max())],
            "min_chunk": self.min_chunk,
            "shorter_rows": self.shorter_rows,
            "shorter_median_error": self.shorter_error,
            **self._errors(self.fit),
            "rectangle": self._errors(self.rectangle),
            "better_shape": self.better_shape,
            "held_out": None if self.held_out is None else vars(self.held_out),
            "extrapolation": None if self.extrapolation is None else vars(self.extrapolation),
            "warnings": list(self.warnings),
        }

    def _errors(self, fit: Fit) -> dict[str, float]:
        return {
            "median_error": fit.median_error,
            "p95_error": fit.p95_error,
            "total_error": fit.total_error(self.samples),
        }


def diagnose(measured: Samples, extrapolate_to: int | None = None, min_chunk: int | None = None) -> Diagnosis:
    """Fit measured rows and judge the fit.

    Parameters
    ----------
    extrapolate_to
        A context in tokens that the costs are wanted for.
    min_chunk
        Fit only chunks of at least so many tokens; None leaves short ones out where there are enough others.

    Raises
    ------
    InputError
        If no row is left.
    """
    least = _least_chunk(measured) if min_chunk is None else min_chunk
    long_enough = measured.chunk >= least
    samples, shorter = measured.chosen(long_enough), measured.chosen(~long_enough)
    if not long_enough.any():
        longest = int(measured.chunk.max())
        raise InputError("min_chunk", least, f"at most {longest} tokens, the longest chunk that was measured")
    fit, rectangle = fit_samples(samples), fit_samples(samples, "rectangle")
    errors = np.abs(fit.seconds(shorter.batch, shorter.chunk, shorter.prefix) / shorter.seconds - 1)
    found = Diagnosis(
        samples=samples,
        min_chunk=least,
        shorter_rows=len(errors),
        shorter_error=float(np.median(errors)) if len(errors) else None,
        fit=fit,
        rectangle=rectangle,
        held_out=_held_out(samples.chosen(fit.kept)),
        extrapolation=None if extrapolate_to is None else _extrapolated(samples, fit, extrapolate_to),
        warnings=(),
    )
    return replace(found, warnings=tuple(_warnings(found)))


def _least_chunk(measured: Samples) -> int:
    """Where the fit begins: at `SHORT_CHUNK` if enough longer chunks, of several sizes, were measured."""
    sizes = measured.chunk[measured.chunk >= SHORT_CHUNK]
    return SHORT_CHUNK if len(sizes) >= _FEWEST_LONG and len(set(sizes)) > 1 else 1


def _held_out(samples: Samples) -> HeldOut | None:
    half = samples.reach // 2
    near = samples.prefix + samples.chunk <= half
    if min(int(near.sum()), int((~near).sum())) < _FEWEST_HELD_OUT:
        return None
    fit, rest = fit_samples(samples.chosen(near)), samples.chosen(~near)
    errors = np.abs(fit.seconds(rest.batch, rest.chunk, rest.prefix) / rest.seconds - 1)
    return HeldOut(half, len(errors), float(np.median(errors)), float(nearest_rank(errors.tolist(), 0.95)))


def _extrapolated(samples: Samples, fit: Fit, tokens: int) -> Extrapolation:
    chunk = min(float(samples.chunk.max()), float(tokens))
    prefix = float(tokens) - chunk
    seconds = float(fit.seconds(np.ones(1), np.array([chunk]), np.array([prefix]))[0])
    return Extrapolation(tokens, int(chunk), seconds, fit.deviation_s(chunk, prefix), tokens / samples.reach)


def _warnings(found: Diagnosis) -> Iterator[str]:
    samples, fit = found.samples, found.fit
    yield from _about_rows(samples, fit)
    for name in fit.undetermined:
        yield f"{name} cannot be told from these rows and is 0: {_WANTED[name]}"
    shares = fit.largest_shares(samples)
    for name, value, deviation, share in zip(NAMES, fit.coefficients, fit.deviations, shares, strict=True):
        if deviation > _UNSURE * value and share * deviation > _MATTERS * value:
            yield f"{name} is uncertain: {value:.3g} s, standard deviation {deviation:.2g} s"
    if found.better_shape == "rectangle":
        yield "the rectangle fits better than causal attention: is the prefix counted in the chunk, or padded?"
    if fit.p95_error > _ROUGH:
        yield (
            f"one row in 20 is off by more than {fit.p95_error:.0%}: the coefficients are rough, costs of kind table "
            "follow the rows themselves"
        )
    if found.held_out is not None and found.held_out.p95_error > _ROUGH:
        yield (
            f"fitted to contexts of at most {found.held_out.fitted_to_tokens} tokens it is off by up to "
            f"{found.held_out.p95_error:.0%} (p95) on twice as long ones: longer contexts than measured are a guess"
        )
    if found.extrapolation is not None:
        yield from _about_extrapolation(samples, fit, found.extrapolation)


_WANTED = {
    "chunk_s": "measure chunks of several sizes",
    "prefix_s": "measure each of several chunk sizes after several prefixes",
    "token_s": "measure chunks of several sizes",
    "pair_s": "measure chunks of several sizes, after several prefixes",
}


def _about_rows(samples: Samples, fit: Fit) -> Iterator[str]:
    left_out = int((~fit.kept).sum())
    if left_out and not fit.kept[0]:
        times = 1 / max(1e-9, 1 + float(fit.relative_errors[0]))
        if times > _SLOW_START:
            yield f"the first row took {times:.3g} times as long as the others say (warming up?) and is left out"
            left_out -= 1
    if left_out:
        yield f"{left_out} of {len(samples.seconds)} rows are far from the others and left out"
    if len(samples.seconds) <= int((fit.coefficients > 0).sum()):
        rows = "1 row" if len(samples.seconds) == 1 else f"{len(samples.seconds)} rows"
        yield f"{rows} for as many coefficients: the errors say nothing"
    if samples.prefix.max() == 0:
        yield "no row has a prefix: the time after one is what causal attention makes of whole prompts"
    elif samples.prefix.min() == samples.prefix.max():
        yield f"every row has the prefix {samples.prefix[0]:.0f}: how the time grows with it is not measured"


def _about_extrapolation(samples: Samples, fit: Fit, asked: Extrapolation) -> Iterator[str]:
    if asked.beyond <= 1:
        return
    known = asked.deviation_s is not None and asked.seconds > 0
    share = asked.deviation_s / asked.seconds if asked.deviation_s is not None and known else 1.0
    unsure = share > _FAR_OFF
    verdict = "; the rows do not support that" if unsure or asked.beyond > _FAR_BEYOND else ""
    spread = f"standard deviation {share:.1%}" if known else "standard deviation unknown"
    yield (
        f"a context of {asked.tokens} tokens is {asked.beyond:.3g} times the longest one measured ({samples.reach}), "
        f"{spread} if the shape holds{verdict}"
    )
    if "pair_s" in fit.undetermined or samples.prefix.min() == samples.prefix.max():
        yield f"nothing measured says how the time grows with the prefix up to {asked.tokens} tokens"
