"""A report as a whole: its files, its numbers, and that no content breaks it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from instances.errors import InputError
from instances.rules import Finding
from reports import report
from reports.inputs import Records
from solver.api import solve
from solver.capacity.result import CapacityResult
from solver.result import Compared, Result
from tests.builders import small_instance
from tests.reports.pages import Read, read_page
from tests.reports.results import (
    named,
    one_stage_result,
    planless_result,
    small_result,
    spilling_result,
)
from tests.solver.benchmark.making import record

LARGEST_BYTES = 8_000_000
PICTURES = ("mesh", "timeline", "memory", "memory-map", "chunk-sizes", "chunk-times", "progress")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}"
UNICODE = "模型 ☃ \u202e desrever \u2028 Ω"


def page_of(result: Result, folder: Path) -> Read:
    """Make a report and read its page."""
    return read_page(report(result, folder).html.read_text(encoding="utf-8"))


def at(result: Result, key: str) -> Any:
    """A place of a result file."""
    place: Any = result.model_dump(mode="json")
    for part in key.split("."):
        place = place[part]
    return place


def test_every_picture_is_there_in_both_forms(tmp_path: Path) -> None:
    files = report(small_result(), tmp_path / "new" / "folder")
    assert [path.name for path in files.figures] == [f"{name}.{form}" for name in PICTURES for form in ("svg", "png")]
    for path in files.figures:
        assert path.read_bytes().startswith(b"<svg" if path.suffix == ".svg" else b"\x89PNG\r\n")
    assert files.html.stat().st_size < LARGEST_BYTES
    page = read_page(files.html.read_text(encoding="utf-8"))
    assert list(page.specs) == list(PICTURES)
    assert page.elements["figure"] == page.elements["img"] == len(PICTURES)


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    page = page_of(small_result(), tmp_path)
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert page.elements["link"] == 1  # the empty icon


def test_numbers_of_the_page_are_those_of_the_result(tmp_path: Path) -> None:
    result = small_result()
    numbers = page_of(result, tmp_path).numbers
    assert {key: value for key, (value, _) in numbers.items()} == {key: at(result, key) for key in numbers}
    expected = {"objective.value", "objective.bound", "objective.gap", "objective.trivial_bound", "runtime_s", "seed"}
    expected |= {"metrics.mean_latency_s", "metrics.makespan_s", "metrics.bubble.makespan", "metrics.tokens_per_s"}
    assert expected <= set(numbers)
    units = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "%": 0.01}
    for value, text in numbers.values():
        shown = re.fullmatch(r"([\d.]+) (s|ms|us|%)", text)
        if shown is not None:  # five digits, or two decimals of a percentage
            assert float(shown[1]) * units[shown[2]] == pytest.approx(value, rel=1e-4, abs=5.1e-5)
    assert sum(re.fullmatch(r"([\d.]+) (s|ms|us|%)", text) is not None for _, text in numbers.values()) >= 10


def test_documents_beside_the_page_repeat_it(tmp_path: Path) -> None:
    result = small_result()
    report(result, tmp_path)
    assert Result.load(tmp_path / "result.json") == result
    assert json.loads((tmp_path / "instance.json").read_text(encoding="utf-8")) == result.instance


def test_a_result_without_a_plan(tmp_path: Path) -> None:
    page = page_of(planless_result(), tmp_path)
    assert page.specs == {}
    assert "no plan within the limit" in page.text
    assert "objective.value" not in page.numbers
    assert not re.search(r"\b(None|nan|inf|null)\b", page.text)


def test_an_unknown_gap(tmp_path: Path) -> None:
    result = small_result()
    unknown = result.objective.model_copy(update={"bound": None, "gap": None, "trivial_bound": None})
    page = page_of(result.model_copy(update={"objective": unknown, "trace": ()}), tmp_path)
    assert "objective.gap" not in page.numbers
    assert "–" in page.text
    assert not re.search(r"\b(None|nan|inf)\b", page.text)


def test_one_stage(tmp_path: Path) -> None:
    page = page_of(one_stage_result(), tmp_path)
    assert [die["stage"] for die in page.specs["mesh"]["datasets"]["dies"] if die["stage"]] == ["0"]
    assert page.specs["mesh"]["datasets"]["links"] == []


@pytest.mark.parametrize("name", [HOSTILE, UNICODE])
def test_names_stay_names(tmp_path: Path, name: str) -> None:
    plain, strange = page_of(small_result(), tmp_path / "a"), page_of(named(small_result(), name), tmp_path / "b")
    # The table of methods has one row fewer, and with it fewer numbers.
    fewer = {"tr": plain.elements["tr"] - 1, "td": plain.elements["td"] - 6, "data": strange.elements["data"]}
    assert strange.elements == plain.elements | fewer
    assert re.sub(r"\s+", " ", name) in strange.text


def test_names_of_pictures_stay_names(tmp_path: Path) -> None:
    runs = [record(instance=HOSTILE, suite=UNICODE, reason=HOSTILE), record(instance="other", fingerprint="g")]
    files = report(Records(HOSTILE, tuple(runs)), tmp_path)
    page = read_page(files.html.read_text(encoding="utf-8"))
    assert page.specs["losses"]["datasets"]["losses"][0]["instance"] == f"{UNICODE}: {HOSTILE}"
    assert page.elements["script"] == 3 + len(page.specs)  # themes, libraries, the page's own
    assert page.elements["img"] == len(page.specs)


def test_results_side_by_side(tmp_path: Path) -> None:
    files = report([small_result(), small_result(method="mocap"), planless_result()], tmp_path)
    page = read_page(files.html.read_text(encoding="utf-8"))
    assert {"chunk-sizes-1", "1-mesh", "2-mesh"} <= set(page.specs)
    assert "3-mesh" not in page.specs
    plans = {row["plan"] for row in page.specs["chunk-sizes-1"]["datasets"]["chunks"]}
    assert plans == {"1. exact, batch 1", "2. mocap, batch 1"}
    assert (tmp_path / "instance-3.json").exists()


def test_a_spilling_plan_says_so(tmp_path: Path) -> None:
    page = page_of(spilling_result(), tmp_path)
    data = page.specs["mesh"]["datasets"]
    assert {row["link"] for row in data["arcs"]} == {"stage 0 to stage 2", "stage 1 to stage 3"}
    assert data["dead_links"] == [{"row": 0.5, "column": 0}]
    # 128 tokens of each of two stages
    assert "KV of 256 stage-tokens is kept at other dies (2 lending links)" in page.text
    assert {row["kind"] for row in page.specs["timeline"]["datasets"]["extras"]} >= {"spill write", "remote fetch"}


def test_a_capacity_table(tmp_path: Path) -> None:
    points = [{"size": 1024 * n, "value_s": None if n > 2 else 2.0 * n, "optimum_s": 1.5 * n} for n in (1, 2, 3)]
    row = {"method": HOSTILE, "max_tokens": 2048, "value_s": 4.0, "optimum_s": 3.0, "frontier": points}
    document = {"instance": "i", "chunks": 4, "batch": 1, "latency_budget": 0.5, "methods": [row]}
    found = CapacityResult.parse({**document, "runtime_s": 1.0, "stop_reason": "proved"})
    (tmp_path / "c.json").write_text(found.to_json(), encoding="utf-8")
    page = read_page(report(tmp_path / "c.json", tmp_path).html.read_text(encoding="utf-8"))
    drawn = page.specs["frontier"]["datasets"]["frontier"]
    assert [(point["size"], point["value_s"]) for point in drawn if point["method"] == HOSTILE] == [
        (1024, 2),
        (2048, 4),
    ]
    assert len(drawn) == 5  # and the optimum at all three sizes
    assert "33.33 %" in page.text  # 4 s are a third more than 3 s


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "complete, valid JSON"),
        ("{}", "a result (solve --out)"),
        ("[]", "a result (solve --out)"),
        ('{"objective": {}, "status": "optimal"}', "nothing is given"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        report(path, tmp_path / "out")
    assert raised.value.file == str(path)
    assert says in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_mixed_kinds_and_foreign_instances_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'a result, records of a benchmark' is not allowed; expected several results"):
        report([small_result(), Records("r", (record(),))], tmp_path)
    changed = small_result()
    changed = changed.model_copy(update={"fingerprint": "0" * 32})
    with pytest.raises(InputError, match="fingerprint"):
        report(changed, tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="a folder that can be made"):
        report(small_result(), tmp_path / "file")


def test_broken_rules_are_named(tmp_path: Path) -> None:
    finding = Finding(rule="deadlock", ok=False, amount=1e9, unit="bytes", where="stage 3 waits")
    result = planless_result().model_copy(update={"violations": (finding,)})
    page = page_of(result, tmp_path)
    assert "Broken rules rule by where deadlock 1 GB stage 3 waits" in page.text
    assert "no plan to measure" in page.text


def test_the_best_other_method_is_named(tmp_path: Path) -> None:
    # mocap takes 1.2 times as long, gpipe has no plan
    text = page_of(small_result(), tmp_path / "a").text
    assert "Best of the other methods that have a plan (1): mocap, 20.00 % above this plan's value." in text
    alone = small_result().model_copy(update={"compared": (Compared(method="gpipe", value=None),)})
    assert "None of the other methods (1) has a plan." in page_of(alone, tmp_path / "b").text


def test_a_result_of_another_replay_is_called_so(tmp_path: Path) -> None:
    result = small_result()
    assert result.metrics is not None
    slower = result.metrics.model_copy(update={"makespan_s": 2 * result.metrics.makespan_s})
    assert "Warning" not in page_of(result, tmp_path / "a").text
    assert "Warning: replayed now" in page_of(result.model_copy(update={"metrics": slower}), tmp_path / "b").text


def test_chunks_of_the_heuristic_stand_beside_those_of_the_result(tmp_path: Path) -> None:
    instance = small_instance()
    heuristic = solve(instance, "mocap")
    value, plan = heuristic.objective.value, heuristic.plan
    assert value is not None and plan is not None

    def chunks(claimed: float, folder: str) -> list[Any]:
        compared = (Compared(method="mocap", value=claimed),)
        page = page_of(small_result(compared=compared), tmp_path / folder)
        rows: list[Any] = page.specs["chunk-sizes"]["datasets"]["chunks"]
        return rows

    rows = chunks(value, "a")
    assert {row["plan"] for row in rows} == {"exact, batch 1", f"mocap, batch {plan.batch}"}
    sizes = [row["tokens"] for row in rows if row["plan"].startswith("mocap")]
    assert sizes == list(plan.chunks["2048"])
    # A plan of another value is not the one that the result speaks of.
    assert {row["plan"] for row in chunks(0.9 * value, "b")} == {"exact"}
