"""Layered prefill: groups of layers, one an iteration; experts are read once a cohort."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.catalogue import load_model
from instances.instance import Instance
from instances.layers import ExpertFeedForward
from solver.api import solve
from solver.limits import Limits
from solver.serving.jobs import Log
from solver.serving.layered import GROUPS, Layered, groups_of, layer_groups
from solver.serving.memory import Memory
from solver.serving.setting import Setting, setting_of
from tests.searches import make_search
from tests.solver.serving.building import FAST_LINKS, FITTED, MIXTURE, row, traced

QUICK = Limits(time_s=30)
SECONDS: dict[str, Any] = {**FAST_LINKS, "costs": FITTED}


def logged(instance: Instance, largest: int, table: tuple[int, ...] = (1, 2, 4)) -> tuple[Setting, Log]:
    setting = setting_of(make_search(instance, "layered"), largest + 8)
    scheduler = Layered(Memory(setting.cost, setting.free_bytes), largest, 8, instance.model.layer_count, table)
    return setting, setting.run(scheduler, setting.jobs(1))


@pytest.mark.parametrize(
    ("stages", "tokens", "groups"),
    [
        ("16", 1, 1),
        ("16", 512, 1),
        ("16", 513, 2),
        ("16", 2048, 4),
        ("16", 4096, 8),
        ("16", 4097, 16),
        ("12", 4096, 6),
        ("12", 5000, 12),
        ("24", 5000, 24),
        ("4", 1024, 2),
        ("4", 8192, 4),
    ],
)
def test_groups_by_the_size_of_the_cohort(stages: str, tokens: int, groups: int) -> None:
    assert groups_of(tokens, GROUPS[stages]) == groups


def test_groups_cover_the_layers_once() -> None:
    assert layer_groups(10, 4) == [(0, 2), (2, 4), (4, 7), (7, 10)]
    assert layer_groups(3, 16) == [(0, 1), (1, 2), (2, 3)]


def test_decodes_pass_all_layers_and_the_prompt_one_group() -> None:
    # The second prompt, 1600 tokens, takes 4 iterations of one layer each; the first request decodes in all of them.
    _, log = logged(traced(row(4, output_tokens=9), row(1600, 2.1, output_tokens=1), **SECONDS), 4096)
    groups = [iteration.batch.layers for iteration in log.iterations]
    assert groups == [(0, 4), None, (0, 1), (1, 2), (2, 3), (3, 4), None, None, None]
    # A layer takes a quarter of 1 s + 0.25 s a token: 1601 tokens on one layer, one token on three.
    assert log.iterations[2].durations_ps[0] == (1 + 1601 / 4 + 3 * (1 + 1 / 4)) / 4 * 1e12


def test_expert_bytes_are_those_of_one_pass() -> None:
    instance = traced(row(2048, output_tokens=1), model__kinds={"layer": MIXTURE}, hardware__die__hbm_bytes="1 GB")
    result = solve(instance, "layered", knobs={"groups": "4"}, limits=QUICK)
    assert result.metrics is not None
    expert = 4 * 8 * 3 * 64 * 32 * 2  # 4 layers of 8 experts
    assert result.metrics.expert_bytes == pytest.approx(expert * (1 - 0.75**2048))
    # Chunks of 512 tokens read them 2048/512 times.
    assert result.details["chunked"]["expert_bytes"] == pytest.approx(4 * expert * (1 - 0.75**512))


def mixture(*trace: dict[str, Any]) -> Instance:
    """Qwen3-30B-A3B on one die."""
    die = {"peak_flops": "989 TFLOP/s", "hbm_bytes": "160 GB", "hbm_bytes_per_s": "3.35 TB/s"}
    return Instance.read(
        {
            "schema_version": 1,
            "name": "mixture",
            "hardware": {"rows": 1, "columns": 1, "link_bytes_per_s": "1 TB/s", "die": die},
            "model": {"name": "qwen3-30b-a3b"},
            "workload": {"trace": list(trace)},
            "pipeline": {"stages": 1},
        }
    )


def test_a_mixture_of_the_catalogue_reads_what_the_formula_says() -> None:
    model = load_model("qwen3-30b-a3b")
    moe = model.kinds[model.layer_kinds[0]].feed_forward
    assert isinstance(moe, ExpertFeedForward)
    result = solve(mixture(row(8192, output_tokens=1)), "layered", limits=QUICK)
    assert result.metrics is not None
    miss = 1 - moe.top_k / moe.experts
    ratio = 16 * (1 - miss**512) / (1 - miss**8192)  # 8192/512 chunks
    assert result.details["chunked"]["expert_bytes"] / (result.metrics.expert_bytes or 0) == pytest.approx(ratio)
    assert result.metrics.ttft_s is not None
    assert result.metrics.ttft_s < result.details["chunked"]["ttft_s"]


def test_first_tokens_and_the_next_ones_come_sooner_than_by_chunks() -> None:
    # A stream as in the paper's study: prompts of thousands of tokens while others decode.
    trace = [row(1000 + 700 * (i % 5), 0.02 * i, output_tokens=60) for i in range(20)]
    result = solve(mixture(*trace), "layered", limits=QUICK)
    assert result.metrics is not None
    layered, chunked = result.details["layered"], result.details["chunked"]
    for better in ("ttft_s", "p99_ttft_s", "p99_tbt_s", "expert_bytes"):
        assert layered[better] < chunked[better]
    assert layered["ttft_s"] == pytest.approx(result.metrics.ttft_s)


requests = st.lists(
    st.tuples(st.integers(1, 3000), st.integers(1, 6), st.integers(0, 40)).map(
        lambda each: row(each[0], each[2] / 4, output_tokens=each[1])
    ),
    min_size=1,
    max_size=5,
)


@given(rows=requests, largest=st.integers(300, 2000), stages=st.integers(1, 2))
def test_each_prompt_passes_each_layer_once_one_cohort_at_a_time(
    rows: list[dict[str, Any]], largest: int, stages: int
) -> None:
    setting, log = logged(traced(*rows, stages=stages, costs=FITTED), largest)
    assert log.stuck is None
    passed = [[0] * 4 for _ in rows]
    for iteration in log.iterations:
        prompts = [piece for piece in iteration.batch.pieces if not piece.decode]
        assert sum(piece.tokens for piece in prompts) <= largest
        for piece in prompts:
            for layer in range(*(iteration.batch.layers or (0, 0))):
                passed[piece.job][layer] += piece.tokens
    assert passed == [[each["tokens"]] * 4 for each in rows]
    assert [job.produced for job in log.jobs] == [each["output_tokens"] for each in rows]
    # A new cohort starts at layer 0 only when the last one has left.
    groups = [iteration for iteration in log.iterations if iteration.batch.layers is not None]
    for before, after in pairwise(groups):
        low, high = (each.batch.layers or (0, 0) for each in (after, before))
        assert low[0] == high[1] or (high[1] == 4 and low[0] == 0 and after.launch_ps >= before.ends_ps[-1])
    served = setting.judged(log)
    assert not isinstance(served, str), served
    assert served.error_s == 0
