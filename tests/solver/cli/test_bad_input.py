"""Bad input ends with code 2 and one message that names file, field, value and what is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import small_document, small_instance, small_plan_document
from tests.solver.cli.running import Outcome, waferplan

TEXT = json.dumps(small_document())
LONG = "9" * 5000


def refused(outcome: Outcome, *parts: str) -> None:
    """One line on standard error with all parts, nothing on standard output."""
    assert (outcome.code, outcome.out) == (2, ""), outcome
    lines = outcome.err.splitlines()
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("waferplan")
    assert "Traceback" not in lines[0]
    for part in parts:
        assert part in lines[0]


# What is changed in the small instance, and what the message says: field, value, what is allowed.
FIELDS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("unknown key", {"hardware__die__memory": 1}, ("hardware.die.memory", "1", "hbm_bytes")),
    ("unknown key at the top", {"hardwear": {}}, ("hardwear", "{}", "hardware")),
    ("missing key", {"hardware__die__hbm_bytes": ...}, ("hardware.die.hbm_bytes", "required")),
    ("wrong unit", {"hardware__die__hbm_bytes": "64 MX"}, ("hardware.die.hbm_bytes", "64 MX", "GB")),
    ("unit of another quantity", {"hardware__die__hbm_bytes": "64 s"}, ("hardware.die.hbm_bytes", "64 s", "GB")),
    ("negative number", {"hardware__die__hbm_bytes": -1}, ("hardware.die.hbm_bytes", "-1", "greater than 0")),
    ("NaN as text", {"hardware__die__hbm_bytes": "NaN"}, ("hardware.die.hbm_bytes", "NaN", "number")),
    ("beyond doubles, as text", {"hardware__die__hbm_bytes": "1e400"}, ("hardware.die.hbm_bytes", "1e400", "finite")),
    ("Boolean for a quantity", {"hardware__die__hbm_bytes": True}, ("hardware.die.hbm_bytes", "rue", "number")),
    ("Boolean for a number", {"hardware__die__gemm_efficiency": True}, ("gemm_efficiency", "rue", "number")),
    ("text for a number", {"hardware__die__gemm_efficiency": "0.5"}, ("gemm_efficiency", "'0.5'", "number")),
    ("share above 1", {"hardware__die__gemm_efficiency": 1.5}, ("gemm_efficiency", "1.5", "1")),
    ("Boolean for a count", {"pipeline__stages": True}, ("pipeline.stages", "rue", "")),
    ("text for a count", {"pipeline__stages": "4"}, ("pipeline.stages", "'4'", "")),
    ("fraction for a count", {"pipeline__stages": 2.5}, ("pipeline.stages", "2.5", "")),
    ("text for a Boolean", {"pipeline__overlap": "yes"}, ("pipeline.overlap", "'yes'", "true or false")),
    ("number for a Boolean", {"pipeline__overlap": 1}, ("pipeline.overlap", "1", "true or false")),
    ("null for an object", {"workload": None}, ("workload", "an object")),
    ("list for an object", {"hardware__die": []}, ("hardware.die", "[]", "an object")),
    ("more stages than dies", {"pipeline__stages": 5}, ("pipeline.stages", "5", "at most 4")),
    ("no stages", {"pipeline__stages": 0}, ("pipeline.stages", "0", "1")),
    ("stages of 30 digits", {"pipeline__stages": 10**30}, ("pipeline.stages", "1000000", "at most")),
    ("layers with another sum", {"pipeline__layers": [1, 1, 1, 2]}, ("pipeline.layers", "[1, 1, 1, 2]", "sum 4")),
    ("too few layer counts", {"pipeline__layers": [2, 2]}, ("pipeline.layers", "[2, 2]", "4 stages")),
    ("an unknown split", {"pipeline__layers": "even"}, ("pipeline.layers", "'even'", "balanced")),
    ("part of a token", {"workload__tokens": 2048.5}, ("workload.tokens", "2048.5", "whole number")),
    ("all tokens cached", {"workload__cached_tokens": 2048}, ("workload.cached_tokens", "2048", "fewer than tokens")),
    ("dead die outside", {"hardware__disabled_dies": [[9, 9]]}, ("hardware.disabled_dies", "[9, 9]", "2x2 grid")),
    ("dead link between strangers", {"hardware__disabled_links": [[[0, 0], [1, 1]]]}, ("disabled_links", "neighbour")),
    ("rows of 30 digits", {"hardware__rows": 10**30}, ("hardware.rows", "1000000", "at most")),
    ("objective", {"objective": "speed"}, ("objective", "'speed'", "mean_latency")),
    ("objective of another command", {"objective": "max_tokens"}, ("bad.json: objective", "max_tokens", "solved for")),
    ("cost model", {"costs": {"kind": "guess"}}, ("costs", "guess", "roofline")),
    ("model as text", {"model": "llama3-70b"}, ("model", "'llama3-70b'", "an object")),
    ("unknown model", {"model": {"name": "llama"}}, ("model.name", "'llama'", "llama3-70b")),
    (
        "config that is not there",
        {"model": {"huggingface": "no.json"}},
        ("bad.json: model.huggingface", "no.json", "existing file"),
    ),
    ("folder as a config", {"model": {"huggingface": "."}}, ("bad.json: model.huggingface", "readable", "directory")),
    ("path with a null byte", {"model": {"huggingface": "a\0b"}}, ("bad.json: model.huggingface", "readable")),
    ("trace that is not there", {"workload": {"trace": "no.jsonl"}}, ("workload.trace", "no.jsonl", "existing file")),
    ("trace path with a null byte", {"workload": {"trace": "a\0b"}}, ("workload.trace", "readable")),
    ("empty trace", {"workload": {"trace": []}}, ("workload", "[]", "at least one request")),
    (
        "table that is not there",
        {"costs": {"kind": "table", "path": "no.csv"}},
        ("bad.json: costs.path", "no.csv", "existing file"),
    ),
    (
        "layers without a formula",
        {"model__kinds__layer__attention": {"kind": "linear", "name": "mamba", "parameters": 1}},
        ("attention", "mamba", "roofline"),
    ),
]


@pytest.mark.parametrize(("changes", "parts"), [case[1:] for case in FIELDS], ids=[case[0] for case in FIELDS])
def test_bad_field(tmp_path: Path, changes: dict[str, Any], parts: tuple[str, ...]) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(small_document(**changes)), encoding="utf-8")
    refused(waferplan("solve", path, "--json"), *parts)


FILES: list[tuple[str, bytes | None, tuple[str, ...]]] = [
    ("missing", None, ("existing file",)),
    ("empty", b"", ("valid JSON",)),
    ("truncated", TEXT[:100].encode(), ("valid JSON",)),
    ("binary", bytes(range(256)), ("UTF-8",)),
    ("UTF-16", TEXT.encode("utf-16"), ("UTF-8",)),
    ("list", b"[1, 2]", ("[1, 2]", "object")),
    ("text", b'"x"', ("'x'", "object")),
    ("null", b"null", ("object",)),
    ("unended text", b'{"name": "abc', ("Unterminated string starting at column 10",)),
    ("line break in a text", b'{"name":\n "a\nb"}', ("Invalid control character at line 2, column 4",)),
    ("NaN", TEXT.replace('"64 MB"', "NaN").encode(), ("hardware.die.hbm_bytes", "NaN")),
    ("Infinity", TEXT.replace('"64 MB"', "Infinity").encode(), ("hardware.die.hbm_bytes", "Infinity")),
    ("number beyond doubles", TEXT.replace('"64 MB"', "1e400").encode(), ("hbm_bytes", "inf", "finite")),
    ("count beyond doubles", TEXT.replace('"rows": 2', '"rows": 1e400').encode(), ("hardware.rows",)),
    ("number of 5000 digits", TEXT.replace('"rows": 2', f'"rows": {LONG}').encode(), ("digits",)),
    ("deep nesting", b"[" * 100_000, ("nested",)),
    ("long key", TEXT.replace('"rows": 2', f'"rows": 2, "{LONG}": 2').encode(), ("hardware.999",)),
    ("key with control characters", TEXT.replace('"rows": 2', '"rows": 2, "a\\nb\\u001b[1m": 2').encode(), ("a\\nb",)),
]


@pytest.mark.parametrize(("content", "parts"), [case[1:] for case in FILES], ids=[case[0] for case in FILES])
@pytest.mark.parametrize("command", ["solve", "check", "simulate"])
def test_bad_file(tmp_path: Path, command: str, content: bytes | None, parts: tuple[str, ...]) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_bytes(content)
    plan = [] if command == "solve" else ["plan.json"]
    refused(waferplan(command, path, *plan), "bad.json", *parts)


def test_folder_as_a_file(tmp_path: Path, instance_file: Path) -> None:
    for arguments in (("solve", tmp_path), ("check", instance_file, tmp_path), ("simulate", "--program", tmp_path)):
        refused(waferplan(*arguments), str(tmp_path), "readable")


PLANS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("another instance", {"instance": "0123"}, ("instance", "'0123'", "another one")),
    ("no instance", {"instance": ...}, ("instance", "required")),
    ("unknown key", {"chunk": 1}, ("chunk", "chunks")),
    ("Boolean batch", {"batch": True}, ("batch", "rue")),
    ("no batch", {"batch": 0}, ("batch", "0", "1")),
    ("fraction of a layer", {"layers": [1, 1, 1, 1.5]}, ("layers", "1.5")),
    ("three coordinates", {"placement": [[0, 0, 0], [0, 1], [1, 1], [1, 0]]}, ("placement.0",)),
    ("chunk list of what", {"chunks": {"all": [2048]}}, ("chunks", "'all'", "tokens")),
    ("no chunks", {"chunks": {"2048": []}}, ("chunks", "at least one chunk")),
    ("negative spill", {"spill": [{"stage": 0, "chunk": 0, "creditor": 1, "tokens": -1}]}, ("spill.0.tokens", "-1")),
    ("unknown schedule", {"schedule": "fast"}, ("schedule", "'fast'", "chunked")),
]


@pytest.mark.parametrize(("changes", "parts"), [case[1:] for case in PLANS], ids=[case[0] for case in PLANS])
@pytest.mark.parametrize("command", ["check", "simulate"])
def test_bad_plan(
    tmp_path: Path, instance_file: Path, command: str, changes: dict[str, Any], parts: tuple[str, ...]
) -> None:
    path = tmp_path / "bad-plan.json"
    path.write_text(json.dumps(small_plan_document(small_instance(), **changes)), encoding="utf-8")
    refused(waferplan(command, instance_file, path, "--json"), "bad-plan.json", *parts)


def test_result_without_a_plan(tmp_path: Path, instance_file: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text('{"status": "unknown", "plan": null}', encoding="utf-8")
    refused(waferplan("check", instance_file, path), "result.json", "plan")


OPTIONS: list[tuple[list[str], tuple[str, ...]]] = [
    (["--method", "best"], ("method", "'best'", "exact", "mocap")),
    (["--set", "fast=1"], ("fast", "'1'", "compare")),
    (["--set", "fast"], ("--set", "'fast'", "KNOB=VALUE")),
    (["--set", "compare=perhaps"], ("compare", "'perhaps'", "yes, no")),
    (["--set", "compare=no", "--set", "compare=yes"], ("--set", "compare=yes", "once")),
    (["--method", "mocap", "--set", "iterations=nan"], ("iterations", "'nan'", "whole number")),
    (["--method", "mocap", "--set", "iterations=1e999"], ("iterations", "'1e999'", "whole number")),
    (["--method", "mocap", "--set", "cooling=2"], ("cooling", "'2'", "at most 1")),
    (["--chunks", "0"], ("chunks", "0", "at least 1")),
    (["--chunks", "9"], ("chunks", "9", "from 1 to 8")),
    (["--chunks", "1.5"], ("--chunks", "'1.5'", "whole number")),
    (["--chunks", LONG], ("--chunks", "999", "whole number")),
    (["--time-limit", "0"], ("--time-limit", "'0'", "greater than 0")),
    (["--time-limit", "nan"], ("--time-limit", "'nan'", "a time")),
    (["--time-limit", "1e9"], ("--time-limit", "'1e9'", "at most")),
    (["--time-limit", "10 GB"], ("--time-limit", "'10 GB'", "10min")),
    (["--gap", "-1"], ("--gap", "'-1'", "at least 0")),
    (["--gap", "inf"], ("--gap", "'inf'", "1%")),
    (["--seed", "-1"], ("--seed", "-1", "from 0")),
    (["--workers", "0"], ("--workers", "0", "from 1")),
    (["--out", "nowhere/r.json"], ("--out", "nowhere/r.json", "existing folder")),
    (["--out", "."], ("--out", "regular file")),
    (["--out", "/dev/null"], ("--out", "/dev/null", "regular file")),
    (["--speed"], ("--speed", "--help")),
    (["--method"], ("--method", "--help")),
    (["another.json"], ("another.json", "--help")),
    (["--deterministic=3"], ("--deterministic", "--help")),
]


@pytest.mark.parametrize(("options", "parts"), OPTIONS, ids=[" ".join(case[0])[:40] for case in OPTIONS])
def test_bad_option_of_solve(instance_file: Path, options: list[str], parts: tuple[str, ...]) -> None:
    refused(waferplan("solve", instance_file, *options), *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["optimise"], ("optimise", "--help")),
        (["solve"], ("INSTANCE", "--help")),
        (["check", "I.json"], ("PLAN", "--help")),
        (["simulate"], ("INSTANCE", "--program")),
        (["simulate", "I.json"], ("PLAN", "--program")),
        (["simulate", "I.json", "P.json", "--program", "F.json"], ("INSTANCE", "'I.json'", "--program")),
        (["schema", "model"], ("KIND", "'model'", "instance, plan, result")),
        (["models", "--show", "llama"], ("--show", "'llama'", "llama3-70b")),
        (["models", "--show", "no.json"], ("no.json", "existing file")),
    ],
    ids=" ".join,
)
def test_bad_command_line(arguments: list[str], parts: tuple[str, ...]) -> None:
    refused(waferplan(*arguments), *parts)


def test_a_place_inside_a_table_is_named_with_the_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("chunk,prefix,seconds\n1,2\n", encoding="utf-8")
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(small_document(costs={"kind": "table", "path": "t.csv"})), encoding="utf-8")
    refused(waferplan("solve", path), "t.csv: line 2: '1,2'", "3 cells")


def test_config_without_a_needed_field(tmp_path: Path) -> None:
    config = {"model_type": "llama", "num_attention_heads": 8, "num_hidden_layers": 4, "vocab_size": 100}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    instance = tmp_path / "instance.json"
    instance.write_text(json.dumps(small_document(model={"huggingface": "config.json"})), encoding="utf-8")
    refused(waferplan("models", "--show", path), "config.json", "hidden_size")
    refused(waferplan("solve", instance), "config.json", "hidden_size")
    refused(waferplan("new", "--model", path, "--mesh", "2x2", "--tokens", "8k"), "config.json", "hidden_size")


def test_nothing_is_written_for_bad_input(tmp_path: Path, instance_file: Path) -> None:
    before = sorted(tmp_path.iterdir())
    refused(waferplan("solve", instance_file, "--out", tmp_path / "r.json", "--chunks", "9"))
    refused(waferplan("new", "--model", "llama3-8b", "--mesh", "2x2", "--tokens", "0", "--out", tmp_path / "i.json"))
    assert sorted(tmp_path.iterdir()) == before
