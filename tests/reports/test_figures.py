"""What pictures show is what the replay saw."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reports.drawing import svg_text
from reports.figures.cactus import cactus_figure
from reports.figures.chunks import sizes_figure, times_figure
from reports.figures.frontier import frontier_figure
from reports.figures.losses import losses_figure
from reports.figures.memory import memory_figure, memory_map
from reports.figures.mesh import mesh_figure
from reports.figures.paper import paper_figure
from reports.figures.profile import LEAST_LOSS, profile_figure
from reports.figures.progress import progress_figure
from reports.figures.timeline import timeline_figure
from reports.source import Replayed, replay_of
from solver.benchmark.statistics import references, summarise
from solver.capacity.result import CapacityResult, CapacityRow, FrontierPoint
from solver.result import Result, TracePoint
from tests.builders import small_instance, small_plan
from tests.reports.results import planless_result, replayed_result, small_result, spilling_result
from tests.solver.benchmark.making import record


def view_of(result: Result) -> Replayed:
    """A replayed result."""
    found = replay_of(result)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def view() -> Replayed:
    """The small result, replayed."""
    return view_of(small_result())


@pytest.fixture(scope="module")
def spilling() -> Replayed:
    """The small spilling result, replayed."""
    return view_of(spilling_result())


MS = 1e-3
"""The small results take milliseconds: the unit of their axes."""


def test_every_stage_stands_once_on_its_die(view: Replayed) -> None:
    dies = mesh_figure(view).data["dies"]
    placed = {row["stage"]: (row["row"], row["column"]) for row in dies if row["stage"]}
    assert placed == {"0": (0, 0), "1": (0, 1), "2": (1, 1), "3": (1, 0)}
    assert len([row for row in dies if row["stage"]]) == 4


def test_links_carry_what_the_replay_counted(view: Replayed) -> None:
    links = {row["name"]: row["bytes"] for row in mesh_figure(view).data["links"]}
    # Activations of 4 requests of 2048 tokens of 64 numbers of 2 bytes: 1 MiB a link, along the ring of the stages.
    assert links == {"(0,0)->(0,1)": 1 << 20, "(0,1)->(1,1)": 1 << 20, "(1,1)->(1,0)": 1 << 20}


def test_the_peak_of_each_die_is_its_share(view: Replayed) -> None:
    metrics = view.result.metrics
    assert metrics is not None
    shares = {row["stage"]: row["share"] for row in mesh_figure(view).data["dies"]}
    for stage, peak in enumerate(metrics.peak_memory_bytes):
        assert shares[str(stage)] == pytest.approx(peak / 64e6, abs=1e-6)


def test_the_timeline_holds_every_chunk(view: Replayed) -> None:
    rows = timeline_figure(view).data["chunks"]
    assert len(rows) == 4 * 4 * 2  # waves, stages, chunks
    ends = max(row["end"] for row in rows)
    assert ends * MS == pytest.approx(view.makespan_s, rel=1e-6)
    assert {(row["chunk"], row["before"], row["tokens"]) for row in rows} == {(0, 0, 1024), (1, 1024, 1024)}
    assert {row["lost"] for row in rows} == {0}


def test_too_many_chunks_are_drawn_together(view: Replayed) -> None:
    few = timeline_figure(view, most_marks=16)
    rows = few.data["chunks"]
    assert 16 <= len(rows) < 32
    assert "too many to tell apart" in few.caption
    # Nothing is lost: tokens and compute add up to the same.
    for field in ("tokens", "compute"):
        whole = sum(row[field] for row in timeline_figure(view).data["chunks"])
        assert sum(row[field] for row in rows) == pytest.approx(whole, rel=1e-6)


def test_many_waves_are_drawn_together_too(view: Replayed) -> None:
    # There is a run for each of 4 stages and 4 waves, which are too many: borders of waves are drawn over.
    assert len(timeline_figure(view, most_marks=4).data["chunks"]) <= 8


def test_transfers_and_waits_of_spill_are_drawn(spilling: Replayed) -> None:
    extras = timeline_figure(spilling).data["extras"]
    writes = [row for row in extras if row["kind"] == "spill write"]
    assert {row["stage"] for row in writes} == {"0", "1"}
    assert len(writes) == 2 * 4  # two stages, four waves
    stalls = [row for row in extras if row["kind"].startswith("stall")]
    assert {row["stage"] for row in stalls} == {"2", "3"}
    total = sum(MS * (row["end"] - row["start"]) for row in stalls)
    metrics = spilling.result.metrics
    assert metrics is not None
    assert total == pytest.approx(sum(metrics.stall_s), rel=1e-3)  # short beside their times


def test_memory_reaches_the_measured_peaks(spilling: Replayed) -> None:
    metrics = spilling.result.metrics
    assert metrics is not None
    rows = memory_figure(spilling).data["memory"]
    for stage, peak in enumerate(metrics.peak_memory_bytes):
        own = [row for row in rows if row["die"].startswith(f"stage {stage} ")]
        highest = max(row["static"] + row["own"] + row["hosted"] for row in own)
        assert highest * 1e6 == pytest.approx(peak, rel=1e-6)
        assert {row["capacity"] for row in own} == {64}
        # 128 tokens of one layer: 2 heads of 16 numbers of K and V, 2 bytes each: 128 * 128 bytes
        hosted = max(row["hosted"] for row in own) * 1e6
        assert hosted == pytest.approx(16384 if stage in (2, 3) else 0)
    cells = memory_map(spilling).data["cells"]
    for stage, peak in enumerate(metrics.peak_memory_bytes):
        assert max(row["share"] for row in cells if row["row"] == stage) == pytest.approx(peak / 64e6, abs=1e-5)


def test_chunks_follow_one_another(view: Replayed) -> None:
    rows = sizes_figure([("a", view)]).data["chunks"]
    assert [(row["start"], row["end"], row["tokens"]) for row in rows] == [(0, 1024, 1024), (1024, 2048, 1024)]
    times = times_figure([("a", view)]).data["chunks"]
    longest = view.tables["tasks"]["compute_s"][view.program.chunk == 1].max()
    assert times[1]["compute_s"] == times[1]["request_s"] == pytest.approx(longest, rel=1e-6)


def test_chunks_of_the_longest_kind_of_request_are_shown() -> None:
    trace = [
        {"arrival_s": 0.0, "tokens": 512, "cached_tokens": 0},
        {"arrival_s": 0.0, "tokens": 1024, "cached_tokens": 256},
    ]
    instance = small_instance(workload={"trace": trace})
    found = view_of(replayed_result(instance, small_plan(instance)))
    rows = sizes_figure([("a", found)]).data["chunks"]
    # 768 tokens to compute behind 256 cached ones
    assert [(row["start"], row["end"]) for row in rows] == [(256, 512), (512, 1024)]


def test_v_shaped_plans_show_both_stages_of_a_die() -> None:
    instance = small_instance(pipeline__stages=2)
    fold = [[0, 0], [0, 1], [0, 1], [0, 0]]
    plan = small_plan(instance, schedule="vpp", layers=[1, 1, 1, 1], placement=fold)
    found = view_of(replayed_result(instance, plan))
    assert [row["stage"] for row in mesh_figure(found).data["dies"][:2]] == ["0/3", "1/2"]
    assert {row["stage"] for row in timeline_figure(found).data["chunks"]} == {0, 1, 2, 3}


def test_the_search_is_drawn_to_its_end() -> None:
    result = small_result()
    figure = progress_figure(result)
    assert figure is not None
    rows = figure.data["trace"]
    assert {row["what"]: row["t"] for row in rows} == {"proved bound": 1.25, "best plan": 1.25}
    value = result.objective.value
    assert [row["value_s"] for row in rows if row["what"] == "best plan"] == [value, value]
    assert progress_figure(planless_result()) is None


def test_short_searches_have_their_ends_on_the_axis() -> None:
    # from 1.06 s to 1.127 s there is neither 1 s nor 2 s
    trace = (TracePoint(t_s=1.06, value=None, bound=0.5),)
    figure = progress_figure(small_result(trace=trace, runtime_s=1.127))
    assert figure is not None
    assert figure.layout["encoding"]["x"]["axis"]["values"] == [1.06, 1.13]
    longer = progress_figure(small_result())
    assert longer is not None
    assert {0.5, 1.0} <= set(longer.layout["encoding"]["x"]["axis"]["values"])


def test_ways_beyond_the_colours_have_dashes() -> None:
    point = FrontierPoint(size=1024, value_s=1.0, optimum_s=1.0)
    ways = [CapacityRow(method=f"way {number}", max_tokens=1024, frontier=(point,)) for number in range(9)]
    found = CapacityResult(
        instance="i", chunks=1, batch=1, latency_budget=None, methods=tuple(ways), runtime_s=1.0, stop_reason="complete"
    )
    figure = frontier_figure(found)
    assert figure is not None
    encoding = figure.layout["encoding"]
    styles = list(
        zip(encoding["color"]["scale"]["range"], map(tuple, encoding["strokeDash"]["scale"]["range"]), strict=True)
    )
    assert len(styles) == len(set(styles)) == 10


def test_long_names_of_plans_stay_inside_the_picture(view: Replayed) -> None:
    svg = svg_text(sizes_figure([("name " * 100, view), ("other", view)]), 600)
    width = re.search(r'<svg[^>]* width="(\d+)', svg)
    assert width is not None
    assert int(width.group(1)) <= 600


def test_profiles_count_runs_without_a_plan() -> None:
    runs = [
        record(),
        record(method="mocap", value=3.3),
        record(fingerprint="g", instance="j"),
        record(fingerprint="g", instance="j", method="mocap", value=None, status="unknown", plan=None),
    ]
    known = references(runs, {})
    figure = profile_figure(runs, known)
    assert figure is not None
    gpipe, mocap = ([row for row in figure.data["profile"] if row["method"] == name] for name in ("gpipe", "mocap"))
    assert [(row["loss"], row["share"]) for row in gpipe[:2]] == [(LEAST_LOSS, 0.5), (LEAST_LOSS, 1.0)]
    # 3.3 is a tenth more than 3; the other of two runs has no plan.
    assert [(round(row["loss"], 9), row["share"]) for row in mocap] == [(0.1, 0.5), (1.1, 0.5)]
    losses = losses_figure(runs, known)
    assert losses is not None
    assert len(losses.data["losses"]) == 3
    # bound 2 below the best value 3: a gap of a third
    assert {row["gap"] for row in losses.data["open"]} == {1 / 3}


def test_proofs_are_counted_in_order_of_time() -> None:
    runs = [
        record(fingerprint=name, gap=0.0, runtime_s=time_s) for name, time_s in (("a", 5.0), ("b", 1.0), ("c", 3.0))
    ]
    runs.append(record(fingerprint="d"))
    figure = cactus_figure(summarise(runs, references(runs, {})))
    assert figure is not None
    drawn = [(row["time_s"], row["proved"], row["runs"]) for row in figure.data["proofs"]]
    assert drawn == [(1.0, 1, 4), (3.0, 2, 4), (5.0, 3, 4)]
    assert cactus_figure(summarise(runs[3:], references(runs, {}))) is None


def test_the_paper_is_compared_on_its_suite_alone() -> None:
    metrics = small_result().metrics
    assert metrics is not None
    slow = metrics.model_dump(mode="json")
    fast = {**slow, "mean_latency_s": slow["mean_latency_s"] / 2, "throughput_rps": slow["throughput_rps"] * 3}
    runs = [record(suite="mocap-latency", metrics=slow), record(suite="mocap-latency", metrics=fast, method="mocap")]
    figure = paper_figure(runs)
    assert figure is not None
    ours = {row["what"]: row["factor"] for row in figure.data["paper"] if row["method"] == "mocap"}
    assert list(ours.values()) == pytest.approx([0.5, 3.0])
    assert paper_figure([record(metrics=slow)]) is None


@pytest.mark.parametrize("width", [1200, 600])
def test_drawings_fit_their_width(view: Replayed, width: int) -> None:
    for figure in (mesh_figure(view), timeline_figure(view), memory_figure(view), sizes_figure([("a", view)])):
        head = svg_text(figure, width).split(">", 1)[0]
        attributes: dict[str, Any] = dict(part.split("=", 1) for part in head.split()[1:] if "=" in part)
        assert float(attributes["width"].strip('"')) <= width + 1


def test_what_is_drawn_does_not_depend_on_the_size() -> None:
    figure = mesh_figure(view_of(small_result()))
    assert figure.spec(600)["datasets"] == figure.spec()["datasets"] == replace(figure, height=9).spec()["datasets"]
    assert np.isclose(figure.spec(380)["height"] / figure.spec(760)["height"], 0.5, atol=0.01)
