"""A rule has one name: in the list of rules, the checker, the replay, the formulations and their tests."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import formulations
from formulations.explain.problem import RULES as CLASHING
from formulations.own_rules import OWN
from instances import check
from instances.rules import REPLAY_RULES, STATIC_RULES
from tests.corruptions import CORRUPTIONS
from tests.solver.simulation import test_replay_rules

ROOT = Path(__file__).parents[1]
RULES = {*STATIC_RULES, *REPLAY_RULES}


def model_modules() -> Iterator[ModuleType]:
    """Modules that state a model for an engine."""
    for found in pkgutil.walk_packages(formulations.__path__, "formulations."):
        if re.match(r"(cpsat|milp)", found.name.rsplit(".", 1)[-1]):
            yield importlib.import_module(found.name)


def constraint_families(module: ModuleType) -> set[str]:
    """Public functions of a module that take its model alone, or first, and change it."""
    names = set()
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if function.__module__ == module.__name__ and not name.startswith("_"):
            signature = inspect.signature(function)
            first = next(iter(signature.parameters.values()), None)
            if first is not None and str(first.annotation).endswith("Model") and signature.return_annotation == "None":
                names.add(name)
    return names


def test_a_name_is_static_or_of_the_replay() -> None:
    assert not STATIC_RULES.keys() & REPLAY_RULES.keys()
    assert not OWN.keys() & RULES


def test_the_checker_has_a_function_for_each_static_rule_and_for_no_other() -> None:
    checks = check._CHECKS
    assert list(checks) == list(STATIC_RULES)
    for name, function in checks.items():
        assert function.__name__ == f"_{name}"


def test_each_static_rule_is_broken_in_a_test() -> None:
    assert {corruption.rule for corruption in CORRUPTIONS} == STATIC_RULES.keys()


@pytest.mark.parametrize("module", list(model_modules()), ids=lambda module: module.__name__)
def test_models_state_rules_by_name(module: ModuleType) -> None:
    unknown = constraint_families(module) - RULES - OWN.keys()
    assert not unknown, f"name {unknown} after a rule, or list them in formulations/own_rules.py"


def test_own_parts_are_there() -> None:
    stated = set().union(*map(constraint_families, model_modules()))
    assert OWN.keys() <= stated
    # The rules that clash are stated as such, those on chunks by the needs that they bring about.
    assert set(CLASHING) - {"chunk_quantum"} <= stated


def test_twins_have_the_same_parts() -> None:
    modules = {module.__name__: constraint_families(module) for module in model_modules()}
    twins = [(name, name.replace(".cpsat", ".milp")) for name in modules if ".cpsat" in name]
    compared = [(modules[cpsat], modules[milp]) for cpsat, milp in twins if milp in modules]
    assert len(compared) >= 4
    for cpsat, milp in compared:
        assert cpsat == milp


def test_each_rule_of_the_replay_has_a_case_of_its_own() -> None:
    cases = [name.removeprefix("test_") for name in vars(test_replay_rules) if name.startswith("test_")]
    assert cases == list(REPLAY_RULES)


@pytest.mark.parametrize("rule", REPLAY_RULES)
def test_the_replay_says_where_it_carries_a_rule_out(rule: str) -> None:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "solver/simulation").glob("*.py"))
    assert any(f"``{rule}``" in text for text in texts)
