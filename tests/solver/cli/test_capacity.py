"""``waferplan capacity`` from outside."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.builders import small_document
from tests.solver.cli.running import waferplan


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    document = small_document(
        hardware__die__hbm_bytes="1 MB",
        pipeline__max_batch=1,
        pipeline__max_chunks=4,
        costs={"kind": "fitted", "chunk_s": 0, "prefix_s": 0, "token_s": 1e-4, "pair_s": 0},
    )
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_json_has_the_rows_of_the_interface_and_plans_that_check(file: Path, tmp_path: Path) -> None:
    asked = ("--methods", "none,pool", "--chunks", "4", "--latency-budget", "5%")
    answer = waferplan("capacity", file, *asked, "--json", "--out", tmp_path / "c.json")
    assert (answer.code, answer.err) == (0, "")
    found = json.loads(answer.out)
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8")) == found
    assert [row["method"] for row in found["methods"]] == ["none", "pool"]
    for row in found["methods"]:
        # The next longer request was tried, and failed.
        assert row["next_size"] == row["max_tokens"] + 256
        assert {"max_tokens", "mean_latency_s", "bound_tokens", "plan"} <= set(row)
        longer = json.loads(file.read_text(encoding="utf-8"))
        longer["workload"]["tokens"] = row["max_tokens"]
        (tmp_path / "longer.json").write_text(json.dumps(longer), encoding="utf-8")
        (tmp_path / "plan.json").write_text(json.dumps(row["plan"]), encoding="utf-8")
        assert waferplan("check", tmp_path / "longer.json", tmp_path / "plan.json").code == 0
        replay = waferplan("simulate", tmp_path / "longer.json", tmp_path / "plan.json", "--json")
        assert replay.code == 0


def test_the_table_and_its_exit_codes(file: Path) -> None:
    answer = waferplan("capacity", file, "--methods", "none", "--chunks", "4")
    assert answer.code == 0
    assert "longest request, 4 chunks, any latency\n" in answer.out
    assert "fails at" in answer.out
    assert "status  every row is complete" in answer.out
    # Without a budget the length at any latency is the length.
    assert answer.out.count("any latency") == 1
    tiny = json.loads(file.read_text(encoding="utf-8"))
    tiny["hardware"]["die"]["hbm_bytes"] = 1000
    file.write_text(json.dumps(tiny), encoding="utf-8")
    assert waferplan("capacity", file, "--methods", "none").code == 1


def test_the_bound_stands_below_a_table_that_fits_a_screen(file: Path) -> None:
    asked = ("--chunks", "4", "--latency-budget", "5%", "--equal-chunks")
    answer = waferplan("capacity", file, "--methods", "none,head-to-tail", *asked)
    assert answer.code == 0
    # Nothing is cut off: every unit is whole, and no line is longer than a screen.
    assert answer.out.count(" ms") + answer.out.count(" s ") >= 2
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "any latency" in answer.out
    assert "bound" in answer.out
    found = re.search(r"chunked, equal chunks, no host: at most (\d+) tokens, gap (\S+ %|0)", answer.out)
    assert found is not None, answer.out
    assert int(found[1]) >= 1024


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--methods", "magic"), "methods: 'magic' is not allowed"),
        (("--chunks", "99"), "chunks: 99 is not allowed"),
        (("--latency-budget", "fast"), "--latency-budget: 'fast' is not allowed"),
        (("--methods", "host"), "hardware.host"),
    ],
)
def test_bad_options(file: Path, options: tuple[str, str], says: str) -> None:
    answer = waferplan("capacity", file, *options)
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1
