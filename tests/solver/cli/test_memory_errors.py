"""What is said where memory does not do: at rest, on dead dies, at the host, at creditors without room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instances.instance import Instance
from tests.builders import small_document, small_plan_document
from tests.solver.cli.running import waferplan

SPILL = {"stage": 0, "chunk": 0, "tokens": 1024}


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(plan: dict[str, Any] | None = None, **changes: Any) -> tuple[Path, Path]:
        document = small_document(**changes)
        (tmp_path / "i.json").write_text(json.dumps(document), encoding="utf-8")
        row = small_plan_document(Instance.read(document), **(plan or {}))
        (tmp_path / "p.json").write_text(json.dumps(row), encoding="utf-8")
        return tmp_path / "i.json", tmp_path / "p.json"

    return write


def broken(instance: Path, plan: Path) -> list[dict[str, Any]]:
    """Rules that the plan breaks; check and simulate both say 1."""
    answer = waferplan("check", instance, plan, "--json")
    assert (answer.code, answer.err) == (1, "")
    assert waferplan("simulate", instance, plan, "--json").code == 1
    return [rule for rule in json.loads(answer.out) if not rule["ok"]]


@pytest.mark.parametrize("method", ["none", "mocap", "head-to-tail", "rematch", "pool"])
def test_weights_that_do_not_fit(written: Any, method: str) -> None:
    # The first stage has 1000 x 64 embeddings and a layer of some 37 thousand parameters, of 2 bytes each.
    instance, plan = written(hardware__die__hbm_bytes="100 kB")
    assert {rule["rule"] for rule in broken(instance, plan)} == {"capacity_at_rest"}
    table = waferplan("capacity", instance, "--methods", method, "--chunks", "4", "--json")
    assert (table.code, table.err) == (1, "")
    (row,) = json.loads(table.out)["methods"]
    assert row["max_tokens"] is None
    assert row["note"].startswith("capacity_at_rest: die [0, 0]: weights")


def test_solve_says_so_too(written: Any) -> None:
    instance, _ = written(hardware__die__hbm_bytes="100 kB")
    for method in ("pool", "rematch", "mocap"):
        answer = waferplan("solve", instance, "--method", method, "--json")
        assert (answer.code, answer.err) == (1, "")
        assert "capacity_at_rest" in json.loads(answer.out)["reason"]


def test_remarks_of_a_table_are_readable(written: Any) -> None:
    instance, _ = written(hardware__die__hbm_bytes="100 kB")
    answer = waferplan("capacity", instance, "--methods", "none,pool", "--chunks", "4")
    assert "pool    capacity_at_rest: die [0, 0]: weights" in answer.out


def test_spill_to_a_dead_die(written: Any) -> None:
    placement = [[0, 0], [0, 1], [1, 1], [1, 2]]
    changes: dict[str, Any] = {"hardware__columns": 3, "hardware__disabled_dies": [[1, 2]]}
    (rule,) = broken(*written({"placement": placement, "spill": [{**SPILL, "creditor": 3}]}, **changes))
    assert rule["rule"] == "placement_live"
    assert rule["where"] == "stage 3 on die [1, 2], which is disabled or outside the grid"


@pytest.mark.parametrize(("creditor", "says"), [(7, "creditor 7 of 4"), ("host", "the hardware has no host tier")])
def test_spill_to_what_does_not_exist(written: Any, creditor: int | str, says: str) -> None:
    (rule,) = broken(*written({"spill": [{**SPILL, "creditor": creditor}]}))
    assert rule["rule"] == "spill_creditor"
    assert says in rule["where"]


def test_a_full_host_is_a_deadlock_that_names_who_waits(written: Any) -> None:
    # 1024 tokens of 128 bytes are 131072; the host has 1000. Stages 0 (with the embedding) and 3 (with the head) have
    # room for one such chunk, not for two.
    host = {"host_bytes": 1000, "host_bytes_per_s": "64 GB/s"}
    plan = {"spill": [{**SPILL, "stage": stage, "creditor": "host"} for stage in (0, 3)]}
    instance, file = written(plan, hardware__host=host, hardware__die__hbm_bytes="900 kB")
    (rule,) = broken(instance, file)
    assert rule["rule"] == "deadlock"
    assert "stage 0 (wave 0, chunk 1) waits for 131072 bytes of memory" in rule["where"]
    assert "its spill of 131072 bytes finds no room in the 1000 bytes of its host" in rule["where"]
    # With room at the host the same plan runs.
    host["host_bytes"] = 1_000_000
    instance, file = written(plan, hardware__host=host, hardware__die__hbm_bytes="900 kB")
    assert waferplan("simulate", instance, file, "--json").code == 0


def test_a_creditor_without_room_is_a_deadlock(written: Any) -> None:
    # Stage 3 has its weights, workspace and own KV of two chunks, and room for no byte more.
    plan = {"spill": [{**SPILL, "creditor": 3}]}
    instance, file = written(plan, hardware__die__hbm_bytes="900 kB")
    (rule,) = broken(instance, file)
    assert rule["rule"] == "deadlock"
    assert "its spill of 131072 bytes finds no room at stage 3" in rule["where"]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("hardware__dies", [{"at": [1, 0], "hbm_bytes": 0}], "hardware.dies.0.hbm_bytes"),
        ("hardware__die__hbm_bytes", 0, "hardware.die.hbm_bytes"),
        ("hardware__host", {"host_bytes": 0, "host_bytes_per_s": 1}, "hardware.host.host_bytes"),
    ],
)
def test_no_memory_at_all_is_bad_input(tmp_path: Path, field: str, value: object, says: str) -> None:
    file = tmp_path / "i.json"
    file.write_text(json.dumps(small_document(**{field: value})), encoding="utf-8")
    for command in (("capacity", file), ("solve", file), ("explain", file)):
        answer = waferplan(*command)
        assert (answer.code, answer.out) == (2, "")
        assert f"{says}: 0 is not allowed; expected a number greater than 0" in answer.err
        assert answer.err.count("\n") == 1
