"""``waferplan fit``: costs that an instance takes, what it prints, and bad input in one message."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from instances.costs import FittedSpec
from instances.instance import Instance
from tests.solver.cli.running import waferplan
from tests.solver.fitting.rows import SPEC, made


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Exact rows of a known formula, in milliseconds."""
    path = tmp_path / "profile.csv"
    rows = made()
    lines = [
        f"{c:.0f},{p:.0f},{1e3 * t!r}" for c, p, t in zip(rows.chunk, rows.prefix, rows.seconds.tolist(), strict=True)
    ]
    path.write_text("\n".join(["chunk,prefix,time_ms", *lines]), encoding="utf-8")
    return path


def test_costs_go_into_an_instance(profile: Path, tmp_path: Path) -> None:
    costs, target = tmp_path / "costs.json", tmp_path / "i.json"
    outcome = waferplan("fit", profile, "--out", costs)
    assert (outcome.code, outcome.err) == (0, "")
    written = FittedSpec.parse(json.loads(costs.read_text(encoding="utf-8")))
    assert written.pair_s == pytest.approx(SPEC.pair_s, rel=1e-6)
    arguments = ("--model", "llama3-8b", "--mesh", "2x2", "--tokens", "32k", "--costs", costs, "--out", target)
    assert waferplan("new", *arguments).code == 0
    instance = Instance.load(target)
    assert instance.costs == written
    # One of 32 layers, 1024 tokens after 8192, as the formula has it.
    seconds = 1e-3 + 1e-7 * 8192 + 1e-6 * 1024 + 1e-10 * (2 * 8192 + 1024) * 1024
    layer = instance.stage_cost.stage_seconds(instance.hardware.die, 0, 1, 1, 1024, 8192)
    assert float(layer) == pytest.approx(seconds / 32, rel=1e-6)


def test_what_is_printed(profile: Path) -> None:
    shown = waferplan("fit", profile, "--extrapolate-to", "64k", "--json").json
    assert shown["costs"]["kind"] == "fitted"
    assert (shown["rows"], shown["rows_left_out"], shown["better_shape"]) == (20, 0, "causal")
    assert shown["p95_error"] < 1e-6 < shown["rectangle"]["p95_error"]
    assert shown["extrapolation"]["tokens"] == 65536
    assert len(shown["warnings"]) == 1
    people = waferplan("fit", profile, "--extrapolate-to", "64k", columns=120).out
    for part in ("chunk_s", "pair_s", "p95", "causal fits better", "warning: a context of 65536"):
        assert part in people
    assert max(map(len, people.splitlines()[:12])) <= 120


def test_times_of_some_layers(profile: Path, tmp_path: Path) -> None:
    per_layer = tmp_path / "layer.csv"
    text = profile.read_text(encoding="utf-8")
    per_layer.write_text(text.replace("time_ms", "attention_ms_per_layer"), encoding="utf-8")
    one, many = (waferplan("fit", per_layer, *extra, "--json").json for extra in ((), ("--layers", "64")))
    assert (one["layers"], many["layers"]) == (1, None)
    assert many["costs"]["token_s"] == pytest.approx(64 * one["costs"]["token_s"], rel=1e-9)
    outcome = waferplan("fit", per_layer, "--out", tmp_path / "c.json")
    assert outcome.code == 2 and "--layers" in outcome.err and not (tmp_path / "c.json").exists()
    assert "--layers" in waferplan("fit", profile, "--layers", "64").err


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("profile.csv", "columns chunk and prefix")),
        ("chunk,seconds\n1,2\n", ("profile.csv: prefix", "column")),
        ("chunk,prefix,seconds,ms\n1,2,3,4\n", ("ms", "second time")),
        ("chunk,prefix,time_days\n1,2,3\n", ("time_days", "unit")),
        ("chunk,prefix,seconds\n1,2,fast\n", ("line 2", "'fast'", "number")),
        ("chunk,prefix,seconds\n1,2,nan\n", ("line 2", "finite")),
        ("chunk,prefix,seconds\n1,2,-1\n", ("line 2", "'-1'")),
    ],
)
def test_bad_files(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    path = tmp_path / "profile.csv"
    path.write_text(text, encoding="utf-8")
    outcome = waferplan("fit", path)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    for part in parts:
        assert part in outcome.err


@pytest.mark.parametrize(
    "options",
    [
        "--extrapolate-to 0",
        "--extrapolate-to long",
        "--extrapolate-to 1e99",
        "--min-chunk 8192",
        "--min-chunk -1",
        "--out /nowhere/costs.json",
    ],
)
def test_bad_options(profile: Path, options: str) -> None:
    outcome = waferplan("fit", profile, *options.split())
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert options.split()[0] in outcome.err


def test_broken_costs_are_refused_by_new(tmp_path: Path) -> None:
    costs = tmp_path / "costs.json"
    arguments = ("--model", "llama3-8b", "--mesh", "2x2", "--tokens", "8k", "--costs", costs)
    assert "costs.json" in waferplan("new", *arguments).err
    costs.write_text('{"kind": "fitted", "chunk_s": 1}', encoding="utf-8")
    outcome = waferplan("new", *arguments)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "prefix_s" in outcome.err
    costs.write_text('{"kind": "fitted", "chunk_s": -1, "prefix_s": 0, "token_s": 0, "pair_s": 0}', encoding="utf-8")
    assert f"{costs}: chunk_s: -1" in waferplan("new", *arguments).err


def test_the_profile_is_not_written_over(profile: Path) -> None:
    before = profile.read_text(encoding="utf-8")
    outcome = waferplan("fit", profile, "--out", profile)
    assert (outcome.code, outcome.out) == (2, "") and "--out" in outcome.err
    assert profile.read_text(encoding="utf-8") == before
