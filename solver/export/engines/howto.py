"""The how-to beside exported files: what they are, what they cost against the plan, what the engine cannot do."""

from __future__ import annotations

from instances.instance import Instance
from instances.numbers import time_text
from instances.plan import Plan
from solver.export.engines.engine import Target
from solver.export.engines.knobs import chunk_summary
from solver.export.engines.projection import Projection


def howto(instance: Instance, plan: Plan, found: Projection, target: Target) -> str:
    """Markdown text."""
    notes = [*_differences(instance, plan, found), *target.notes]
    notes += [*(target.dynamic_notes if found.knobs.dynamic else ()), *(target.v_notes if plan.v_shaped else ())]
    lines = [
        f"# {' '.join(instance.name.split())} on {target.name}",
        "",
        target.start,
        "",
        "| | |",
        "| --- | --- |",
        f"| layers of each {'virtual stage' if plan.v_shaped else 'rank'} | {', '.join(map(str, plan.layers))} |",
        f"| the engine's own split | {_own(plan, found)} |",
        f"| chunks | {_knobs(found)} |",
        f"| that makes | {chunk_summary(found.sizes)} |",
        f"| chunks in flight | at most {found.window} |",
        f"| the plan, replayed | {time_text(found.planned_s)} ({instance.objective.replace('_', ' ')}) |",
        f"| the plan within these chunks in flight | {_beside(found.window_s, found.planned_s)} |",
        f"| with these settings, replayed | {_beside(found.value_s, found.planned_s)} |",
        "",
        "What the engine does not do as planned:",
        "",
        *(f"- {note}" for note in notes),
    ]
    return "\n".join(lines) + "\n"


def _own(plan: Plan, found: Projection) -> str:
    if found.own_layers == plan.layers:
        return "the same"
    split = ", ".join(map(str, found.own_layers))
    return f"{split}: {_beside(found.own_value_s, found.value_s)} beside these settings"


def _beside(value_s: float | None, other_s: float) -> str:
    """A time and by how much it is longer than another."""
    return "does not run" if value_s is None else f"{time_text(value_s)} ({value_s / other_s - 1:+.2%})"


def _knobs(found: Projection) -> str:
    knobs = found.knobs
    if knobs.batch > 1:
        return f"steps of {knobs.base} tokens: {knobs.batch} whole requests"
    if knobs.smoothing is None:
        return f"a fixed size of {knobs.base} tokens"
    least = "" if knobs.least is None else f", at least {knobs.least} tokens"
    return f"dynamic from {knobs.base} tokens, smoothing {knobs.smoothing:g}{least}"


def _differences(instance: Instance, plan: Plan, found: Projection) -> list[str]:
    notes = ["It takes no list of chunks: of the settings that it takes, those that lose least are given."]
    given = instance.pipeline.max_in_flight
    if given is not None and given < found.window:
        notes.append(f"It holds {found.window} chunks in flight, also where the plan holds at most {given}.")
    shared = [tokens for tokens in found.sizes if found.knobs.batch == 1 and 2 * tokens <= found.knobs.base]
    if shared:
        which = ", ".join(map(str, shared))
        notes.append(f"Requests of {which} tokens share steps where several wait; replayed one by one.")
    if plan.batch != found.plan.batch:
        notes.append(
            f"The plan computes {plan.batch} requests at a time; the engine fills a step with one after another."
        )
    if plan.spill:
        notes.append("The plan keeps KV at other dies or the host; the engine keeps that of a running request at home.")
    if instance.hardware.host is not None:
        notes.append("Its host cache keeps KV for reuse and after preemption; it does not lengthen a running request.")
    short = [(tokens, cuts) for tokens, cuts in found.sizes.items() if len(cuts) > 1 and 8 * cuts[-1] < cuts[-2]]
    for tokens, cuts in short:
        notes.append(f"Requests of {tokens} tokens end in a tail of {cuts[-1]} tokens, which costs a step of its own.")
    notes.append("What a step has left for the next request is not modelled.")
    return notes
