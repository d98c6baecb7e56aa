"""``waferplan report`` and ``waferplan solve --report``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.builders import small_document
from tests.reports.pages import read_page
from tests.reports.results import planless_result, small_result
from tests.solver.benchmark.making import record
from tests.solver.cli.running import waferplan


def test_a_page_of_a_result(tmp_path: Path) -> None:
    small_result().save(tmp_path / "r.json")
    outcome = waferplan("report", tmp_path / "r.json", "--out", tmp_path / "page")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == f"{tmp_path / 'page' / 'report.html'}: 7 pictures, also as SVG and PNG\n"
    assert {path.name for path in (tmp_path / "page").iterdir()} == {
        "report.html", "figures", "instance.json", "result.json",
    }  # fmt: skip


def test_a_page_of_a_benchmark(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(record().line() + b"not a record\n" + record(fingerprint="g", gap=0.0).line())
    outcome = waferplan("report", tmp_path / "r.jsonl", "--out", tmp_path / "page")
    assert outcome.code == 0
    page = read_page((tmp_path / "page" / "report.html").read_text(encoding="utf-8"))
    assert list(page.specs) == ["profile", "cactus", "losses"]
    assert "1 lines of the file are no records" in page.text


def test_several_results_stand_side_by_side(tmp_path: Path) -> None:
    small_result().save(tmp_path / "a.json")
    planless_result().save(tmp_path / "b.json")
    outcome = waferplan("report", tmp_path / "a.json", tmp_path / "b.json", "--out", tmp_path / "page")
    assert outcome.code == 0
    assert (tmp_path / "page" / "result-2.json").exists()


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"what": 1}', encoding="utf-8")
    small_result().save(tmp_path / "r.json")
    for arguments, says in (
        (["missing.json", "--out", "page"], "the path of an existing file"),
        ([tmp_path / "bad.json", "--out", "page"], "a result (solve --out)"),
        ([tmp_path / "r.json", "--out", tmp_path / "r.json"], "a folder that can be made"),
        ([tmp_path / "r.json"], "--out"),
        (["--out", "page"], "RESULT"),
    ):
        outcome = waferplan("report", *arguments)
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.count("\n") == 1
        assert says in outcome.err


def test_solve_writes_the_page_of_its_result(tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    path.write_text(json.dumps(small_document()), encoding="utf-8")
    outcome = waferplan("solve", path, "--method", "gpipe", "--report", tmp_path / "page", "--json")
    assert outcome.code == 0
    page = read_page((tmp_path / "page" / "report.html").read_text(encoding="utf-8"))
    assert page.numbers["objective.value"][0] == outcome.json["objective"]["value"]
    assert page.numbers["metrics.makespan_s"][0] == outcome.json["metrics"]["makespan_s"]


def test_solve_tries_the_folder_before_it_searches(tmp_path: Path) -> None:
    path = tmp_path / "i.json"
    path.write_text(json.dumps(small_document()), encoding="utf-8")
    outcome = waferplan("solve", path, "--report", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert "--report" in outcome.err
