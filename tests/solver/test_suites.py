"""Shipped instances: the gaps that the README speaks of, as brackets."""

from pathlib import Path

import pytest

from instances.instance import Instance
from instances.suites import find_suite, suite_names
from solver.api import solve
from solver.limits import Limits

SUITES = Path(__file__).parents[2] / "instances" / "data" / "suites"


def test_every_suite_says_what_it_is_and_its_instances_load() -> None:
    index = (SUITES / "README.md").read_text(encoding="utf-8")
    for name in suite_names():
        suite = find_suite(name)
        count = len(suite.files) + len(suite.placements)
        assert f"| [{name}]({name}/README.md) | {count} |" in index
        assert suite.asks
        assert [instance.name for instance in suite.load()] == [path.stem for path in suite.files]
    assert {path.name for path in SUITES.iterdir() if path.is_dir()} == set(suite_names())


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((SUITES / "mocap-latency").glob("*-*.json")), ids=lambda path: path.stem)
def test_mocap_latency_is_solved_within_one_percent(path: Path) -> None:
    result = solve(Instance.load(path), limits=Limits(time_s=15))
    assert result.objective.gap is not None
    assert 0 <= result.objective.gap <= 0.01


@pytest.mark.slow
def test_where_memory_binds_exact_runs_and_the_others_do_not() -> None:
    instance = Instance.load(SUITES / "tight" / "llama3-405b-1536k.json")
    result = solve(instance, limits=Limits(time_s=40))
    assert result.plan is not None
    assert result.plan.spill
    assert result.objective.gap is not None
    assert 0 <= result.objective.gap <= 0.1
    assert result.objective.value is not None
    # 2142.84 s is the best pooled plan known before this search existed (48 equal chunks).
    assert result.objective.value < 2142.84
    for chunks in (16, 32, 64):
        assert solve(instance, "cpp", chunks=chunks, limits=Limits(time_s=5)).plan is None
