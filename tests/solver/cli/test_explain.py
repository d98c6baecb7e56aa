"""``waferplan explain``: exit codes, JSON and what people read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instances.check import check
from instances.instance import Instance
from instances.plan import Plan
from tests.builders import small_document
from tests.solver.cli.running import waferplan

CHUNKS = {"hardware__die__hbm_bytes": "700 kB", "pipeline__max_chunks": 1}


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "i.json"
    path.write_text(json.dumps(small_document(**changes)), encoding="utf-8")
    return path


def test_a_feasible_instance(tmp_path: Path) -> None:
    path = write(tmp_path)
    outcome = waferplan("explain", path, "--json", "--time-limit", "20")
    assert (outcome.code, outcome.err) == (0, "")
    assert (outcome.json["feasible"], outcome.json["proved"]) == (True, True)
    instance = Instance.load(path)
    assert all(finding.ok for finding in check(instance, Plan.parse(outcome.json["plan"])))
    people = waferplan("explain", path, "--time-limit", "20")
    assert people.code == 0
    assert "feasible: the plan given here keeps every rule and replays" in people.out
    assert "not the best" in people.out


def test_a_proved_clash(tmp_path: Path) -> None:
    outcome = waferplan("explain", write(tmp_path, **CHUNKS), "--json", "--time-limit", "60")
    assert (outcome.code, outcome.err) == (1, "")
    answer = outcome.json
    assert (answer["feasible"], answer["proved"], answer["plan"], answer["value"]) == (False, True, None, None)
    assert [row["rule"] for row in answer["clash"]] == ["chunk_count", "capacity_at_rest"]
    for row in answer["clash"]:
        assert set(row) == {"rule", "what", "amount", "unit", "where"}
    # One chunk of 2048 tokens needs 512 bytes of workspace a token, beside 202 kB of weights and 262 kB of KV.
    memory = next(change for change in answer["changes"] if change["field"] == "hardware.die.hbm_bytes")
    assert list(memory)[:3] == ["field", "from", "to"]
    need = 202112 + 2048 * 512 + 2048 * 128
    assert (memory["from"], memory["proved_minimal"], memory["step"]) == (700_000, True, 1000)
    assert memory["no_plan_at"] < need <= memory["to"]
    assert memory["to"] - memory["no_plan_at"] == memory["step"]


@pytest.mark.parametrize("columns", [80, 120])
def test_what_people_read(tmp_path: Path, columns: int) -> None:
    outcome = waferplan("explain", write(tmp_path, **CHUNKS), "--time-limit", "60", columns=columns)
    assert outcome.code == 1
    assert "\x1b" not in outcome.out
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= columns
    first = [line.split()[0] for line in lines if line]
    for word in ("infeasible,", "chunk_count", "capacity_at_rest", "hardware.die.hbm_bytes", "workload.tokens"):
        assert word in first


def test_no_plan_and_no_proof(tmp_path: Path) -> None:
    path = write(tmp_path, hardware__die__hbm_bytes="400 kB")
    outcome = waferplan("explain", path, "--json", "--time-limit", "10")
    assert (outcome.code, outcome.err) == (3, "")
    assert (outcome.json["feasible"], outcome.json["proved"]) == (False, False)
    assert [row["rule"] for row in outcome.json["clash"]] == ["deadlock"]


def test_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("solver.explanation.answer.find_plan", interrupt)
    outcome = waferplan("explain", write(tmp_path), "--json")
    assert outcome.code == 130
    assert outcome.json["stop_reason"] == "interrupted"


def test_bad_input(tmp_path: Path) -> None:
    for arguments, part in (
        (("explain", tmp_path / "no.json"), "existing file"),
        (("explain", write(tmp_path), "--time-limit", "0"), "--time-limit"),
        (("explain", write(tmp_path, objective="max_tokens")), "max_tokens"),
        (("explain",), "INSTANCE"),
    ):
        outcome = waferplan(*arguments)
        assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
        assert part in outcome.err
