"""The most memory that given cuts need at once within a budget of latency: a cumulative relaxation on whole steps.

Let S0(w,s,i) be the start of chunk i of wave w on stage s if nothing ever waited but for ``die_serial`` and
``activation_ready``, with transfers that take no time, d its duration and E0 = S0 + d. In the replay the task starts
S0 + delay with a delay of at least 0, for stalls, fetches, transfers and waits only add. If task b follows task a on a
die or along a chunk, S(b) >= S(a) + d(a), so

    delay(b) >= delay(a) - gap(a,b),       gap(a,b) = S0(b) - E0(a) >= 0,

and completions are E0 + delay at the last stage, so a budget of the objective is one of a weighted sum of delays of the
last tasks. Count delays in whole steps, rounded down: delay' = floor(delay / step). Then delay'(b) >= delay'(a) -
ceil(gap / step), and the weighted sum of delay' is at most floor(budget / step).

Just before a moment t the task has started if delay < t - S0, which is sure where delay' <= floor((t - S0) / step) - 1;
and a wave can have left a stage only if its last task has delay < t - E0, hence delay' <= ceil((t - E0) / step) - 1.
All KV of a wave that a stage has started and not left lies in some memory (``memory_admission``, ``release``), wherever
it was sent. So at every moment the sum of what has surely started and can not have left is at most all memory together.
If no whole delays satisfy all this, no plan with these cuts keeps the budget, for any placement, spill and timing.

Chunks may share a delay, that of the last of ``group`` of them: a chunk is at most as late as a later one of its die
plus the gaps between them, so it has surely started where that one's delay' is at most the above less these gaps in
whole steps. Fewer variables for a bound that is a little weaker. Shorter steps make it stronger.

``late[w,s,i,n]``: delay' of the task, the last of its group, is at most n steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from formulations.joint.variables import goal_of, units_per_byte
from formulations.tables import fastest_die
from instances.errors import InputError
from instances.instance import Instance

Ints = npt.NDArray[np.int64]
Place = tuple[int, int, int]
"""Wave, stage, chunk."""

PS = 10**12
STEPS_OF_A_WAVE = 16
"""Steps in the work of a wave on its slowest stage: delays are counted in these unless a step is given."""
MOST_TICKS = 2**20
"""Ticks of the largest chunk's KV where its bytes are not few."""


