"""Which rule binds: how far stages, memory and links are used, and what a tenth more of each would bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from instances.numbers import byte_text, share_text, time_text
from reports.content import Cell, Fact
from reports.sensitivity import Sensitivity
from reports.source import Replayed, Traced

_FULL = 0.98
_NOTICED = 1e-3
"""A change of the objective that counts as one."""


@dataclass(frozen=True)
class Usage:
    """The busiest of everything; shares are of the makespan, or of a die's capacity."""

    stage: int
    stage_share: float
    stage_busy_s: float
    full_stage: str
    full_share: float
    full_bytes: float
    link: str | None
    link_share: float
    link_bytes: float
    stall_s: float


def usage_of(view: Traced) -> Usage:
    """Measure a replayed answer."""
    busiest = int(np.argmax(view.busy_s))
    program, run = view.program, view.run
    places = [(row, column) for row, column in program.network.dies.tolist()]
    capacity = np.array([view.instance.hardware.die_at(place).hbm_bytes for place in places])
    peak = run.peak_units / program.units_per_byte
    fullest = int(np.argmax(peak / capacity))
    links = view.tables["links"]
    hottest = int(np.argmax(links["busy_s"])) if len(links["busy_s"]) else None
    return Usage(
        stage=busiest,
        stage_share=float(view.busy_s[busiest]) / view.makespan_s,
        stage_busy_s=float(view.busy_s[busiest]),
        full_stage=view.stage_name(fullest),
        full_share=float(peak[fullest] / capacity[fullest]),
        full_bytes=float(peak[fullest]),
        link=None if hottest is None else str(links["link"][hottest]),
        link_share=0.0 if hottest is None else float(links["busy_s"][hottest]) / view.makespan_s,
        link_bytes=0.0 if hottest is None else float(links["carried_bytes"][hottest]),
        stall_s=float(run.stall_ps.sum()) / 1e12,
    )


def usage_facts(usage: Usage) -> list[Fact]:
    """The same as facts."""
    facts = [
        Fact(
            "slowest stage",
            Cell(f"stage {usage.stage} computes {share_text(usage.stage_share)} of the time", usage.stage_share),
            note=f"{time_text(usage.stage_busy_s)} of compute",
        ),
        Fact(
            "fullest memory",
            Cell(f"{share_text(usage.full_share)} of the die of stage {usage.full_stage}", usage.full_share),
            note=f"{byte_text(usage.full_bytes)} at its peak",
        ),
    ]
    if usage.link is not None:
        facts.append(
            Fact(
                "busiest link",
                Cell(f"{usage.link} is in use {share_text(usage.link_share)} of the time", usage.link_share),
                note=f"carries {byte_text(usage.link_bytes)}",
            )
        )
    facts.append(
        Fact("serving others' fetches", Cell(f"{time_text(usage.stall_s)} of stalls, all dies", usage.stall_s))
    )
    return facts


def memory_sentence(view: Traced, usage: Usage) -> str:
    """Whether memory binds, in a sentence and a space."""
    spills = bool(view.kept)
    if spills and usage.full_share >= _FULL:
        return "Memory binds: a die is full, and the plan keeps KV elsewhere. "
    if spills:
        return "Memory binds: the plan keeps KV elsewhere, so that no die is full. "
    if usage.full_share >= _FULL:
        return "Memory is full, though no KV is kept elsewhere. "
    return f"Memory does not bind: no die is more than {share_text(usage.full_share)} full. "


def verdict(view: Replayed, usage: Usage, found: Sequence[Sensitivity]) -> str:
    """What binds, in a sentence or two."""
    memory = memory_sentence(view, usage)
    known = [one for one in found if one.change is not None]
    best = min(known, key=lambda one: one.change or 0.0, default=None)
    if best is None or best.change is None:
        return memory + f"The slowest stage, {usage.stage}, sets the pace."
    if best.change > -_NOTICED:
        return memory + "None of the changes below helps this plan by itself: it waits for arrivals or fixed times."
    return memory + f"{best.what} helps this very plan most: {share_text(best.change, signed=True)}."
