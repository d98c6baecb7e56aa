"""The one evaluator of time and memory of a stage, whatever the cost model (spec section 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from instances.costs import roofline
from instances.costs.fitted import fitted_seconds
from instances.costs.roofline import LayerSeconds
from instances.costs.specs import FittedSpec, RooflineSpec, TableSpec
from instances.costs.table import TimeTable
from instances.errors import InputError
from instances.hardware import Die
from instances.model import Model
from instances.parameters import check_range, die_weight_bytes, growth_bytes_per_token, kv_held_bytes

FloatArray = npt.NDArray[np.float64]
WholeModelTime = Callable[[int, FloatArray, FloatArray, float | None], FloatArray]
"""Seconds of all layers for (batch, chunk, prefix, time of points that are not known)."""


class StageCost:
    """Time, KV, workspace, weights and activations of stages of one model.

    A stage is the layers ``start .. stop-1``. Chunk and prefix may be any arrays that broadcast; results have the
    broadcast shape. Made by `make_costs`.
    """

    def __init__(self, model: Model, whole_model: WholeModelTime | None = None) -> None:
        self.model = model
        self._whole_model = whole_model

    def stage_seconds(
        self,
        die: Die,
        start: int,
        stop: int,
        batch: int,
        chunk: npt.ArrayLike,
        prefix: npt.ArrayLike,
        *,
        head: npt.ArrayLike = False,
        outside: float | None = None,
    ) -> FloatArray:
        """compute(s, B, c, p): the layers, chunk_overhead_s, and the output head where ``head`` is true.

        ``outside`` is the whole model's time at points outside a measured table; without it they are an error.

        ``head`` belongs to the last chunk of the last stage. With fitted or measured costs the whole model's time is
        shared among stages by their number of layers and nothing is added: overheads and head are in it already, and
        the die does not matter.

        Raises
        ------
        InputError
            For an empty range of layers, a batch below 1, a negative or not finite chunk or prefix, or a point
            outside a measured table.
        """
        check_range(self.model, start, stop)
        sequences, c, p = _checked(batch, chunk, prefix)
        with_head = np.asarray(head, dtype=np.bool_)
        if self._whole_model is not None:
            share = (stop - start) / self.model.layer_count
            seconds = share * self._whole_model(sequences, c, p, outside)
            return np.broadcast_to(seconds, np.broadcast_shapes(seconds.shape, with_head.shape)).copy()
        # Parts that depend on the chunk alone stay in its shape; only attention needs the whole grid.
        flat: FloatArray = np.full(c.shape, die.chunk_overhead_s)
        paired: FloatArray = np.zeros(())
        for kind, count in self.model.kind_counts(start, stop).items():
            parts = roofline.layer_seconds(self.model, kind, die, sequences, c, p)
            flat = flat + count * (parts.gemm + parts.vector + parts.overhead)
            paired = paired + count * parts.attention
        total = flat + paired
        if with_head.any():
            total = total + np.where(with_head, roofline.head_seconds(self.model, die, sequences), 0.0)
        return np.array(np.broadcast_to(total, np.broadcast_shapes(c.shape, p.shape, with_head.shape)))

    def layer_seconds(
        self, die: Die, kind: str, batch: int, chunk: npt.ArrayLike, prefix: npt.ArrayLike
    ) -> LayerSeconds:
        """Parts of the time of one layer of the named kind; roofline only.

        Raises
        ------
        InputError
            For an unknown kind, for costs that are not the roofline, and as `stage_seconds`.
        """
        if self._whole_model is not None:
            raise InputError("costs.kind", "fitted or table", "roofline: only it has parts of a layer")
        if kind not in self.model.kinds:
            raise InputError("kind", kind, f"one of {', '.join(self.model.kinds)}")
        sequences, c, p = _checked(batch, chunk, prefix)
        return roofline.layer_seconds(self.model, kind, die, sequences, c, p)

    def head_seconds(self, die: Die, batch: int) -> float:
        """Time of the output head for one token of each sequence; 0 where the whole model's time includes it."""
        return roofline.head_seconds(self.model, die, batch) if self._whole_model is None else 0.0

    def kv_held_bytes(
        self, start: int, stop: int, batch: int, tokens_after: npt.ArrayLike, chunk: npt.ArrayLike
    ) -> FloatArray:
        """B*K(i): KV the stage holds once a chunk has started, ``tokens_after`` being P with the chunk included."""
        check_range(self.model, start, stop)
        sequences, c, tokens = _checked(batch, chunk, tokens_after)
        held: FloatArray = np.zeros(np.broadcast_shapes(c.shape, tokens.shape))
        for kind, count in self.model.kind_counts(start, stop).items():
            held = held + count * sequences * kv_held_bytes(self.model, kind, tokens, c)
        return held

    def spillable_bytes_per_token(self, start: int, stop: int) -> float:
        """KV bytes a token of one sequence leaves in full-attention and MLA layers, the part that may be spilled."""
        check_range(self.model, start, stop)
        return growth_bytes_per_token(self.model, start, stop)

    def workspace_bytes(self, start: int, stop: int, batch: int, largest_chunk: int) -> float:
        """B*max(c)*(2*hidden + active width)*activation_bytes, with the widest layer of the stage."""
        check_range(self.model, start, stop)
        width = max(self.model.kinds[kind].active_width for kind in self.model.kind_counts(start, stop))
        return batch * largest_chunk * (2 * self.model.hidden + width) * self.model.activation_bytes

    def activation_bytes(self, batch: int, chunk: npt.ArrayLike) -> FloatArray:
        """Bytes a stage sends to the next: B*c*hidden*activation_bytes."""
        sequences, c, _ = _checked(batch, chunk, 0)
        return sequences * c * (self.model.hidden * self.model.activation_bytes)

    def weight_bytes(self, start: int, stop: int, embedding: bool, head: bool) -> float:
        """Weight bytes of a stage, with the embedding and the head where it has them."""
        return die_weight_bytes(self.model, [(start, stop)], embedding, head)

    def die_weight_bytes(self, parts: Sequence[tuple[int, int]], embedding: bool, head: bool) -> float:
        """Weight bytes of a die that holds several parts; tied embedding and head count once on it."""
        return die_weight_bytes(self.model, parts, embedding, head)


def make_costs(model: Model, spec: RooflineSpec | FittedSpec | TableSpec, base_dir: Path = Path()) -> StageCost:
    """Build the evaluator; a table's relative path starts at ``base_dir``.

    Raises
    ------
    InputError
        If the roofline has no formula for a layer of the model, or a table cannot be read.
    """
    match spec:
        case FittedSpec():
            return StageCost(model, lambda batch, chunk, prefix, _: fitted_seconds(spec, batch, chunk, prefix))
        case TableSpec():
            return StageCost(model, TimeTable(spec.profile(base_dir)).seconds)
        case RooflineSpec():
            roofline.refuse_unknown_time(model)
            return StageCost(model)


def _checked(batch: int, chunk: npt.ArrayLike, prefix: npt.ArrayLike) -> tuple[int, FloatArray, FloatArray]:
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise InputError("batch", batch, "a whole number of at least 1")
    return int(batch), _amounts("chunk", chunk), _amounts("prefix", prefix)


def _amounts(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InputError(name, str(array.dtype), "numbers of tokens")
    tokens = array.astype(np.float64)
    if tokens.size and not (np.isfinite(tokens).all() and tokens.min() >= 0):
        worst = tokens[~(np.isfinite(tokens) & (tokens >= 0))][0]
        raise InputError(name, float(worst), "finite numbers of tokens, at least 0")
    return tokens
