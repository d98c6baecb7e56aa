"""``waferplan check``: every rule by name, the deadlock from the replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instances.rules import STATIC_RULES
from tests.builders import small_document, small_instance, small_plan_document
from tests.solver.cli.running import waferplan


def files(folder: Path, instance: dict[str, Any], plan: dict[str, Any]) -> tuple[Path, Path]:
    problem, answer = folder / "instance.json", folder / "plan.json"
    problem.write_text(json.dumps(small_document(**instance)), encoding="utf-8")
    answer.write_text(json.dumps(small_plan_document(small_instance(**instance), **plan)), encoding="utf-8")
    return problem, answer


def test_rules_that_hold(instance_file: Path, plan_file: Path) -> None:
    outcome = waferplan("check", instance_file, plan_file, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert [row["rule"] for row in outcome.json] == [*STATIC_RULES, "deadlock"]
    for row in outcome.json:
        assert set(row) == {"rule", "ok", "amount", "unit", "where"}
        assert (row["ok"], row["amount"]) == (True, 0)
    people = waferplan("check", instance_file, plan_file)
    assert people.code == 0
    assert people.out.splitlines()[-1] == "every rule holds"


DEAD = {"hardware__disabled_dies": [[1, 1]], "pipeline__stages": 3}
RING = {"layers": [1, 1, 2], "placement": [[0, 0], [0, 1], [1, 1]]}
# Weights: embedding 128 kB, layer 73.7 kB; workspace 1024 * (2 * 64 + 128) * 2 = 524 kB: 726 kB at rest on stage 0,
# which 700 kB do not hold; 800 kB do, but not the 131 kB of KV of its first chunk.
BROKEN: list[tuple[dict[str, Any], dict[str, Any], str, float, str]] = [
    (DEAD, RING, "placement_live", 1, "dies"),
    ({}, {"placement": [[0, 0], [0, 0], [1, 1], [1, 0]]}, "placement_injective", 1, "stages"),
    ({}, {"layers": [1, 1, 1, 2]}, "layers_cover", 1, "layers"),
    ({}, {"batch": 3}, "batch_range", 1, "requests"),
    ({}, {"chunks": {"2048": [1024]}}, "chunks_cover", 1024, "tokens"),
    ({}, {"chunks": {"2048": [1000, 1048]}}, "chunk_quantum", 24, "tokens"),
    ({"hardware__die__hbm_bytes": "700 kB"}, {}, "capacity_at_rest", 26272, "bytes"),
    ({"hardware__die__hbm_bytes": "800 kB"}, {}, "deadlock", 57344, "bytes"),
]


@pytest.mark.parametrize(("instance", "plan", "rule", "amount", "unit"), BROKEN, ids=[case[2] for case in BROKEN])
def test_broken_rule(
    tmp_path: Path, instance: dict[str, Any], plan: dict[str, Any], rule: str, amount: float, unit: str
) -> None:
    paths = files(tmp_path, instance, plan)
    outcome = waferplan("check", *paths, "--json")
    assert (outcome.code, outcome.err) == (1, "")
    first = next(row for row in outcome.json if row["rule"] == rule)
    assert (first["ok"], first["amount"], first["unit"]) == (False, amount, unit)
    assert first["where"]
    people = waferplan("check", *paths)
    assert people.code == 1
    assert any(line.split()[:2] == [rule, "broken"] for line in people.out.splitlines())


def test_a_plan_with_broken_rules_is_not_replayed(tmp_path: Path) -> None:
    outcome = waferplan("check", *files(tmp_path, {}, {"batch": 3}), "--json")
    assert "deadlock" not in [row["rule"] for row in outcome.json]


def test_a_rule_broken_in_many_places_is_cut_short_for_people_only(tmp_path: Path) -> None:
    # 2048 chunks of one token: all but the last break the quantum of 256.
    paths = files(tmp_path, {}, {"chunks": {"2048": [1] * 2048}})
    rows = [row for row in waferplan("check", *paths, "--json").json if row["rule"] == "chunk_quantum"]
    assert len(rows) == 2047
    people = waferplan("check", *paths).out
    assert people.count("chunk_quantum") == 5
    assert "and in 2042 more places" in people
