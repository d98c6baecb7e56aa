"""Best-known values of a suite: a file beside its instances, changed for the better only, by plans that replay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from formulations.interface import relative_gap
from formulations.scope import plain_scope
from instances.base import Document, SchemaVersion, read_json
from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Plan
from instances.suites import Suite
from solver.api import OPTIMAL_GAP
from solver.benchmark.placements import SCOPE, Answer, Placing
from solver.benchmark.record import Record
from solver.benchmark.task import label_of
from solver.evaluate import Evaluator
from solver.result import write_whole

SAME = 1e-9
"""Relative difference of two values that are the same."""


class Source(Document):
    """Where a number comes from: method, day, revision of the sources, and the command that gives it."""

    method: str
    seed: int | None = None
    date: str
    revision: str | None = None
    command: str


class BestKnown(Document):
    """Least value known for an instance and largest proved bound; both of plans in ``scope``.

    ``proved`` says that no plan in scope is better by more than one part in ten thousand.
    """

    fingerprint: str
    objective: str
    scope: str
    value: float | None = None
    value_source: Source | None = None
    bound: float | None = None
    bound_source: Source | None = None
    proved: bool = False


class BestKnownFile(Document):
    """Best-known values by the name of the instance."""

    schema_version: SchemaVersion = 1
    instances: dict[str, BestKnown] = Field(default_factory=dict)


@dataclass
class Changes:
    """What an update changed, in words, what it refused, and the plans behind new values by instance name."""

    improved: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    plans: dict[str, Plan | Answer] = field(default_factory=dict)


def load_best_known(suite: Suite, instances: Iterable[Instance | Placing]) -> dict[str, BestKnown]:
    """Entries that were made for these instances, by name; of one that has changed since there is none.

    Raises
    ------
    InputError
        If the file is there and is not one.
    """
    path = suite.best_known
    if not path.exists():
        return {}
    entries = BestKnownFile.parse(read_json(path), file=str(path)).instances
    prints = {instance.name: instance.fingerprint for instance in instances}
    return {name: entry for name, entry in entries.items() if prints.get(name) == entry.fingerprint}


def save_best_known(suite: Suite, entries: Mapping[str, BestKnown], plans: Mapping[str, Plan | Answer]) -> None:
    """Write the plans behind new values, then the file, each whole or not at all."""
    content: dict[str, Any] = BestKnownFile(instances=dict(sorted(entries.items()))).model_dump(mode="json")
    try:
        for name, plan in plans.items():
            suite.plan_file(name).parent.mkdir(exist_ok=True)
            data = plan.model_dump(mode="json", exclude_none=True) if isinstance(plan, Plan) else {"placement": plan}
            write_whole(suite.plan_file(name), json.dumps(data, separators=(",", ":")) + "\n")
        write_whole(suite.best_known, json.dumps(content, indent=1) + "\n")
    except OSError as error:
        allowed = f"a file that can be written ({error.strerror})"
        raise InputError("best known", str(suite.best_known), allowed) from None


def improve(
    entries: dict[str, BestKnown],
    instances: Iterable[Instance | Placing],
    records: Iterable[Record],
    command: Callable[[Record], str],
) -> Changes:
    """Take over what is better in the records: values whose plan replays to them, and bounds of the same scope.

    Parameters
    ----------
    entries
        Best-known values by instance name; changed in place.
    command
        The command line that gives a record.
    """
    changes = Changes()
    by_print = {instance.fingerprint: instance for instance in instances}
    for record in records:
        instance = by_print.get(record.fingerprint)
        if instance is None or record.chunks is not None:
            continue
        scope = plain_scope(instance) if isinstance(instance, Instance) else None
        entry = entries.get(instance.name)
        if entry is None:
            entry = BestKnown(
                fingerprint=instance.fingerprint,
                objective=instance.objective,
                scope=SCOPE if scope is None else scope.describe(),
            )
        source = Source(
            method=label_of(record.method, record.knobs),
            seed=record.seed,
            date=record.time[:10],
            revision=record.revision,
            command=command(record),
        )
        news: dict[str, Any] = {}
        if _better_value(entry, record):
            problem = why_not_kept(instance, record)
            answer = record.plan or record.placement
            if problem is None and answer is not None:
                changes.plans[instance.name] = answer
                news |= {"value": record.value, "value_source": source}
                changes.improved.append(f"{instance.name}: value {entry.value} -> {record.value} by {source.method}")
            else:
                changes.refused.append(f"{instance.name}: {source.method}: {problem}")
        if record.bound is not None and record.bound_scope == scope and _better_bound(entry, record.bound):
            news |= {"bound": record.bound, "bound_source": source}
            changes.improved.append(f"{instance.name}: bound {entry.bound} -> {record.bound} by {source.method}")
        if news:
            changed = entry.model_copy(update=news)
            gap = relative_gap(changed.value, changed.bound)
            entries[instance.name] = changed.model_copy(
                update={"proved": entry.proved or (gap is not None and gap <= OPTIMAL_GAP)}
            )
    return changes


def why_not_kept(instance: Instance | Placing, record: Record) -> str | None:
    """Why the value of a record cannot be taken over: its plan is out of scope or does not replay to it."""
    if isinstance(instance, Placing):
        found = None if record.placement is None else instance.value(record.placement)
        right = found is not None and record.value is not None and abs(found - record.value) <= SAME * abs(found)
        return None if right else f"the placement has the value {found!r}, not {record.value!r}"
    if record.plan is None:
        return "the record has a value and no plan"
    if not plain_scope(instance).contains(record.plan):
        return "the plan is outside the scope of best-known values"
    if record.plan.instance != instance.fingerprint:
        return "the plan was made for another instance"
    replayed = Evaluator(instance).full(record.plan)
    if replayed.value is None or record.value is None:
        return f"the plan does not run ({replayed.reason})"
    if abs(replayed.value - record.value) > SAME * abs(replayed.value):
        return f"the plan replays to {replayed.value!r}, not to {record.value!r}"
    return None


def _better_value(entry: BestKnown, record: Record) -> bool:
    if record.value is None:
        return False
    return entry.value is None or record.value < entry.value * (1 - SAME)


def _better_bound(entry: BestKnown, bound: float) -> bool:
    return entry.bound is None or bound > entry.bound * (1 + SAME)
