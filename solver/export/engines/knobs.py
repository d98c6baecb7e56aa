"""What an engine can be told about chunks: a size, or a predictor's settings, and the lists that come of them.

No engine takes a list of chunks, so an exported plan is what its scheduler makes of a few numbers. Each candidate here
is run through the engine's own rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from instances.errors import InputError
from instances.instance import Instance
from instances.workload import Shape
from solver.counts import growing_counts
from solver.policies.dcpp.lists import SGLANG_LONGEST, SGLANG_SAMPLES, Predictor

SMOOTHINGS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
"""Smoothing factors tried; engines' guides name 0.6 to 0.85."""
LEAST_CHUNKS = (0.125, 0.25, 0.5)
"""Values of min_chunk tried, as shares of the base."""


@dataclass(frozen=True)
class Knobs:
    """Settings of an engine's chunking.

    Attributes
    ----------
    base
        Tokens of a step: the static size, or of a first chunk.
    smoothing
        Share of the way to the predicted size; None: every chunk has the static size.
    least
        vLLM-Ascend's min_chunk; None elsewhere.
    batch
        Requests that a step takes whole; 1 where requests are cut.
    """

    base: int
    smoothing: float | None = None
    least: int | None = None
    batch: int = 1

    @property
    def dynamic(self) -> bool:
        """Whether a predictor sizes the chunks."""
        return self.smoothing is not None


@dataclass(frozen=True)
class Chunker:
    """An engine's ways to cut, on an instance and a layer split.

    Attributes
    ----------
    predictor
        ``sglang``, ``ascend``, or empty for engines with a static size alone.
    page
        Tokens of its KV pages or blocks.
    most_steps
        Chunks of the longest request with the smallest of the first sizes tried.
    """

    instance: Instance
    layers: tuple[int, ...]
    predictor: str
    page: int
    most_steps: int

    @property
    def alignment(self) -> int:
        """Tokens of which chunks are multiples: pages of at least 64."""
        return self._predictor(1.0).alignment

    def sizes(self, knobs: Knobs) -> dict[int, tuple[int, ...]] | None:
        """Chunk sizes per number of uncached tokens; None where the engine would refuse, or the sizes break a rule.

        SGLang's profile shrinks in steps of a 128th of 1.25 bases, which have to divide among a tensor-parallel group
        (sglang #23621).
        """
        degree = self.instance.hardware.tensor_parallel
        if self.predictor == "sglang" and knobs.dynamic and int(SGLANG_LONGEST * knobs.base) // SGLANG_SAMPLES % degree:
            return None
        try:
            lists = self._lists(knobs)
        except InputError:
            return None
        most = self.instance.pipeline.max_chunks
        return lists if lists is not None and all(len(sizes) <= most for sizes in lists.values()) else None

    def _lists(self, knobs: Knobs) -> dict[int, tuple[int, ...]] | None:
        """Lists by uncached tokens; None where two prefixes of as many uncached tokens are cut differently."""
        lists: dict[int, tuple[int, ...]] = {}
        for shape in self.instance.workload.shapes:
            cuts = tuple(self._cut(shape, knobs))
            if lists.setdefault(shape[0] - shape[1], cuts) != cuts:
                return None
        return lists

    def first(self) -> Iterator[Knobs]:
        """Settings to start from: equal slices of the longest request, then the predictor on two to four times that."""
        yield from (Knobs(base) for base in self._ladder() if not self._packs(base))
        if len(self.instance.workload.shapes) == 1:
            (tokens,) = self.instance.workload.uncached_counts
            yield from (Knobs(batch * tokens, batch=batch) for batch in self.instance.batches if batch > 1)
        if self.predictor:
            for base in self._ladder():
                least = self._aligned(base // 4) if self.predictor == "ascend" else None
                yield from (Knobs(base, smoothing, least) for smoothing in (0.65, 0.75, 0.85, 1.0))

    def near(self, knobs: Knobs) -> Iterator[Knobs]:
        """Settings beside these: one base, smoothing or least chunk away."""
        if knobs.batch > 1:
            return
        for step in {self.alignment, self._aligned(knobs.base // 8)}:
            for base in (knobs.base - step, knobs.base + step):
                if base >= self.alignment and not self._packs(base):
                    yield replace(knobs, base=base)
        if knobs.dynamic:
            yield from (replace(knobs, smoothing=smoothing) for smoothing in SMOOTHINGS)
        if knobs.least is not None:
            yield from (replace(knobs, least=self._aligned(round(share * knobs.base))) for share in LEAST_CHUNKS)

    def _packs(self, base: int) -> bool:
        """Whether a step takes several whole requests, all alike: then it is a batch, and not replayed one by one."""
        counts = self.instance.workload.uncached_counts
        return len(counts) == 1 and base >= 2 * counts[0]

    def _ladder(self) -> list[int]:
        longest = max(self.instance.workload.uncached_counts)
        counts = growing_counts(min(self.most_steps, -(-longest // self.alignment)))
        return sorted({self._aligned(-(-longest // count)) for count in counts})

    def _aligned(self, tokens: int) -> int:
        """Rounded up to whole pages, at least one."""
        return max(1, -(-tokens // self.alignment)) * self.alignment

    def _cut(self, shape: Shape, knobs: Knobs) -> list[int]:
        tokens = shape[0] - shape[1]
        if knobs.batch > 1:
            return [tokens]
        if knobs.smoothing is None:
            whole, rest = divmod(tokens, knobs.base)
            return [knobs.base] * whole + [rest] * (rest > 0)
        predictor = self._predictor(knobs.smoothing)
        if self.predictor == "ascend":
            return predictor.ascend(shape, knobs.base, knobs.least or self.alignment)
        return predictor.sglang(shape, knobs.base, most_tokens(knobs))

    def _predictor(self, smoothing: float) -> Predictor:
        return Predictor(self.instance, self.layers, 1, smoothing, self.page)


def most_tokens(knobs: Knobs) -> int:
    """SGLang's max_prefill_tokens for a base: its default, or the base where that is larger."""
    return max(16384, knobs.base)


def chunk_summary(sizes: Mapping[int, tuple[int, ...]]) -> str:
    """The lists in a few words: number, first, last."""
    return "; ".join(
        f"{tokens} tokens in {len(cuts)} chunk{'s' * (len(cuts) != 1)}, first {cuts[0]}, last {cuts[-1]}"
        for tokens, cuts in sizes.items()
    )
