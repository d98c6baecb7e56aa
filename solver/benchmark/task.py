"""Runs to do: the grid of instances, methods and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from instances.errors import InputError
from instances.instance import Instance
from solver.benchmark.environment import package_version
from solver.benchmark.placements import Placing
from solver.benchmark.record import Knob, RunKey, all_knobs
from solver.methods import METHODS, find_method

PLACE, CAPACITY = "place", "capacity"
"""Methods of their own: for placement problems, and for the longest request (knob ``way``)."""


@dataclass(frozen=True)
class Choice:
    """A method with all its knobs."""

    method: str
    knobs: Mapping[str, Knob] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name for tables: the method, with the knobs that are not at their defaults."""
        return label_of(self.method, self.knobs)


@dataclass(frozen=True)
class RunLimits:
    """RunLimits of one run; its process is killed some time after the first and dies of the second."""

    time_s: float = 60.0
    memory_bytes: float | None = None


@dataclass(frozen=True)
class Task:
    """One run to do. Stands alone, so that another machine can do it; its key is its record's."""

    suite: str
    name: str
    instance: Mapping[str, Any]
    fingerprint: str
    objective: str
    choice: Choice
    seed: int
    limits: RunLimits
    chunks: int | None = None
    best_value: float | None = None

    @property
    def key(self) -> RunKey:
        """What makes a run this run and no other."""
        return RunKey(
            self.suite,
            self.fingerprint,
            self.choice.method,
            all_knobs(self.choice.method, self.choice.knobs),
            self.chunks,
            self.seed,
            self.limits.time_s,
            self.limits.memory_bytes,
            package_version("waferplan") or "",
        )

    @property
    def title(self) -> str:
        """Suite, instance and method, for progress."""
        return f"{self.suite}/{self.name} {self.choice.label}"


def read_choice(text: str) -> Choice:
    """A method as text, with knobs behind colons: ``mocap`` or ``mocap:batch=best:iterations=1000``.

    ``place`` is the method for placement problems.

    Raises
    ------
    InputError
        For an unknown method or knob, or a value that the knob does not take.
    """
    name, *settings = text.split(":")
    if text == PLACE:
        return Choice(PLACE)
    given: dict[str, str] = {}
    for setting in settings:
        knob, equals, value = setting.partition("=")
        if not (knob and equals):
            raise InputError("method", text, "METHOD or METHOD:KNOB=VALUE")
        given[knob] = value
    method = find_method(name)
    return Choice(name, method.settings(given))


def label_of(method: str, knobs: Mapping[str, Knob], chunks: int | None = None) -> str:
    """A method's name with what is not at its default, as ``read_choice`` reads it."""
    known = METHODS[method].knobs if method in METHODS else {}
    changed = [f"{name}={value}" for name, value in knobs.items() if name not in known or known[name].default != value]
    return ":".join([method, *changed, *([] if chunks is None else [f"chunks={chunks}"])])


def grid(
    suite: str,
    instances: Iterable[Instance | Placing],
    choices: Sequence[Choice],
    seeds: Sequence[int],
    limits: RunLimits,
    *,
    chunks: int | None = None,
    best_values: Mapping[str, float | None] | None = None,
) -> list[Task]:
    """All runs of a suite: instance by instance, seed by seed, method by method."""
    known = best_values or {}
    return [
        Task(
            suite=suite,
            name=instance.name,
            instance=instance.canonical() if isinstance(instance, Instance) else instance.document,
            fingerprint=instance.fingerprint,
            objective=instance.objective,
            choice=choice,
            seed=seed,
            limits=limits,
            chunks=chunks,
            best_value=known.get(instance.name),
        )
        for instance in instances
        for seed in seeds
        for choice in choices
    ]
