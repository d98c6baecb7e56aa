"""What a run found, in the published result format (spec ``interface.md``)."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from formulations.scope import BoundScope
from instances.base import Document, SchemaVersion, read_json
from instances.display import html_table, mesh_html, placement_html, stage_labels
from instances.errors import InputError
from instances.instance import Instance
from instances.numbers import UNKNOWN, byte_text, share_text, time_text
from instances.plan import Plan
from instances.rules import Finding

Status = Literal["optimal", "feasible", "infeasible", "unknown"]
StopReason = Literal["proved", "gap", "time_limit", "iterations", "interrupted", "error"]


_STOPS = {
    "proved": "proved",
    "gap": "gap reached",
    "time_limit": "time limit (of the whole or of a part)",
    "iterations": "the method came to its end",
    "interrupted": "interrupted",
    "error": "error",
}


class ObjectiveValue(Document):
    """Replayed value, proved bound and relative gap; None where unknown."""

    name: str
    value: float | None = None
    bound: float | None = None
    gap: float | None = None
    bound_scope: BoundScope | None = None
    trivial_bound: float | None = None


class Bubble(Document):
    """Three shares of idle time (spec section 3, outputs); ``steady`` is None without a steady phase."""

    makespan: float
    span: float
    steady: float | None


MeasuredWhereItApplies = Annotated[float | None, Field(exclude_if=lambda value: value is None)]
"""A number that some policies have; left out of the file where there is none."""


class Metrics(Document):
    """What the simulator measured; per-stage lists are in stage order.

    The optional ones are of systems that serve request by request (``solver.serving``): time to first token and time
    between tokens (mean, or the percentile named), tokens that came out, prompt tokens with cached ones counted, bytes
    of routed experts read, and the share of requests that reused at least 80 % of their prefix.
    """

    mean_latency_s: float
    p50_latency_s: float
    p95_latency_s: float
    p99_latency_s: float
    makespan_s: float
    throughput_rps: float
    tokens_per_s: float
    computed_tokens_per_s: float
    bubble: Bubble
    peak_memory_bytes: tuple[float, ...]
    link_bytes: float
    byte_hops: float
    stall_s: tuple[float, ...]
    ttft_s: MeasuredWhereItApplies = None
    p50_ttft_s: MeasuredWhereItApplies = None
    p99_ttft_s: MeasuredWhereItApplies = None
    tbt_s: MeasuredWhereItApplies = None
    p50_tbt_s: MeasuredWhereItApplies = None
    p99_tbt_s: MeasuredWhereItApplies = None
    max_tbt_s: MeasuredWhereItApplies = None
    output_tokens_per_s: MeasuredWhereItApplies = None
    prompt_tokens_per_s: MeasuredWhereItApplies = None
    expert_bytes: MeasuredWhereItApplies = None
    good_hit_rate: MeasuredWhereItApplies = None

    @property
    def serving_facts(self) -> Iterator[tuple[str, str]]:
        """Numbers of systems that serve token by token, in a few lines for people."""
        if self.ttft_s is not None:
            ranks = (self.ttft_s, self.p50_ttft_s, self.p99_ttft_s)
            yield "first token", f"mean, p50, p99 {', '.join(map(time_text, ranks))}"
        if self.tbt_s is not None:
            gaps = (self.tbt_s, self.p50_tbt_s, self.p99_tbt_s, self.max_tbt_s)
            yield "between tokens", f"mean, p50, p99, most {', '.join(map(time_text, gaps))}"
        yield "prompt tokens", f"{self.tokens_per_s:.5g}/s, {self.computed_tokens_per_s:.5g}/s of them computed"
        if self.expert_bytes is not None:
            yield "experts read", byte_text(self.expert_bytes, aligned=True)
        if self.good_hit_rate is not None:
            yield "good hits", share_text(self.good_hit_rate)

    def value_s(self, objective: str) -> float:
        """What an objective of latency or makespan comes to."""
        others = {"makespan": self.makespan_s, "p95_latency": self.p95_latency_s}
        return others.get(objective, self.mean_latency_s)


class Engine(Document):
    """The program that produced the bound or the plan, and what it said itself."""

    name: str
    version: str
    native_status: str


class TracePoint(Document):
    """Best value and bound known at a moment of the run."""

    t_s: float
    value: float | None
    bound: float | None


class Compared(Document):
    """Another method on the same instance: its replayed value, or why it cannot run."""

    method: str
    value: float | None
    chunks: int | None = None
    batch: int | None = None
    note: str = ""


class Result(Document):
    """Outcome of ``solve``; stands alone, the instance is inside.

    ``status`` says what is known, ``stop_reason`` why the search ended. ``program`` is the answer of a policy that no
    plan can express, with the keys of a program file; left out elsewhere. ``asked`` has ``chunks`` and ``knobs`` where
    they were given, so that a run can be repeated.
    """

    schema_version: SchemaVersion = 1
    instance: dict[str, Any]
    fingerprint: str
    method: str
    status: Status
    stop_reason: StopReason
    objective: ObjectiveValue
    plan: Plan | None = None
    program: Annotated[dict[str, Any] | None, Field(exclude_if=lambda program: program is None)] = None
    metrics: Metrics | None = None
    violations: tuple[Finding, ...] = ()
    reason: str | None = None
    runtime_s: float
    seed: int
    asked: Annotated[dict[str, Any], Field(exclude_if=lambda asked: not asked)] = Field(default_factory=dict)
    engine: Engine
    trace: tuple[TracePoint, ...] = ()
    compared: tuple[Compared, ...] = ()
    details: dict[str, Any] = Field(default_factory=dict)

    @property
    def facts(self) -> Iterator[tuple[str, str]]:
        """Value against bound and how the run ended, in a few lines for people."""
        objective, asked = self.objective, self.instance.get("pipeline", {})
        name, reason = objective.name.replace("_", " "), self.reason or ""
        known = objective.value is not None
        yield "value", f"{time_text(objective.value)} ({name}, replayed)" if known else f"{UNKNOWN} {reason}".rstrip()
        meaning = "" if objective.bound is None else " (no plan in scope is better)"
        yield "bound", time_text(objective.bound) + meaning
        yield "trivial bound", time_text(objective.trivial_bound)
        yield "gap", share_text(objective.gap)
        if self.metrics is not None and self.program is not None:
            yield from self.metrics.serving_facts
        if objective.bound_scope is not None:
            yield "scope", objective.bound_scope.describe()
        if known and reason:
            yield "error", reason
        free_s = self.details.get("without_window_s")
        if free_s is not None and objective.value is not None:
            most, share = asked.get("max_in_flight"), share_text(free_s / objective.value - 1, signed=True)
            says = f"at most {most} chunks in flight starve the pipeline: without that limit the plan takes"
            yield "warning", f"{says} {time_text(free_s)} ({share})"
        yield "status", f"{self.status}; stopped: {_STOPS[self.stop_reason]}, after {self.runtime_s:.1f} s"

    def _repr_html_(self) -> str:
        """The result in a notebook: value against bound, methods side by side, the plan on the mesh."""
        parts = [f"<p><b>{escape(self.method)}</b></p>", html_table((), self.facts)]
        if self.compared:
            rows = [(row.method, time_text(row.value), row.note) for row in self.compared]
            parts.append(html_table(("method", "value", "remarks"), rows))
        if self.plan is not None:
            parts += [html_table((), self.plan.facts), self._mesh_html(self.plan)]
        elif self.details:
            said = [(name, str(value)) for name, value in self.details.items() if not isinstance(value, dict)]
            parts.append(html_table((), said))
        return "".join(parts)

    def _mesh_html(self, plan: Plan) -> str:
        try:
            hardware = Instance.read(self.instance).hardware
        except InputError:  # a result that somebody edited: what the plan alone tells is shown
            return placement_html(plan.placement)
        return mesh_html(hardware, stage_labels(plan.placement))

    def to_json(self) -> str:
        """JSON text; unknown numbers are null."""
        return json.dumps(self.model_dump(mode="json"), indent=1)

    def save(self, path: str | Path) -> None:
        """Write the result file whole or not at all."""
        write_whole(Path(path), self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a result file; InputError if it is not one."""
        return cls.parse(read_json(path), file=str(path))


def write_whole(path: Path, text: str) -> None:
    """Write a file so that no reader and no interruption ever sees a part of it.

    Links are followed, so that a link stays one. A file that is there keeps its mode, a new one gets what the umask
    leaves. Devices and pipes cannot be replaced: they are written to.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        target.write_text(text, encoding="utf-8")
        return
    temporary = target.with_name(f".waferplan-{secrets.token_hex(8)}")
    try:
        with temporary.open("x", encoding="utf-8") as stream:
            stream.write(text)
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
