"""Answers that are programs: iterations and requests of serving policies, and programs of any other kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from instances.errors import InfeasibleError, InputError
from reports import report
from reports.details import details_section
from reports.figures.iterations import iterations_timeline, times_figure, tokens_figure
from reports.figures.requests import requests_figure
from reports.served import Served, programmed
from solver.result import Result
from tests.reports.pages import read_page
from tests.reports.results import planless_result, programmed_result, served_result, small_result
from tests.reports.test_report import HOSTILE, at, page_of

SERVED_PICTURES = ["mesh", "timeline", "iteration-tokens", "iteration-times", "requests", "memory", "memory-map"]
MS = 1e-3
"""The small program takes milliseconds: the unit of its axes."""


@pytest.fixture(scope="module")
def result() -> Result:
    """Requests served token by token."""
    return served_result()


@pytest.fixture(scope="module")
def view(result: Result) -> Served:
    """The same, replayed."""
    found = programmed(result)
    assert isinstance(found, Served)
    return found


def test_iterations_have_the_tokens_that_were_computed(view: Served) -> None:
    # 4 prompts of 2048 tokens; the first token comes with the prompt, so that 2 of 3 are computed by themselves
    assert view.tokens.sum() == 4 * (2048 + 2)
    assert view.tokens.max() == 512
    metrics = view.result.metrics
    assert metrics is not None
    assert view.tokens.sum() / view.makespan_s == pytest.approx(metrics.computed_tokens_per_s)


def test_requests_take_their_latencies(view: Served) -> None:
    metrics = view.result.metrics
    assert metrics is not None
    assert (view.done_s - view.arrived_s).mean() == pytest.approx(metrics.mean_latency_s)
    rows = requests_figure(view).data["requests"]
    assert [row["request"] for row in rows] == [0, 1, 2, 3]
    assert max(row["done"] for row in rows) * MS == pytest.approx(metrics.makespan_s, rel=1e-6)


def test_the_timeline_holds_every_iteration_at_every_stage(view: Served) -> None:
    rows = iterations_timeline(view).data["chunks"]
    assert len(rows) == 4 * view.iterations
    assert sum(row["tokens"] for row in rows) == 4 * view.tokens.sum()
    assert sum(row["compute"] for row in rows) * MS == pytest.approx(view.busy_s.sum(), rel=1e-6)
    few = iterations_timeline(view, most_marks=16)
    assert len(few.data["chunks"]) < len(rows)
    assert "too many to tell apart" in few.caption
    assert sum(row["tokens"] for row in few.data["chunks"]) == 4 * view.tokens.sum()


def test_times_of_an_iteration_are_those_of_its_stages(view: Served) -> None:
    rows = times_figure(view).data["iterations"]
    through, slowest = rows[: view.iterations], rows[view.iterations :]
    assert {row["what"] for row in through} == {"through all stages"}
    start, end = view.times_s("start_s"), view.times_s("end_s")
    assert through[0]["took"] * MS == pytest.approx(end[0, -1] - start[0, 0], rel=1e-6)
    assert slowest[0]["took"] * MS == pytest.approx(view.times_s("compute_s")[0].max(), rel=1e-6)
    assert all(one["took"] >= other["took"] for one, other in zip(through, slowest, strict=True))
    assert [row["tokens"] for row in tokens_figure(view).data["iterations"]] == view.tokens.tolist()


def test_a_page_of_a_serving_policy(result: Result, tmp_path: Path) -> None:
    page = page_of(result, tmp_path)
    assert list(page.specs) == SERVED_PICTURES
    assert {key: value for key, (value, _) in page.numbers.items()} == {key: at(result, key) for key in page.numbers}
    expected = {"metrics.ttft_s", "metrics.p99_ttft_s", "metrics.tbt_s", "metrics.max_tbt_s", "details.budget_tokens"}
    assert expected | {"metrics.output_tokens_per_s", "metrics.prompt_tokens_per_s"} <= set(page.numbers)
    assert "4 requests are served in" in page.text
    assert "waferplan simulate --program result.json" in page.text
    assert "Methods side by side" not in page.text  # nothing was compared


def test_serving_beside_a_plan(result: Result, tmp_path: Path) -> None:
    page = read_page(report([result, planless_result()], tmp_path).html.read_text(encoding="utf-8"))
    assert list(page.specs) == [f"1-{name}" for name in SERVED_PICTURES]


def test_a_program_of_another_kind(tmp_path: Path) -> None:
    page = page_of(programmed_result(), tmp_path)
    assert list(page.specs) == ["mesh", "timeline", "memory", "memory-map"]
    assert "A program of 8 tasks in 2 stages" in page.text
    rows = page.specs["timeline"]["datasets"]["chunks"]
    # Stage 0 runs chunks of 1 and 2 s twice; stage 1 those of 3 and 4 s from the end of the first one on: 1 + 2 * 7
    assert [(row["stage"], row["chunk"], row["start"], row["end"]) for row in rows] == [
        (0, 0, 0, 1),
        (0, 1, 1, 3),
        (0, 0, 3, 4),
        (0, 1, 4, 6),
        (1, 0, 1, 4),
        (1, 1, 4, 8),
        (1, 0, 8, 11),
        (1, 1, 11, 15),
    ]
    assert {row["stage"] for row in page.specs["mesh"]["datasets"]["dies"]} == {"0", "1", ""}


def test_programs_that_cannot_be_replayed_are_refused(result: Result, tmp_path: Path) -> None:
    document = programmed_result().program
    assert document is not None

    def with_program(program: dict[str, Any]) -> Result:
        return result.model_copy(update={"program": program})

    with pytest.raises(InputError, match="die_of"):
        report(with_program({"tasks": []}), tmp_path)
    with pytest.raises(InputError, match="at least 6 waves"):
        report(with_program(document), tmp_path)
    with pytest.raises(InfeasibleError, match="deadlock"):
        report(programmed_result().model_copy(update={"program": {**document, "capacity_bytes": [1, 1]}}), tmp_path)


def test_a_program_that_counts_first_tokens_need_not_serve_in_iterations(tmp_path: Path) -> None:
    # as rematching does: prompts alone, whose first token comes with the last chunk
    metrics = small_result().metrics
    assert metrics is not None
    counted = metrics.model_copy(update={"ttft_s": 1.0, "peak_memory_bytes": (1, 1), "stall_s": (0.0, 0.0)})
    page = page_of(programmed_result().model_copy(update={"metrics": counted}), tmp_path)
    assert list(page.specs) == ["mesh", "timeline", "memory", "memory-map"]
    assert "time to first token 1.0000 s" in page.text


def test_iterations_of_several_chunks_are_refused(result: Result, tmp_path: Path) -> None:
    # 4 requests, one iteration, the memory: 6 waves, all of two chunks
    document = programmed_result().program
    assert document is not None
    longer = {**document, "arrivals_s": [0] * 6, "compute_s": [[[1, 2], [3, 4]]] * 6}
    longer |= {"kv_bytes": [[[1, 1], [1, 1]]] * 6, "activation_bytes": [[0, 0]] * 6}
    with pytest.raises(InputError, match="one chunk a request"):
        report(result.model_copy(update={"program": longer}), tmp_path)


def test_kv_that_a_program_writes_elsewhere_is_shown(tmp_path: Path) -> None:
    # stage 0 writes 300 B after the first chunk of each of two requests to stage 1: 600 B
    answer = programmed_result()
    document = {**(answer.program or {})}
    document["spill"] = [{"wave": wave, "stage": 0, "chunk": 0, "creditor": 1, "bytes": 300} for wave in range(2)]
    page = page_of(answer.model_copy(update={"program": document}), tmp_path)
    assert "Memory binds: the plan keeps KV elsewhere" in page.text
    assert "KV written elsewhere" in page.text
    assert "600 B at 1" in page.text
    arcs = page.specs["mesh"]["datasets"]["arcs"]
    assert {(row["link"], row["kept"]) for row in arcs} == {("stage 0 to stage 1", "600 B")}


def test_what_a_method_says_has_units() -> None:
    details = {
        "hits": 3,
        "mode": None,
        "prediction_error_s": 2e-6,
        "loaded_bytes": 1500,
        "evicted": [1, 2],
        "sweep": [{"budget_tokens": 64, "ttft_s": 0.5, "reason": None}, {"budget_tokens": 128, "ttft_s": None}],
        "ablation": {"naive": {"waves": 7}, "whole_cache": {"waves": 5, "good_hit_rate": 0.5}},
        "layered": {"p99_tbt_s": 0.25, "output_tokens_per_s": 12.0, HOSTILE: "x"},
    }
    section = details_section(details)
    assert section is not None
    assert {fact.label: fact.cell.text for fact in section.facts} == {
        "hits": "3",
        "mode": "–",
        "prediction error": "2.0000 us",
        "loaded": "1.5 kB",
        "evicted": "1, 2",
    }
    sweep, ablation, runs = section.tables
    assert sweep.title == "Sweep"
    assert sweep.columns == sweep.numbers == ["budget tokens", "time to first token"]
    assert [[cell.text for cell in row] for row in sweep.rows] == [["64", "500.00 ms"], ["128", "–"]]
    assert ablation.columns == ["run", "waves", "good hit rate"]
    assert [[cell.text for cell in row] for row in ablation.rows] == [
        ["naive", "7", "–"],
        ["whole cache", "5", "50.00 %"],
    ]
    assert runs.columns[:3] == ["run", "p99 time between tokens", "output tokens"]
    assert [cell.text for cell in runs.rows[0]] == ["layered", "250.00 ms", "12.000/s", "x"]
    assert details_section({}) is None
