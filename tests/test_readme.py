"""The README says what the code does: its rules, its commands, its Python example."""

import re
from pathlib import Path

import pytest

from instances.rules import REPLAY_RULES, STATIC_RULES
from solver.cli.app import COMMANDS
from solver.methods import METHODS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_rule_is_listed_with_its_words_and_unit() -> None:
    for name, rule in STATIC_RULES.items():
        assert f"| `{name}` | {rule.says} | {rule.unit} |" in README
    for name, says in REPLAY_RULES.items():
        assert f"| `{name}` | {says} |" in README


def test_every_command_and_method_is_named_and_no_other() -> None:
    named = set(re.findall(r"[`/]waferplan (\w+)", README))
    assert named == set(COMMANDS)
    for method in METHODS:
        assert f"`{method}`" in README


def test_paths_exist() -> None:
    for path in re.findall(r"(?:instances|solver|formulations|tests)/[\w/.-]+\w", README):
        assert (ROOT / path).exists(), path


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    code = example.group(1).replace('"instances/', f'"{ROOT}/instances/').replace("time_s=60", "time_s=5")
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), space)
    assert (tmp_path / "result.json").exists()
    assert space["replay"].mean_latency_s == space["result"].metrics.mean_latency_s  # type: ignore[attr-defined]  # of exec
