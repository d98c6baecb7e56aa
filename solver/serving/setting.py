"""What a serving policy runs on: stages on dies, their times and memory; and the way from a scheduler to an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from instances.errors import InputError
from instances.hardware import Hardware
from instances.instance import Instance
from solver.policies.layout import pipeline_layout
from solver.search import Search
from solver.serving.clock import PipelineClock
from solver.serving.jobs import Job, Log, jobs_of
from solver.serving.loop import Scheduler, serve
from solver.serving.lowering import program_document
from solver.serving.served import Served, judge
from solver.serving.timing import IterationCost
from solver.simulation.form import network_of

MOST_TASKS = 1 << 21
"""Tasks of a program document beyond which it is not written: some hundred megabytes of text."""


@dataclass(frozen=True)
class Setting:
    """One instance on fixed stages, for iterations of at most ``largest`` tokens.

    Attributes
    ----------
    over
        Whether time is up.
    free_bytes
        Memory for KV on each stage's die, beside weights and workspace.
    """

    instance: Instance
    layers: tuple[int, ...]
    placement: tuple[tuple[int, int], ...]
    cost: IterationCost
    largest: int
    over: Callable[[], bool]
    static_bytes: list[int] = field(init=False)
    free_bytes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        static = self.cost.static_bytes(self.largest)
        hbm = [int(self.instance.hardware.die_at(die).hbm_bytes) for die in self.placement]
        object.__setattr__(self, "static_bytes", static)
        object.__setattr__(self, "free_bytes", [total - held for total, held in zip(hbm, static, strict=True)])

    @property
    def stages(self) -> int:
        """Number of stages N."""
        return len(self.placement)

    @property
    def in_flight(self) -> int:
        """Iterations inside at most: N as in every engine, or the instance's ``max_in_flight``."""
        return self.instance.pipeline.max_in_flight or self.stages

    def jobs(self, default_output: int) -> list[Job]:
        """Fresh requests."""
        return jobs_of(self.instance.workload.all_requests(), default_output)

    def prompts(self) -> list[Job]:
        """Fresh requests of which only the prompts are served: a worker for prefill alone, as in split serving."""
        jobs = self.jobs(1)
        for job in jobs:
            job.output = 1
        return jobs

    def run(self, scheduler: Scheduler, jobs: list[Job]) -> Log:
        """Serve all requests, in the times that the scheduler counts with."""
        clock = PipelineClock(network_of(self.instance, self.placement))
        return serve(scheduler, jobs, self.cost, clock, self.in_flight, self.over)

    def judged(self, log: Log, extra: Mapping[str, Any] | None = None) -> Served | str:
        """The log as a program, replayed; or why there is none."""
        if log.stuck is not None:
            return log.stuck
        tasks = self.stages * (2 * len(log.iterations) + len(log.jobs))
        if tasks > MOST_TASKS:
            return f"a program of {tasks} tasks; at most {MOST_TASKS} are written down"
        document = program_document(self.instance, self.placement, log, self.static_bytes)
        expert = sum(self.cost.expert_bytes(iteration.batch) for iteration in log.iterations)
        return judge(self.instance, document, log, expert, extra or {})


def slow_seams(hardware: Hardware) -> str | None:
    """Why no program document says what the hardware is: links of two speeds; None if one does."""
    if hardware.wafers == (1, 1) or hardware.seam_bytes_per_s == hardware.link_bytes_per_s:
        return None
    return "hardware.wafer_link_bytes_per_s: a program has one speed of links"


def refuse_slow_seams(hardware: Hardware) -> None:
    """InputError where links have two speeds: a program document has one."""
    if slow_seams(hardware) is not None:
        allowed = f"{hardware.link_bytes_per_s:g}, as all links: a program has one speed of links"
        raise InputError("hardware.wafer_link_bytes_per_s", hardware.seam_bytes_per_s, allowed)


def setting_of(search: Search, largest: int) -> Setting:
    """The stages that all policies start from.

    Raises
    ------
    InputError
        Where a program document cannot say what the hardware is: links of two speeds.
    """
    refuse_slow_seams(search.instance.hardware)
    layers, placement = pipeline_layout(search)
    cost, requests = IterationCost(search.instance, layers, placement), search.evaluator.requests
    # No iteration has more than all prompts and a decode of each request; its workspace is memory that KV could use.
    most = min(largest, sum(request.tokens + 1 for request in requests))
    return Setting(search.instance, layers, placement, cost, most, lambda: search.deadline.over)


def answer(search: Search, outcome: Served | str) -> None:
    """Hand the outcome over to the search."""
    if isinstance(outcome, str):
        search.unserved = outcome
    else:
        search.served = outcome
        search.details["prediction_error_s"] = outcome.error_s
