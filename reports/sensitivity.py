"""What would help most: the same plan replayed on an instance with one thing better by a tenth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from instances.costs import RooflineSpec
from instances.errors import InputError
from instances.hardware import Hardware
from instances.instance import Instance
from instances.plan import Plan
from solver.evaluate import Evaluator

BETTER = 1.1
MOST_REPLAY_S = 2.0
"""Estimated time of a replay beyond which none is done: the report should be ready soon."""


@dataclass(frozen=True)
class Sensitivity:
    """Objective of the same plan after one change; None where ``note`` says why it is not known.

    ``change`` is relative to the value without the change; negative is better.
    """

    what: str
    value: float | None
    change: float | None
    note: str = ""


def sensitivities(instance: Instance, plan: Plan, value: float) -> list[Sensitivity]:
    """Replay the plan on changed instances.

    The decisions stay as they are, so that another solve may gain more, from memory above all.
    """
    slow = Evaluator(instance).replay_s(plan) > MOST_REPLAY_S
    found = []
    for what, change, needs_roofline in _changes(instance):
        if needs_roofline and not isinstance(instance.costs, RooflineSpec):
            found.append(Sensitivity(what, None, None, "the costs of this instance are measured, not computed"))
        elif slow:
            found.append(Sensitivity(what, None, None, "not replayed: the plan is too large to do so quickly"))
        else:
            found.append(_replayed(instance, plan, value, what, change))
    return found


_Change = Callable[[Hardware], dict[str, Any]]


def _changes(instance: Instance) -> list[tuple[str, _Change, bool]]:
    changes: list[tuple[str, _Change, bool]] = [
        ("+10 % FLOP/s of every die", lambda hardware: _dies(hardware, "peak_flops"), True),
        ("+10 % memory bandwidth", lambda hardware: _dies(hardware, "hbm_bytes_per_s"), True),
        ("+10 % memory of every die", lambda hardware: _dies(hardware, "hbm_bytes"), False),
        ("+10 % link speed", _links, False),
    ]
    if instance.hardware.host is not None:
        changes.append(("+10 % host link speed", _host, False))
    return changes


def _replayed(instance: Instance, plan: Plan, value: float, what: str, change: _Change) -> Sensitivity:
    hardware = instance.hardware.model_copy(update=change(instance.hardware))
    changed = instance.model_copy(update={"hardware": hardware})
    moved = plan.model_copy(update={"instance": changed.fingerprint})
    try:
        found = Evaluator(changed).value(moved)
    except InputError as error:
        return Sensitivity(what, None, None, str(error))
    if found is None:
        return Sensitivity(what, None, None, "the plan does not run then")
    return Sensitivity(what, found, found / value - 1 if value else None)


def _dies(hardware: Hardware, field: str) -> dict[str, Any]:
    die = hardware.die.model_copy(update={field: getattr(hardware.die, field) * BETTER})
    overrides = tuple(
        override
        if getattr(override, field) is None
        else override.model_copy(update={field: getattr(override, field) * BETTER})
        for override in hardware.dies
    )
    return {"die": die, "dies": overrides}


def _links(hardware: Hardware) -> dict[str, Any]:
    seam = hardware.wafer_link_bytes_per_s
    return {
        "link_bytes_per_s": hardware.link_bytes_per_s * BETTER,
        "wafer_link_bytes_per_s": None if seam is None else seam * BETTER,
    }


def _host(hardware: Hardware) -> dict[str, Any]:
    assert hardware.host is not None
    faster = hardware.host.host_bytes_per_s * BETTER
    return {"host": hardware.host.model_copy(update={"host_bytes_per_s": faster})}
