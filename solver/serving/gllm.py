"""gLLM's token throttling (``gllm/scheduler.py``): prompts by how much waits and how much memory is free.

Memory of a whole prompt is taken up front, as in the other schedulers here; gLLM takes pages chunk by chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solver.search import Search
from solver.serving.batching import Batching
from solver.serving.jobs import Batch
from solver.serving.memory import Memory
from solver.serving.setting import answer, setting_of


@dataclass(frozen=True)
class Throttle:
    """The formulas.

    Parameters
    ----------
    most_prefill, least_prefill
        maxp and minp, tokens.
    iterations
        iterp: iterations over which waiting tokens are spread.
    threshold
        kvthresh: share of the KV memory that prompts leave alone.
    most_decode
        maxd, requests.
    stages
        Stages of the pipeline.
    """

    most_prefill: int
    least_prefill: int
    iterations: int
    threshold: float
    most_decode: int
    stages: int

    def prefill_tokens(self, waiting: Sequence[int], free_share: float) -> int:
        """Most prompt tokens of the next iteration.

        WT, where more than one prompt waits: P <= max(sum of waiting tokens // iterp, minp). UT: P <= maxp times the
        share of the memory above the threshold that is free. With one stage only P <= maxp.
        """
        if self.stages == 1:
            return self.most_prefill
        above = max(0.0, (free_share - self.threshold) / (1 - self.threshold))
        by_memory = round(self.most_prefill * above)
        if len(waiting) <= 1:
            return by_memory
        return min(by_memory, max(sum(waiting) // self.iterations, self.least_prefill))

    def decodes(self, running: int, turn: int) -> int:
        """Requests that decode in the next iteration: an N-th of all, rounded by a rotating jitter, at least one."""
        if running < self.stages:
            return min(1, running)
        return min(self.most_decode, (running + turn % self.stages) // self.stages)


class Throttled(Batching):
    """Decodes in equal parts over the iterations inside, prompts as the throttle lets them.

    A prompt's chunks follow each other without waiting. Where memory throttles prompts to nothing and nothing is
    inside or decodes, least_prefill tokens run, so that the system does not stand still.
    """

    def __init__(self, memory: Memory, throttle: Throttle, most_running: int) -> None:
        super().__init__(memory, throttle.most_prefill, most_running)
        self.throttle = throttle
        self._turn = 0
        self._inside = 0

    def compose(self, now_ps: int) -> Batch | None:
        """A part of the decodes, and as many prompt tokens as the formulas say."""
        decoding = sum(not job.prefilling and job.produced > 0 for job in self.running)
        pieces = self.decode(self.throttle.decodes(decoding, self._turn))
        prompts = [job for job in self.running if job.prefilling]
        waiting = [job.goal - job.context for job in (*prompts, *self.waiting)]
        left = self.throttle.prefill_tokens(waiting, self.memory.free_share)
        if not pieces and not self._inside:
            left = max(left, self.throttle.least_prefill)
        while left > 0 and (prompts or self.waiting):
            job = prompts.pop(0) if prompts else self.waiting[0]
            if job not in self.running and not self.admit(job):
                break
            tokens = min(left, job.goal - job.context)
            pieces.append(self.prefill(job, tokens))
            left -= tokens
        found = self.batch(pieces)
        if found is not None:
            self._turn += 1
            self._inside += 1
        return found

    def finish(self, batch: Batch, now_ps: int) -> None:
        """As ever."""
        super().finish(batch, now_ps)
        self._inside -= 1


def gllm(search: Search) -> None:
    """Serve with token throttling."""
    knobs = search.knobs
    throttle = Throttle(
        most_prefill=knobs["maxp"],
        least_prefill=knobs["minp"],
        iterations=knobs["iterp"],
        threshold=knobs["kvthresh"],
        most_decode=knobs["maxd"],
        stages=search.stages,
    )
    setting = setting_of(search, throttle.most_prefill + min(throttle.most_decode, knobs["running"]))
    scheduler = Throttled(Memory(setting.cost, setting.free_bytes), throttle, knobs["running"])
    log = setting.run(scheduler, setting.jobs(knobs["output"]))
    search.details["preemptions"] = scheduler.preemptions
    answer(search, setting.judged(log))
