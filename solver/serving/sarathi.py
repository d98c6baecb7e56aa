"""Sarathi-Serve: decodes first, then prompts in chunks up to a budget of tokens (``sarathi_scheduler.py``)."""

from __future__ import annotations

from typing import Any

from solver.search import Search
from solver.serving.batching import Batching
from solver.serving.jobs import Batch, Job, Log, Piece
from solver.serving.memory import Memory
from solver.serving.setting import Setting, answer, setting_of
from solver.serving.tokens import measured

LADDER = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
"""Budgets of the sweep."""


class Sarathi(Batching):
    """Each iteration: a token of every running request, next tokens of running prompts, then of waiting ones.

    No iteration has more tokens than the budget, decodes included (the public code lets decodes exceed it). The gate of
    a pipeline, fewer than N iterations inside, is the loop's.

    Parameters
    ----------
    budget
        Tokens of an iteration at most (chunk_size).
    overlapped
        Whether a prompt's next chunk may follow while its last one is still inside, as vLLM does; Sarathi waits.
    """

    def __init__(self, memory: Memory, budget: int, most_running: int, *, overlapped: bool) -> None:
        super().__init__(memory, budget, most_running)
        self.budget = budget
        self.overlapped = overlapped

    def compose(self, now_ps: int) -> Batch | None:
        """Decode-maximal batching."""
        pieces = self.decode(self.budget)
        left = self.budget - len(pieces)
        for job in self.running:
            if left and job.prefilling and (self.overlapped or not job.flying):
                left -= self._chunk_of(job, left, pieces)
        while left and self.waiting:
            job = self.waiting[0]
            if not self.admit(job):
                break
            left -= self._chunk_of(job, left, pieces)
        return self.batch(pieces)

    def _chunk_of(self, job: Job, left: int, pieces: list[Piece]) -> int:
        tokens = min(left, job.goal - job.context)
        pieces.append(self.prefill(job, tokens))
        return tokens


def sarathi(search: Search) -> None:
    """Serve with the budget asked for, or with the largest of a ladder that keeps the time between tokens."""
    budget: int = search.knobs["budget"]
    if budget == 0:
        budget = _swept(search)
    search.details["budget_tokens"] = budget
    setting = setting_of(search, budget)
    log, scheduler = run(search, setting, budget)
    search.details["preemptions"] = scheduler.preemptions
    answer(search, setting.judged(log))


def run(search: Search, setting: Setting, budget: int) -> tuple[Log, Sarathi]:
    """Serve all requests with a budget."""
    scheduler = Sarathi(
        Memory(setting.cost, setting.free_bytes),
        budget,
        search.knobs["running"],
        overlapped=search.knobs["chunks"] == "overlapped",
    )
    return setting.run(scheduler, setting.jobs(search.knobs["output"])), scheduler


def _swept(search: Search) -> int:
    """Run every budget of the ladder; the largest that keeps the p99 time between tokens, else the least."""
    target_s = search.knobs["target_tbt_ms"] / 1000
    rows: list[dict[str, Any]] = []
    longest = max(request.tokens for request in search.evaluator.requests)
    for budget in LADDER:
        if search.deadline.over:
            break
        log, _ = run(search, setting_of(search, budget), budget)
        rows.append({"budget_tokens": budget, **measured(log), "reason": log.stuck})
        if budget >= longest:
            break
    search.details["sweep"] = rows
    kept = [row["budget_tokens"] for row in rows if row["reason"] is None and (row["p99_tbt_s"] or 0) <= target_s]
    search.details["largest_within_target_tokens"] = max(kept, default=None)
    return max(kept, default=LADDER[0])
