"""A path through the stages that holds for every layer split of a kind: time bounds where the split is free.

**Weights.** Layers are measured against the most frequent kind: the weight c of a layer is the largest number (rounded
down) with time(layer) >= c*rho for every chunk, rho being the time of one layer of that kind. So a stage of weight x
takes at least x*rho + o on each chunk, o being the overhead of a chunk; let C be the weight of all layers.

**Case.** Fix a threshold y. In every split some stages weigh at least y, or none does. If some do, let a and b be the
first and the last of them, f = a and r = N-1-b the number of stages in front and behind, w = b-a+1. Stages outside a..b
weigh less than y, hence at most z, the largest weight below y that consecutive layers can have; so a..b weigh at least

    D = max(C - (f+r)*z, y, 2*y + (w-2)*(lightest layer) for w > 1).

**Path** (see ``bounds``): entry chunk l passes the f stages in front, a works, m crosses from a to b, b works, the
last chunk k passes the r stages behind. Were the outside weights X in front and Y behind, with a..b weighing C - X - Y,
the path would take, beside work of at least y*rho + o for every chunk,

    X*rho(l) + f*(o + hop(l))  +  (C-X-Y-y)*rho(m) + (w-1)*(o + hop(m))  +  Y*rho(k) + r*(o + hop(k)).

X and Y are not known. Lower the hop of m to the least hop of any chunk whose rho is as large as that of m (any chunk of
any wave in question): then the crossing grows with rho(m) alone, its maximum is where rho is largest, and weight moved
from outside into a..b only adds, for m may be any of the chunks from l to k, l and k included, in the wave of either.
So the path with the largest X and Y that there can be, X = max(0, C-D-r*z), Y = max(0, C-D-f*z) and D inside, is a
bound for the whole case: were X smaller by some amount, D would be larger by at least that. (A mean over entering
chunks, which ``bounds`` takes, is a mean of such paths, each with its own best m.)

**Concavity.** For given cuts the lowered path is linear in (X, Y, D, f, r, w) while D = C - (f+r)*z, since its best m
does not depend on them; its minimum over cuts is concave. So a case between evaluated ones is bounded by interpolation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formulations.stage_path import StagePath
from formulations.tables import StageTables, Table, fastest_die
from instances.costs import RooflineSpec
from instances.workload import Shape

WEIGHT_UNIT = 2.0**-20
"""Weights are multiples of it, so that their sums are exact."""

WaveKind = tuple[Shape, int]
"""(request shape, number of requests) of a wave."""


@dataclass(frozen=True)
class SplitCase:
    """Splits whose first and last stage of weight >= ``weight`` have so many stages in front of and behind them.

    Attributes
    ----------
    weight, lighter
        y, and z: the largest weight below it that a stage can have.
    front, back
        f and r; None for all splits with such a stage, wherever it is.
    end
        Least weight of the first stage, where it is outside.
    interpolates
        Whether D is C - (f+r)*z and the head runs once, as for all cases around it, and not what may be more.
    """

    weight: float
    lighter: float
    front: int | None
    back: int | None
    end: float = 0.0
    interpolates: bool = False


class ReferenceLayers:
    """Layers of a model by weight, and the paths of cases for waves of several kinds.

    Attributes
    ----------
    weights
        c of each layer, (L,).
    """

    def __init__(self, tables: StageTables, admitted: Mapping[WaveKind, int]) -> None:
        instance = tables.instance
        self.stages = instance.pipeline.stages
        self._admitted = {kind: _chunks_of_at_most(tables, kind, tokens) for kind, tokens in admitted.items()}
        die = fastest_die(instance)
        # Fitted and measured costs have the overheads and the head in them, and share them like the rest.
        roofline = isinstance(instance.costs, RooflineSpec)
        self._overhead = die.chunk_overhead_s if roofline else 0.0
        self._head = {kind: instance.stage_cost.head_seconds(die, kind[1]) for kind in admitted}
        self._hop = {kind: _finite(tables.transfer(kind[1], kind[0])) for kind in admitted}
        kinds = instance.model.layer_kinds
        names = sorted(set(kinds), key=lambda name: (-kinds.count(name), kinds.index(name))) if roofline else kinds[:1]

        def alone(name: str, kind: WaveKind) -> Table:
            layer = kinds.index(name)
            stage = tables.stage(die, layer, layer + 1, kind[1], kind[0], head=False)
            return _finite(stage - self._overhead)

        self._rho = {kind: alone(names[0], kind) for kind in admitted}
        for kind, chunks in self._admitted.items():
            # Chunks outside a measured table have no time, and no plan.
            chunks &= np.isfinite(tables.stage(die, 0, 1, kind[1], kind[0], head=False))
        weight = {names[0]: 1.0}
        for name in names[1:]:
            ratios = [_least_ratio(alone(name, kind), rho, self._admitted[kind]) for kind, rho in self._rho.items()]
            # Where the reference takes no time any weight would be true.
            weight[name] = float(np.floor(min(1e6, *ratios) / WEIGHT_UNIT) * WEIGHT_UNIT)
        self.weights = np.array([weight.get(name, 1.0) for name in kinds])
        self._least_hop = self._least_hops()

    def paths(self, case: SplitCase) -> dict[WaveKind, StagePath]:
        """The path of a case, for each kind of wave."""
        return {kind: self._path(case, kind) for kind in self._rho}

    def _path(self, case: SplitCase, kind: WaveKind) -> StagePath:
        rho, overhead, head = self._rho[kind], self._overhead, self._head[kind]
        work = np.where(self._admitted[kind], case.weight * rho + overhead, np.inf)
        nothing = np.zeros_like(rho)
        if case.front is None or case.back is None:
            return StagePath(work, nothing, nothing, None, np.full(len(rho), head))
        front, back, width = case.front, case.back, self.stages - case.front - case.back
        inside, before, behind = self._weights_of(case)
        step = overhead + self._hop[kind]
        way_out = (behind * rho + back * step)[:, -1]
        if back or case.interpolates:
            way_out += head
        else:
            # b is the last stage, and runs the head in every wave.
            work[:-1, -1] += head
        return StagePath(
            work,
            crossing=(inside - case.weight) * rho + (width - 1) * (overhead + self._least_hop[kind]),
            entry=before * rho + front * step,
            lead=(case.weight - case.end) * rho if front else nothing,
            way_out=way_out,
        )

    def _weights_of(self, case: SplitCase) -> tuple[float, float, float]:
        """D, X and Y of a case."""
        assert case.front is not None and case.back is not None
        total, width = float(self.weights.sum()), self.stages - case.front - case.back
        inside = total - (case.front + case.back) * case.lighter
        if not case.interpolates:
            several = 2 * case.weight + (width - 2) * float(self.weights.min()) if width > 1 else case.weight
            inside = max(inside, several)
        outside = total - inside
        return inside, max(0.0, outside - case.back * case.lighter), max(0.0, outside - case.front * case.lighter)

    def _least_hops(self) -> dict[WaveKind, Table]:
        """For each chunk the least hop of any admitted chunk, of any kind of wave, whose rho is as large."""
        rho = np.concatenate([self._rho[kind][chunks] for kind, chunks in self._admitted.items()])
        hop = np.concatenate([self._hop[kind][chunks] for kind, chunks in self._admitted.items()])
        order = np.argsort(rho, kind="stable")
        least = np.append(np.minimum.accumulate(hop[order][::-1])[::-1], 0.0)
        return {kind: least[np.searchsorted(rho[order], table)] for kind, table in self._rho.items()}


def _finite(table: Table) -> Table:
    """0 in place of what is no chunk."""
    return np.where(np.isfinite(table), table, 0.0)


def _chunks_of_at_most(tables: StageTables, kind: WaveKind, tokens: int) -> npt.NDArray[np.bool_]:
    position = tables.grid(kind[0]).tokens
    chunk = position[None, :] - position[:, None]
    return (chunk > 0) & (chunk <= tokens)


def _least_ratio(time_s: Table, reference_s: Table, chunks: npt.NDArray[np.bool_]) -> float:
    """Largest c with time_s >= c*reference_s for all chunks, less what rounding may add."""
    used = chunks & (reference_s > 0)
    return float((time_s[used] / reference_s[used]).min(initial=np.inf)) * (1.0 - 1e-12)
