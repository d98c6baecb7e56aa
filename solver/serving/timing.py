"""How long a mixed iteration takes on each stage, and what its tokens hold and move.

With the roofline the parts of a layer are timed as one pass over the iteration: the matrices see all tokens of the
iteration together (so that weights, touched experts included, are read once), attention is the sum over the pieces,
each on its own prefix (a decode of one token reads all KV of its request), and the overheads of layers and chunk are
paid once. The head runs once for all tokens that come out. One piece alone takes ``StageCost.stage_seconds``.

With fitted costs, chunk_s is paid once and the terms that count tokens once a piece. Measured tables say nothing of
mixed iterations and are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from instances.costs import RooflineSpec
from instances.costs.roofline import touched_experts
from instances.costs.specs import TableSpec
from instances.errors import InputError
from instances.hardware import Die
from instances.instance import Instance
from instances.layers import ExpertFeedForward, LinearAttention, SlidingAttention
from instances.parameters import growth_bytes_per_token, kv_bytes_per_token, matrices
from solver.serving.jobs import Batch, Piece
from solver.simulation.network import whole_ps

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Stage:
    start: int
    stop: int
    die: Die


class IterationCost:
    """Times, KV and traffic of iterations of one instance on fixed stages.

    Raises
    ------
    InputError
        For costs of kind table.
    """

    def __init__(self, instance: Instance, layers: Sequence[int], placement: Sequence[tuple[int, int]]) -> None:
        if isinstance(instance.costs, TableSpec):
            raise InputError("costs.kind", "table", "roofline or fitted: a table has no times of mixed iterations")
        self.instance = instance
        self.stages = [
            _Stage(stop - count, stop, instance.hardware.die_at(position))
            for stop, count, position in zip(accumulate(layers), layers, placement, strict=True)
        ]
        self._roofline = isinstance(instance.costs, RooflineSpec)
        self._integer_ns = instance.pipeline.integer_ns

    def durations_ps(self, batch: Batch) -> tuple[int, ...]:
        """Picoseconds of an iteration on each stage, waits not counted."""
        return tuple(whole_ps(seconds, integer_ns=self._integer_ns) for seconds in self.seconds(batch))

    def seconds(self, batch: Batch) -> list[float]:
        """Seconds of an iteration on each stage; a stage where nothing is to do takes none."""
        decodes = [piece for piece in batch.pieces if piece.decode]
        emitted = sum(piece.emits for piece in batch.pieces)
        known: dict[tuple[Die, str, bool], float] = {}
        found = []
        for stage in self.stages:
            total, layers = 0.0, 0
            for active, count, kind in self._parts(stage, batch.layers):
                pieces = batch.pieces if active else decodes
                if not pieces:
                    continue
                key = stage.die, kind, active
                if key not in known:
                    known[key] = self._layer_seconds(stage.die, kind, pieces)
                total += count * known[key]
                layers += count
            if layers and self._roofline:
                total += stage.die.chunk_overhead_s
            if stage is self.stages[-1] and emitted:
                total += self.instance.stage_cost.head_seconds(stage.die, emitted)
            found.append(total)
        return found

    def expert_bytes(self, batch: Batch) -> float:
        """Bytes of routed experts read: E*(1 - (1 - k/E)^n) experts a layer that n tokens of the iteration pass."""
        decodes = sum(piece.tokens for piece in batch.pieces if piece.decode)
        model, total = self.instance.model, 0.0
        for stage in self.stages:
            for active, count, kind in self._parts(stage, batch.layers):
                moe = model.kinds[kind].feed_forward
                if isinstance(moe, ExpertFeedForward):
                    tokens = batch.tokens if active else decodes
                    expert = matrices(moe.gated) * model.hidden * moe.expert_width * model.widths.experts
                    total += count * float(touched_experts(moe.experts, moe.top_k, np.array(float(tokens)))) * expert
        return total

    def held_bytes(self, tokens: int, chunk: int) -> list[int]:
        """KV of one request on each stage, whole bytes: ``StageCost.kv_held_bytes`` rounded up."""
        grows, windows, states = self._kv
        held = grows * tokens + (states if tokens else 0.0)
        for window, each in windows.items():
            held = held + each * min(tokens, window + chunk)
        return [int(amount) for amount in np.ceil(held)]

    def send_bytes(self, batch: Batch) -> int:
        """Activations of an iteration, whole bytes; every hop carries those of all its tokens."""
        return int(np.ceil(self.instance.stage_cost.activation_bytes(1, batch.tokens)))

    def static_bytes(self, largest: int) -> list[int]:
        """Weights and the workspace of the largest iteration on each stage, whole bytes."""
        cost, last = self.instance.stage_cost, len(self.stages) - 1
        return [
            int(
                np.ceil(
                    cost.weight_bytes(stage.start, stage.stop, number == 0, number == last)
                    + cost.workspace_bytes(stage.start, stage.stop, 1, largest)
                )
            )
            for number, stage in enumerate(self.stages)
        ]

    def _parts(self, stage: _Stage, layers: tuple[int, int] | None) -> list[tuple[bool, int, str]]:
        """(whether prompts pass, number of layers, kind) of the layers of a stage."""
        counts = self.instance.model.kind_counts
        whole = counts(stage.start, stage.stop)
        if layers is None:
            return [(True, count, kind) for kind, count in whole.items()]
        low, high = max(stage.start, layers[0]), min(stage.stop, layers[1])
        inside = counts(low, high) if low < high else {}
        passed = [(True, count, kind) for kind, count in inside.items()]
        return passed + [
            (False, count - inside.get(kind, 0), kind) for kind, count in whole.items() if count > inside.get(kind, 0)
        ]

    def _layer_seconds(self, die: Die, kind: str, pieces: Sequence[Piece]) -> float:
        cost = self.instance.stage_cost
        tokens = np.array([0, *(piece.tokens for piece in pieces)], dtype=np.float64)
        prefix = np.array([0, *(piece.context for piece in pieces)], dtype=np.float64)
        if self._roofline:
            tokens[0] = tokens.sum()
            parts = cost.layer_seconds(die, kind, 1, tokens, prefix)
            return float(parts.gemm[0] + parts.vector[0] + parts.overhead + parts.attention[1:].sum())
        times = cost.stage_seconds(die, 0, 1, 1, tokens, prefix)
        return float(times[1:].sum() - (len(pieces) - 1) * times[0])

    @cached_property
    def _kv(self) -> tuple[Floats, dict[int, Floats], Floats]:
        """Bytes a token that stay, bytes a token by window, and bytes of states, each by stage."""
        model, stages = self.instance.model, len(self.stages)
        grows = np.array([growth_bytes_per_token(model, stage.start, stage.stop) for stage in self.stages])
        windows: dict[int, Floats] = {}
        states = np.zeros(stages)
        for number, stage in enumerate(self.stages):
            for kind, count in model.kind_counts(stage.start, stage.stop).items():
                attention = model.kinds[kind].attention
                if isinstance(attention, SlidingAttention):
                    each = windows.setdefault(attention.window, np.zeros(stages))
                    each[number] += count * kv_bytes_per_token(model, kind)
                elif isinstance(attention, LinearAttention):
                    if attention.state_bytes is None:
                        field = f"model.kinds.{kind}.attention.state_bytes"
                        raise InputError(field, None, f"the state of {attention.name} in bytes")
                    states[number] += count * attention.state_bytes
        return grows, windows, states
