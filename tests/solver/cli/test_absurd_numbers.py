"""One field at a time made absurd: a message that names it, or an honest answer; never a traceback or a warning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.instance import Instance
from solver.warmup import warm_up
from tests.builders import changed, small_document, small_plan_document
from tests.solver.cli.running import Outcome, waferplan

VALUES: dict[str, Any] = {
    "0": 0,
    "-1": -1,
    "1e-300": 1e-300,
    "1e300": 1e300,
    "30 digits": 10**30,
    "wrong unit": "5 parsecs",
    "null": None,
    "true": True,
    "list": [1],
}
BASES: dict[str, dict[str, Any]] = {
    "roofline": small_document(
        hardware__wafers=[1, 1],
        hardware__wafer_link_bytes_per_s="50 GB/s",
        hardware__disabled_dies=[],
        hardware__dies=[{"at": [0, 1], "hbm_bytes": "60 MB", "peak_flops": "0.9 TFLOP/s"}],
        hardware__host={"host_bytes": "1 GB", "host_bytes_per_s": "10 GB/s"},
        hardware__die__gemm_efficiency=0.7,
        hardware__die__attention_efficiency=0.5,
        hardware__die__hbm_efficiency=0.8,
        workload={"requests": 3, "tokens": 1024, "cached_tokens": 256},
        pipeline__max_in_flight=8,
        pipeline__serve_fraction=1.0,
    ),
    "fitted": small_document(
        workload={"trace": [{"arrival_s": 0.5, "tokens": 1024, "cached_tokens": 256}, {"tokens": 512}]},
        costs={"kind": "fitted", "chunk_s": 1e-5, "prefix_s": 1e-9, "token_s": 1e-8, "pair_s": 1e-12},
        pipeline__layers=[1, 1, 1, 1],
        pipeline__forbidden_cuts=[],
    ),
    "table": small_document(
        workload={"requests": 2, "tokens": 1024},
        costs={"kind": "table", "rows": [[256, 0, 0.001], [256, 1024, 0.002], [1024, 0, 0.003], [1024, 1024, 0.004]]},
        objective="makespan",
    ),
}


def _fields(data: Any, path: str = "") -> Iterator[str]:
    """Paths of all numbers, and of texts that hold a quantity."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _fields(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, int | float) or (isinstance(data, str) and re.match(r"[0-9.]+ \w", data)):
        yield path


def _with(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    document = changed(data, {})
    place: Any = document
    *outer, last = (int(part) if part.isdecimal() else part for part in path.split("."))
    for part in outer:
        place = place[part]
    place[last] = value
    return document


CASES = [(base, path) for base, data in BASES.items() for path in _fields(data)]


def _honest(outcome: Outcome, path: str) -> None:
    """Done, infeasible, no plan within the limit, or one line that names the field, or one around or inside it."""
    assert outcome.code in (0, 1, 2, 3)
    if outcome.code != 2:
        assert outcome.err == ""
        return
    assert (outcome.out, outcome.err.count("\n")) == ("", 1)
    named = outcome.err.split("bad.json: ", 1)[1].split(": ", 1)[0]
    assert named, outcome.err
    assert named.split(".")[0] == path.split(".")[0] or named in ALSO.get(path, ()), outcome.err


ALSO = {
    "hardware.rows": ("pipeline.stages",),
    "hardware.columns": ("pipeline.stages",),
    "model.layers.0.repeat": ("pipeline.stages", "pipeline.layers"),
    "pipeline.chunk_quantum": ("workload.tokens",),
    "pipeline.stages": (),
    "workload.tokens": ("pipeline.chunk_quantum", "costs.pair_s"),
}
"""Fields that do not fit the one that was changed, and are named instead."""


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    warm_up()


@pytest.mark.parametrize(("base", "path"), CASES, ids=[f"{base}-{path}" for base, path in CASES])
def test_one_absurd_number(tmp_path: Path, base: str, path: str) -> None:
    file, plan = tmp_path / "bad.json", tmp_path / "plan.json"
    for value in VALUES.values():
        document = _with(BASES[base], path, value)
        file.write_text(json.dumps(document), encoding="utf-8")
        try:
            instance = Instance.load(file)
        except InputError:
            # Every command reads the file first.
            _honest(waferplan("check", file, plan), path)
            continue
        _honest(waferplan("solve", file, "--time-limit", "0.3", "--method", "cpp", "--json"), path)
        if len(instance.hardware.live_dies) == 4 and instance.pipeline.stages == 4:
            plan.write_text(json.dumps(small_plan_document(instance)), encoding="utf-8")
            _honest(waferplan("check", file, plan, "--json"), path)
            _honest(waferplan("simulate", file, plan, "--json"), path)
