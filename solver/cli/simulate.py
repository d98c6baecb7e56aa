"""``waferplan simulate``: replay a plan, or a program file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from instances.base import read_json
from instances.check import check
from instances.errors import MISSING, InputError
from instances.instance import Instance
from instances.numbers import share_text, time_text
from instances.plan import Plan
from instances.rules import Finding
from solver.cli.check import findings_table
from solver.cli.errors import DONE, INFEASIBLE, one_line
from solver.cli.files import in_file, output_file, read_instance, read_plan, write_file
from solver.cli.tables import amount, pairs, table
from solver.cli.terminal import show, show_json
from solver.evaluate import Evaluator
from solver.metrics import metrics_of
from solver.result import Metrics
from solver.simulation.engine import Run, run
from solver.simulation.program import Program
from solver.simulation.program_file import arrivals_ps, outcome, read_program
from solver.simulation.trace import trace_events

app = typer.Typer(add_completion=False)


@app.command(
    "simulate", epilog="Example: waferplan simulate instances/data/suites/mocap-latency/llama3-70b-128k.json r.json"
)
def simulate_command(
    instance: Annotated[Path | None, typer.Argument(metavar="INSTANCE", help="Instance file.")] = None,
    plan: Annotated[
        Path | None, typer.Argument(metavar="PLAN", help="Plan file, or a result file with a plan.")
    ] = None,
    program: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Replay this program instead of an instance and a plan.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="T.json", help="Write a trace for Perfetto (ui.perfetto.dev).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Replay a plan and measure it; exit code 1 if it breaks a rule or deadlocks."""
    target = None if trace is None else output_file("--trace", trace)
    if program is not None:
        if instance is not None:
            raise InputError("INSTANCE", str(instance), "either an instance and a plan, or --program FILE")
        return _program(program, target, as_json)
    if instance is None or plan is None:
        raise InputError("INSTANCE" if instance is None else "PLAN", MISSING, "INSTANCE PLAN, or --program FILE")
    problem = read_instance(instance)
    return _plan(problem, read_plan(plan, problem), target, as_json)


def _plan(instance: Instance, plan: Plan, trace: Path | None, as_json: bool) -> int:
    broken = [finding for finding in check(instance, plan) if not finding.ok]
    if broken:
        return _refused(broken, as_json)
    replayed = Evaluator(instance).replay(plan, traced=trace is not None)
    _write_trace(trace, replayed.program, replayed.run)
    metrics = metrics_of(instance, replayed)
    if metrics is None:
        return _answer(outcome(replayed.program, replayed.run), as_json)
    if as_json:
        show_json({"deadlock": False, **metrics.model_dump(mode="json")})
    else:
        show(*_metrics(metrics, plan))
    return DONE


def _write_trace(path: Path | None, program: Program, result: Run) -> None:
    if path is not None:
        write_file("--trace", path, json.dumps(trace_events(program, result), separators=(",", ":")) + "\n")


def _refused(broken: list[Finding], as_json: bool) -> int:
    """A plan that breaks static rules is not replayed."""
    if as_json:
        show_json({"violations": [finding.model_dump(mode="json") for finding in broken]})
    else:
        show(findings_table(broken), "", "not replayed: the plan breaks these rules")
    return INFEASIBLE


def _program(path: Path, trace: Path | None, as_json: bool) -> int:
    """A program has the keys of the worked examples; of a whole example its input part, of a result its program."""
    document = read_json(path)
    if isinstance(document, dict) and isinstance(document.get("input"), dict):
        document = document["input"]
    elif isinstance(document, dict) and isinstance(document.get("program"), dict):
        document = document["program"]
    with in_file(path):
        program = read_program(document, file=str(path))
    result = run(program, traced=trace is not None)
    _write_trace(trace, program, result)
    return _answer(outcome(program, result, arrivals_ps(document)), as_json)


def _answer(answer: dict[str, Any], as_json: bool) -> int:
    """Times of every task, or who waits for how many bytes."""
    if as_json:
        show_json(answer)
    elif answer["deadlock"]:
        show(*_deadlock(answer))
    else:
        show(*_program_times(answer))
    return INFEASIBLE if answer["deadlock"] else DONE


def _deadlock(answer: dict[str, Any]) -> list[Any]:
    rows = [
        (
            str(row["stage"]),
            str(row["wave"]),
            str(row["chunk"]),
            row["reason"],
            amount(row["bytes"]),
            amount(row["missing_bytes"]),
        )
        for row in answer["waiting"]
    ]
    columns = ("stage", "wave", "chunk", "waits for", "asks for", "missing")
    right = ("stage", "wave", "chunk", "asks for", "missing")
    return [table(columns, rows, numbers=right), "", f"deadlock: {one_line(answer['says'].split(':')[0])}"]


def _program_times(answer: dict[str, Any]) -> list[Any]:
    latencies = answer["latency_s"]
    facts = [
        ("makespan", time_text(answer["makespan_s"])),
        ("latency", f"{time_text(min(latencies))} to {time_text(max(latencies))} over {len(latencies)} waves"),
    ]
    rows = [
        (str(stage), amount(peak), time_text(stall))
        for stage, (peak, stall) in enumerate(zip(answer["peak_memory_bytes"], answer["stall_s"], strict=True))
    ]
    return [pairs(facts), "", table(("stage", "peak", "stall"), rows, numbers=("stage", "peak", "stall"))]


def _metrics(metrics: Metrics, plan: Plan) -> list[Any]:
    bubble = metrics.bubble
    ranks = (metrics.p50_latency_s, metrics.p95_latency_s, metrics.p99_latency_s)
    facts = [
        ("mean latency", time_text(metrics.mean_latency_s)),
        ("p50, p95, p99", ", ".join(map(time_text, ranks))),
        ("makespan", time_text(metrics.makespan_s)),
        ("throughput", f"{metrics.throughput_rps:.4g} requests/s, {metrics.tokens_per_s:.5g} tokens/s"),
        ("computed", f"{metrics.computed_tokens_per_s:.5g} tokens/s"),
        (
            "bubble",
            f"of makespan {share_text(bubble.makespan)}, span {share_text(bubble.span)}, "
            f"steady {share_text(bubble.steady)}",
        ),
        ("traffic", f"{amount(metrics.link_bytes)} over links, {amount(metrics.byte_hops)} times hops"),
    ]
    rows = [
        (str(stage), f"{die[0]},{die[1]}", str(layers), amount(peak), time_text(stall))
        for stage, (die, layers, peak, stall) in enumerate(
            zip(plan.placement, plan.layers, metrics.peak_memory_bytes, metrics.stall_s, strict=True)
        )
    ]
    columns = ("stage", "die", "layers", "peak", "stall")
    return [pairs(facts), "", table(columns, rows, numbers=columns)]
