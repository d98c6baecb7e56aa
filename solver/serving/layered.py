"""Layered prefill (arXiv 2510.08055): prompts pass one group of layers an iteration, decodes pass all.

A cohort of prompts goes through G groups of layers in G iterations, so that the weights of each layer's experts are
read once for the whole cohort, where chunked prefill reads them once a chunk. No new cohort starts before it is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from instances.pipeline import balanced_layers
from solver.search import Search
from solver.serving.batching import Batching
from solver.serving.jobs import Batch, Log, Piece
from solver.serving.memory import Memory
from solver.serving.sarathi import Sarathi
from solver.serving.setting import Setting, answer, setting_of
from solver.serving.tokens import measured

GROUPS = {"4": (1, 2, 4), "12": (1, 2, 4, 6, 12), "16": (1, 2, 4, 8, 16), "24": (1, 2, 4, 8, 24)}
"""Groups of a cohort of at most 512, 1024, 2048, ... tokens, and of larger ones, by the number of stages asked for."""
SMALLEST_COHORT = 512


def groups_of(tokens: int, table: Sequence[int]) -> int:
    """Number of layer groups of a cohort."""
    step = 0
    while step < len(table) - 1 and tokens > SMALLEST_COHORT << step:
        step += 1
    return table[step]


def layer_groups(layers: int, groups: int) -> list[tuple[int, int]]:
    """Contiguous groups whose sizes differ by at most one: (first layer, behind the last)."""
    sizes = balanced_layers(layers, min(groups, layers))
    return [(stop - size, stop) for size, stop in zip(sizes, accumulate(sizes), strict=True)]


class Layered(Batching):
    """One group of layers of one cohort in each iteration, and a token of every running request.

    Parameters
    ----------
    largest
        Tokens of a cohort (max-num-batched-tokens); longer prompts come in pieces of that size.
    layers
        Layers of the model.
    table
        Groups by size of the cohort, see ``GROUPS``.
    """

    def __init__(self, memory: Memory, largest: int, most_running: int, layers: int, table: Sequence[int]) -> None:
        super().__init__(memory, largest, most_running)
        self.largest = largest
        self.layers = layers
        self.table = table
        self._cohort: list[Piece] = []
        self._groups: list[tuple[int, int]] = []
        self._inside = 0

    def compose(self, now_ps: int) -> Batch | None:
        """Decodes, and the next group of the cohort."""
        decodes = self.decode(self.most_running)
        if not self._groups and not self._inside:
            self._gather()
        if not self._groups:
            return self.batch(decodes)
        group = self._groups.pop(0)
        last = not self._groups
        pieces = [piece if last else replace(piece, emits=False) for piece in self._cohort]
        for piece in pieces:
            # From the first group to the last a request counts as inside, so that nothing else of it starts.
            self.jobs[piece.job].flying += not last
        self._inside += 1
        found = self.batch(decodes + pieces)
        return None if found is None else replace(found, layers=group)

    def finish(self, batch: Batch, now_ps: int) -> None:
        """As ever; and the cohort may be through."""
        super().finish(batch, now_ps)
        self._inside -= batch.layers is not None

    def _gather(self) -> None:
        """The next cohort: running prompts first, then the queue."""
        self._cohort, left = [], self.largest
        prompts = [job for job in self.running if job.prefilling]
        while left and (prompts or self.waiting):
            if prompts:
                job = prompts.pop(0)
            else:
                job = self.waiting[0]
                if not self.admit(job):
                    break
            tokens = min(left, job.goal - job.context)
            self._cohort.append(self.prefill(job, tokens))
            left -= tokens
        if self._cohort:
            self._groups = layer_groups(self.layers, groups_of(self.largest - left, self.table))


def layered(search: Search) -> None:
    """Serve in layer groups, and beside it by chunks, for what experts and tokens gain by it."""
    knobs = search.knobs
    setting = setting_of(search, knobs["largest"] + knobs["running"])
    scheduler = Layered(
        Memory(setting.cost, setting.free_bytes),
        knobs["largest"],
        knobs["running"],
        search.instance.model.layer_count,
        GROUPS[knobs["groups"]],
    )
    log = setting.run(scheduler, setting.jobs(knobs["output"]))
    search.details["layered"] = _measured(setting, log)
    if knobs["chunk"]:
        chunked = setting_of(search, knobs["chunk"])
        memory = Memory(chunked.cost, chunked.free_bytes)
        other = Sarathi(memory, knobs["chunk"], knobs["running"], overlapped=True)
        search.details["chunked"] = _measured(chunked, chunked.run(other, chunked.jobs(knobs["output"])))
    answer(search, setting.judged(log))


def _measured(setting: Setting, log: Log) -> dict[str, Any]:
    expert = sum(setting.cost.expert_bytes(iteration.batch) for iteration in log.iterations)
    return {**measured(log), "expert_bytes": expert or None, "reason": log.stuck}
