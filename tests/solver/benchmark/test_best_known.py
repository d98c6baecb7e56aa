"""Best-known values change for the better only, and only for plans that replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formulations.scope import plain_scope
from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Plan
from instances.suites import Suite
from solver.benchmark.best_known import BestKnown, improve, load_best_known, save_best_known
from solver.benchmark.record import Record
from solver.evaluate import Evaluator
from tests.builders import small_instance, small_plan
from tests.solver.benchmark.making import record


@pytest.fixture
def instance() -> Instance:
    return small_instance()


@pytest.fixture
def found(instance: Instance) -> Record:
    """A true record of the small plan."""
    plan = small_plan(instance)
    return record(
        instance=instance.name,
        fingerprint=instance.fingerprint,
        value=Evaluator(instance).full(plan).value,
        bound=1e-6,
        bound_scope=plain_scope(instance).model_dump(mode="json"),
        plan=plan.model_dump(mode="json"),
    )


def command(record: Record) -> str:
    return f"do {record.method}"


def test_a_first_value_and_bound(instance: Instance, found: Record) -> None:
    entries: dict[str, BestKnown] = {}
    changes = improve(entries, [instance], [found], command)
    entry = entries["small"]
    assert (entry.value, entry.bound, entry.proved) == (found.value, 1e-6, False)
    assert entry.value_source is not None
    assert (entry.value_source.command, entry.value_source.date) == ("do gpipe", "2026-01-01")
    assert (len(changes.improved), changes.refused) == (2, [])
    # The same again changes nothing.
    assert improve(entries, [instance], [found], command).improved == []


def test_a_better_bound_alone(instance: Instance, found: Record) -> None:
    entries: dict[str, BestKnown] = {}
    improve(entries, [instance], [found], command)
    assert found.value is not None
    worse = found.model_copy(update={"value": 2 * found.value, "bound": found.value * (1 - 5e-5), "method": "exact"})
    improve(entries, [instance], [worse], command)
    entry = entries["small"]
    assert (entry.value, entry.bound) == (found.value, worse.bound)
    assert entry.bound_source is not None
    assert entry.bound_source.method == "exact"
    # A gap of 5e-5 is a proof.
    assert entry.proved


def test_values_that_do_not_replay_are_refused(instance: Instance, found: Record) -> None:
    assert found.value is not None
    assert found.plan is not None
    broken = found.plan.model_copy(update={"placement": ((0, 0),) * 4})
    for changes in (
        {"value": 0.9 * found.value},
        {"plan": None},
        {"plan": broken},
        {"plan": found.plan.model_copy(update={"schedule": "vpp"})},
        {"plan": found.plan.model_copy(update={"instance": "another"})},
    ):
        entries: dict[str, BestKnown] = {}
        made = improve(entries, [instance], [found.model_copy(update={**changes, "bound": None})], command)
        assert (entries, made.improved, len(made.refused)) == ({}, [], 1)


def test_records_of_something_else_are_passed_over(instance: Instance, found: Record) -> None:
    others = [found.model_copy(update={"fingerprint": "another"}), found.model_copy(update={"chunks": 4})]
    entries: dict[str, BestKnown] = {}
    assert improve(entries, [instance], others, command).improved == []
    narrow = found.bound_scope.model_copy(update={"batch": (1, 1)}) if found.bound_scope else None
    improve(entries, [instance], [found.model_copy(update={"bound_scope": narrow})], command)
    assert entries["small"].bound is None


def test_the_files(tmp_path: Path, instance: Instance, found: Record) -> None:
    suite = Suite("s", tmp_path)
    assert load_best_known(suite, [instance]) == {}
    entries: dict[str, BestKnown] = {}
    changes = improve(entries, [instance], [found], command)
    save_best_known(suite, entries, changes.plans)
    assert load_best_known(suite, [instance]) == entries
    assert Plan.load(suite.plan_file("small")) == found.plan
    # Of an instance that has changed since, nothing is known.
    assert load_best_known(suite, [small_instance(workload__requests=5)]) == {}
    suite.best_known.write_text(json.dumps({"instances": {"small": {"value": 1}}}), encoding="utf-8")
    with pytest.raises(InputError, match="best_known"):
        load_best_known(suite, [instance])
