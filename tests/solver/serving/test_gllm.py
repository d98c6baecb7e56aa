"""gLLM's throttle: its formulas on a grid, and a system that never stands still."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.api import solve
from solver.limits import Limits
from solver.serving.gllm import Throttle, Throttled
from solver.serving.memory import Memory
from solver.serving.setting import setting_of
from tests.searches import make_search
from tests.solver.serving.building import FAST_LINKS, FITTED, row, traced
from tests.solver.serving.test_sarathi import kv_room

DEFAULTS = Throttle(8192, 32, 8, 0.05, 512, 4)


@pytest.mark.parametrize(
    ("waiting", "free", "tokens"),
    [
        # All memory free: 8192 by memory; 80000/8 by what waits.
        ([40_000, 40_000], 1.0, 8192),
        ([4000, 4000], 1.0, 1000),
        # Never below 32 by what waits.
        ([10, 10], 1.0, 32),
        # One prompt alone is not throttled by waiting.
        ([10], 1.0, 8192),
        # (0.24 - 0.05)/0.95 = 0.2 of 8192.
        ([40_000, 40_000], 0.24, 1638),
        ([40_000], 0.05, 0),
        ([40_000], 0.01, 0),
    ],
)
def test_prompts(waiting: list[int], free: float, tokens: int) -> None:
    assert DEFAULTS.prefill_tokens(waiting, free) == tokens


def test_prompts_on_a_grid() -> None:
    grid = product(
        (512, 2048, 8192), (1, 32), (1, 4, 8), (0, 5, 20), ([5], [900, 100], [30_000, 1, 7]), range(0, 101, 7)
    )
    for most, least, spread, threshold, waiting, free in grid:
        found = Throttle(most, least, spread, threshold / 100, 512, 4).prefill_tokens(waiting, free / 100)
        exact = max(Fraction(0), Fraction(free - threshold, 100 - threshold)) * most
        by_waiting = max(sum(waiting) // spread, least) if len(waiting) > 1 else most
        # Half a token may round either way in doubles.
        assert found in {min(by_waiting, int(exact + shift)) for shift in (Fraction(499, 1000), Fraction(501, 1000))}


def test_one_stage_knows_only_the_largest() -> None:
    assert Throttle(8192, 32, 8, 0.05, 512, 1).prefill_tokens([10, 10], 0.0) == 8192


def test_decodes_on_a_grid() -> None:
    for stages, running in product((1, 2, 4, 8), range(40)):
        turns = [Throttle(8192, 32, 8, 0.05, 512, stages).decodes(running, turn) for turn in range(stages)]
        if running >= stages:
            # Over N turns every request has one: floor((n + j)/N) for j = 0..N-1 adds up to n.
            assert sum(turns) == running
            assert max(turns) - min(turns) <= 1
        else:
            assert turns == [min(1, running)] * stages
    assert Throttle(8192, 32, 8, 0.05, 5, 4).decodes(100, 0) == 5


def test_decodes_are_spread_over_the_iterations_inside() -> None:
    rows = [row(4, output_tokens=30)] * 8
    result = solve(
        traced(*rows, stages=4, **FAST_LINKS, costs=FITTED), "gllm", knobs={"maxp": 64}, limits=Limits(time_s=30)
    )
    assert result.metrics is not None
    # An iteration of two decodes takes (1 + 0.5)/4 s on each of 4 stages; so a request waits 1.5 s for the next token.
    assert result.metrics.p50_tbt_s == pytest.approx(1.5)


requests = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 8), st.integers(0, 40)).map(
        lambda each: row(each[0], each[2] / 4, output_tokens=each[1])
    ),
    min_size=1,
    max_size=6,
)


@given(rows=requests, stages=st.integers(1, 4), room=st.integers(68, 160), threshold=st.sampled_from([0.05, 0.5, 0.9]))
def test_every_token_is_served(rows: list[dict[str, Any]], stages: int, room: int, threshold: float) -> None:
    instance = traced(*rows, stages=stages, hardware__die__hbm_bytes=kv_room(room), costs=FITTED)
    setting = setting_of(make_search(instance, "gllm"), 16)
    throttle = Throttle(8, 2, 4, threshold, 4, stages)
    log = setting.run(Throttled(Memory(setting.cost, setting.free_bytes), throttle, 8), setting.jobs(1))
    assert log.stuck is None
    assert [job.produced for job in log.jobs] == [each["output_tokens"] for each in rows]
    assert all(iteration.batch.tokens <= 8 + 4 for iteration in log.iterations)
    served = setting.judged(log)
    assert not isinstance(served, str), served
    assert served.error_s == 0