@dataclass(frozen=True, eq=False)
class PeakProblem:
    """Cuts of one batch with a budget.

    Attributes
    ----------
    earliest, duration
        S0 and d of each task in picoseconds, (W, N, M).
    kv
        KV that each task adds for good in ticks, (W, N, M), rounded down.
    room
        All memory together beside weights and workspaces, in ticks.
    weight
        Of each wave's delay in the objective, (W,).
    budget_ps
        Most that the weighted sum of delays may be; below 0 no plan keeps the budget.
    step_ps
        Length of a step.
    group
        Chunks that share a delay.
    """

    earliest: Ints
    duration: Ints
    kv: Ints
    room: int
    weight: tuple[int, ...]
    budget_ps: int
    step_ps: int
    group: int = 1

    @property
    def shape(self) -> Place:
        """W, N, M."""
        waves, stages, chunks = self.earliest.shape
        return waves, stages, chunks

    @property
    def places(self) -> Iterator[Place]:
        """Tasks with a delay of their own: the last of each group."""
        waves, stages, _ = self.shape
        return ((w, s, i) for w in range(waves) for s in range(stages) for i in self.lasts)

    @cached_property
    def lasts(self) -> list[int]:
        """The last chunk of each group; that of a wave is one."""
        chunks = self.shape[2]
        return list(range((chunks - 1) % self.group, chunks, self.group))

    @property
    def budget(self) -> int:
        """Most steps of delay, weighted."""
        return self.budget_ps // self.step_ps

    def followers(self, at: Place) -> Iterator[tuple[Place, int]]:
        """Tasks of ``places`` that wait for one of them, and by how many steps they may be less late."""
        waves, stages, chunks = self.shape
        w, s, i = at
        after = (w, s, i + self.group) if i + self.group < chunks else (w + 1, s, self.lasts[0])
        if after[0] < waves:
            yield after, self._steps_idle(at, after)
        if s + 1 < stages:
            gap = int(self.earliest[w, s + 1, i] - self.earliest[at] - self.duration[at])
            yield (w, s + 1, i), -(-gap // self.step_ps)

    def _steps_idle(self, at: Place, later: Place) -> int:
        """Steps, rounded up, for which a die does nothing between two of its tasks, were nothing late."""
        first, last = self._gone_by[at] + self.duration[at], self._gone_by[later]
        return -(-int(self.earliest[later] - self.earliest[at] - self.duration[at] - (last - first)) // self.step_ps)

    @cached_property
    def _gone_by(self) -> Ints:
        """Work of the die of each task before it, (W, N, M)."""
        waves, stages, chunks = self.shape
        work = self.duration.transpose(1, 0, 2).reshape(stages, waves * chunks)
        before = np.cumsum(work, axis=1) - work
        return before.reshape(stages, waves, chunks).transpose(1, 0, 2)

    @cached_property
    def latest(self) -> Ints:
        """Most steps that each task of ``places`` can be late, (W, N, M); 0 for others."""
        waves, stages, chunks = self.shape
        latest = np.zeros(self.shape, dtype=np.int64)
        latest[:, :, self.lasts] = np.iinfo(np.int64).max // 2
        for w in reversed(range(waves)):
            for s in reversed(range(stages)):
                for i in reversed(self.lasts):
                    if (s, i) == (stages - 1, chunks - 1) and self.weight[w]:
                        latest[w, s, i] = self.budget // self.weight[w]
                    for other, less in self.followers((w, s, i)):
                        latest[w, s, i] = min(latest[w, s, i], latest[other] + less)
        return latest

    @cached_property
    def moments(self) -> list[int]:
        """Moments at which memory is looked at: every step until the last task can have ended."""
        end = int((self.earliest + self.duration + (self.latest + 1) * self.step_ps).max())
        return list(range(self.step_ps, end + self.step_ps, self.step_ps))

    def surely_started(self, at: Place, moment: int) -> tuple[Place, int]:
        """Just before a moment any task has started if one of ``places`` is at most so many steps late; below 0: no."""
        w, s, i = at
        last = (w, s, i + (self.shape[2] - 1 - i) % self.group)
        steps = (moment - int(self.earliest[at])) // self.step_ps - 1
        return last, steps - self._steps_idle(at, last)

    def maybe_left(self, wave: int, stage: int, moment: int) -> int:
        """Just before a moment the wave can have left only if its last task is at most so many steps late."""
        at = (wave, stage, self.shape[2] - 1)
        return -(-(moment - int(self.earliest[at] + self.duration[at])) // self.step_ps) - 1

    @property
    def kv_time_fits(self) -> bool:
        """Whether KV times its least time in memory fits in all memory until the end (Little's law)."""
        to_its_end = np.cumsum(self.duration[:, :, ::-1], axis=2)[:, :, ::-1].astype(np.float64)
        needed = float((self.kv * to_its_end).sum())
        last = self.earliest[-1, -1, -1] + self.duration[-1, -1, -1]
        end = float(last) + self.budget_ps / max(1, self.weight[-1])
        return needed <= end * self.room * (1 + 1e-9)


def peak_problem(
    instance: Instance,
    batch: int,
    sizes: tuple[int, ...],
    latency_s: float,
    step_s: float | None = None,
    group: int = 1,
) -> PeakProblem:
    """The relaxation for equal requests that run in chunks of these sizes.

    Parameters
    ----------
    latency_s
        Most seconds of the objective of time: the mean latency or the makespan.
    step_s
        Length of a step; default a part of the longest wave (``STEPS_OF_A_WAVE``).
    group
        Chunks that share a delay.

    Raises
    ------
    InputError
        For a trace, a free layer split, the objective p95_latency, and sizes that are not those of a request.
    """
    workload, split, goal = instance.workload, instance.fixed_layers, goal_of(instance)
    if workload.trace is not None:
        raise InputError("workload.trace", len(workload.trace), "equal requests")
    if split is None:
        raise InputError("pipeline.layers", "free", "a given layer split")
    if goal == "p95_latency":
        raise InputError("objective", goal, "mean_latency, makespan or max_tokens")
    tokens, cached = workload.shapes[0]
    if sum(sizes) != tokens - cached:
        raise InputError("sizes", list(sizes), f"chunks of {tokens - cached} tokens")
    waves = workload.gathered(batch)
    parts = [(stop - count, stop) for stop, count in zip(accumulate(split), split, strict=True)]
    after = np.cumsum(sizes)
    chunk, last = np.array(sizes), after == after[-1]
    duration = np.empty((waves.waves, len(parts), len(sizes)), dtype=np.int64)
    kv = np.empty(duration.shape)
    cost, die = instance.stage_cost, fastest_die(instance)
    for w, size in enumerate(waves.size.tolist()):
        for s, part in enumerate(parts):
            head = last & (s == len(parts) - 1)
            seconds = cost.stage_seconds(die, *part, size, chunk, cached + after - chunk, head=head)
            duration[w, s] = np.rint(seconds * PS).astype(np.int64)
            kv[w, s] = size * cost.spillable_bytes_per_token(*part) * (chunk + cached * (after == chunk))
    unit = max(1.0 / units_per_byte(instance), float(kv.max()) / MOST_TICKS)
    earliest = _earliest(duration)
    weight = tuple(waves.size.tolist()) if goal == "mean_latency" else (0,) * (waves.waves - 1) + (1,)
    ends = (earliest + duration)[:, -1, -1]
    total = workload.count if goal == "mean_latency" else 1
    # Half a picosecond of each duration may have been rounded away; a whole one covers it.
    allowed = int(latency_s * PS * (1 + 1e-12)) * total + total * (duration.shape[0] * len(sizes) + len(parts))
    return PeakProblem(
        earliest=earliest,
        duration=duration,
        kv=np.floor(kv / unit * (1 + 1e-12)).astype(np.int64),
        room=int(_room_bytes(instance, parts, int(waves.size.max()), max(sizes)) / unit * (1 + 1e-12)),
        weight=weight,
        budget_ps=allowed - int(sum(one * int(end) for one, end in zip(weight, ends, strict=True))),
        step_ps=_step_ps(duration) if step_s is None else max(1, round(step_s * PS)),
        group=group,
    )


def _step_ps(duration: Ints) -> int:
    longest: int = duration.sum(axis=2).max()
    return max(1, -(-int(longest) // STEPS_OF_A_WAVE))


def _earliest(duration: Ints) -> Ints:
    waves, stages, chunks = duration.shape
    earliest = np.zeros_like(duration)
    free = np.zeros(stages, dtype=np.int64)
    for w in range(waves):
        for i in range(chunks):
            ready = 0
            for s in range(stages):
                earliest[w, s, i] = max(ready, free[s])
                ready = free[s] = earliest[w, s, i] + duration[w, s, i]
    return earliest


def _room_bytes(instance: Instance, parts: list[tuple[int, int]], size: int, largest: int) -> float:
    """All memory that KV can ever have: of the largest dies, beside weights and workspaces, and of hosts."""
    hardware, cost, layers = instance.hardware, instance.stage_cost, instance.model.layer_count
    room = sum(hardware.largest_memories[: len(parts)])
    for start, stop in parts:
        room -= cost.weight_bytes(start, stop, embedding=start == 0, head=stop == layers)
        room -= cost.workspace_bytes(start, stop, size, largest)
    return room + (0.0 if hardware.host is None else len(parts) * hardware.host.host_bytes)
