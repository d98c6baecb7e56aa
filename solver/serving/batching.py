"""What schedulers of continuous batching share: a queue, running requests, their memory, preemption."""

from __future__ import annotations

from collections import deque

from solver.serving.jobs import Batch, Job, Piece
from solver.serving.memory import Memory


class Batching:
    """First come, first served; the memory of a whole prompt is taken when its first tokens run.

    A running request that gets no memory for its next token preempts the one that came last: its KV is given up, and
    it computes prompt and produced tokens anew (Sarathi-Serve and vLLM: recompute).

    Parameters
    ----------
    longest_chunk
        Most tokens of one prompt in an iteration; sliding layers keep that much beyond their window.
    most_running
        Requests that run at a time (max_num_seqs).
    """

    def __init__(self, memory: Memory, longest_chunk: int, most_running: int) -> None:
        self.memory = memory
        self.longest_chunk = longest_chunk
        self.most_running = most_running
        self.jobs: dict[int, Job] = {}
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.preemptions = 0

    def arrive(self, job: Job, now_ps: int) -> None:
        """Queue a request."""
        self.jobs[job.index] = job
        self.waiting.append(job)

    def advance(self, now_ps: int) -> None:
        """Nothing happens besides iterations."""

    def wake_ps(self, now_ps: int) -> int | None:
        """Nothing changes by itself."""
        return None

    def why_idle(self) -> str:
        """The first request in the queue, which has no room even alone."""
        job = self.waiting[0]
        return f"memory: request {job.index} needs {self.memory.shortage(self._most_tokens(job), self._chunk(job))}"

    def finish(self, batch: Batch, now_ps: int) -> None:
        """Count tokens that came out; requests that are through leave."""
        for piece in batch.pieces:
            job = self.jobs[piece.job]
            job.flying -= 1
            job.produced += piece.emits
            if job.done:
                self.memory.release(job.index)
                self.running.remove(job)

    def admit(self, job: Job) -> bool:
        """Take the first of the queue in if there is room for its whole prompt, now, and for its last token, ever."""
        if len(self.running) >= self.most_running or not self.memory.ever_fits(
            self._most_tokens(job), self._chunk(job)
        ):
            return False
        if not self.memory.hold(job.index, job.goal, self._chunk(job)):
            return False
        self.waiting.popleft()
        self.running.append(job)
        self.running.sort(key=lambda each: (each.arrival_ps, each.index))
        return True

    def decode(self, limit: int) -> list[Piece]:
        """One token each of at most ``limit`` requests that are ready for it, earliest first; may preempt others."""
        pieces: list[Piece] = []
        for job in list(self.running):
            if len(pieces) >= limit:
                break
            if job.prefilling or job.flying or job not in self.running:
                continue
            fits = self.memory.hold(job.index, job.context + 1, 1)
            chosen = {piece.job for piece in pieces}
            while not fits:
                last = next(each for each in reversed(self.running) if not each.flying and each.index not in chosen)
                self._preempt(last)
                if last is job:
                    break
                fits = self.memory.hold(job.index, job.context + 1, 1)
            if fits:
                pieces.append(self._take(job, 1, decode=True))
        return pieces

    def prefill(self, job: Job, tokens: int) -> Piece:
        """The next tokens of a prompt."""
        return self._take(job, tokens, decode=False)

    def batch(self, pieces: list[Piece]) -> Batch | None:
        """The iteration of these pieces; None of nothing."""
        closes = tuple(
            piece.job
            for piece in pieces
            if piece.emits and self.jobs[piece.job].produced + 1 >= self.jobs[piece.job].output
        )
        return Batch(tuple(pieces), self.memory.held, closes) if pieces else None

    def _take(self, job: Job, tokens: int, *, decode: bool) -> Piece:
        before = job.context
        job.context += tokens
        job.computed += tokens
        job.flying += 1
        if decode:
            job.goal = job.context
            return Piece(job.index, tokens, before, True, True)
        return Piece(job.index, tokens, before, False, job.context == job.goal)

    def _chunk(self, job: Job) -> int:
        return min(self.longest_chunk, job.goal)

    def _most_tokens(self, job: Job) -> int:
        return job.prompt + job.output - 1

    def _preempt(self, job: Job) -> None:
        self.preemptions += 1
        self.memory.release(job.index)
        self.running.remove(job)
        job.context, job.goal = 0, job.prompt + job.produced
        self.waiting.appendleft(job)
