"""The replay judges: options of the network, links that stages share, and time that is up."""

from __future__ import annotations

from typing import Any

import pytest

from instances.hardware import Hardware, Host
from instances.instance import Instance
from solver.api import solve
from solver.limits import Limits
from solver.serving.memory import Memory
from solver.serving.sarathi import Sarathi
from solver.serving.served import Served
from solver.serving.setting import Setting, setting_of
from solver.serving.timing import IterationCost
from tests.searches import make_search
from tests.solver.serving.building import FITTED, row, traced

ROWS = [row(150 + 70 * number, 0.0002 * number, output_tokens=5) for number in range(5)]


@pytest.mark.parametrize(
    "changes",
    [
        {"pipeline__integer_ns": True},
        {"pipeline__switching": "store_and_forward"},
        {"pipeline__routing": "yx"},
        {"pipeline__one_send_per_die": True},
        {"hardware__topology": "torus"},
        {"hardware__topology": "switch"},
        {"hardware__link_bytes_per_s": "50 MB/s"},
        {"pipeline__max_in_flight": 2},
        {"hardware__disabled_links": [[[0, 0], [0, 1]]]},
    ],
)
@pytest.mark.parametrize("method", ["sarathi", "layered", "gllm", "wavepp", "kv-tier"])
def test_the_scheduler_counts_with_the_times_of_the_replay(method: str, changes: dict[str, Any]) -> None:
    host = {"host_bytes": "1 TB", "host_bytes_per_s": "64 GB/s"}
    result = solve(traced(*ROWS, stages=4, hardware__host=host, **changes), method, limits=Limits(time_s=30))
    assert result.metrics is not None, result.reason
    assert result.details["prediction_error_s"] == 0


@pytest.mark.parametrize("method", ["sarathi", "kv-tier", "wavepp"])
@pytest.mark.parametrize("costs", [{"kind": "roofline"}, {**FITTED, "pair_s": 1e-3}])
def test_one_prompt_in_equal_chunks_takes_what_the_plan_takes(method: str, costs: dict[str, Any]) -> None:
    instance = traced(row(2048, output_tokens=1), stages=4, costs=costs, pipeline__max_in_flight=4)
    plan = solve(instance, "cpp", chunks=8, limits=Limits(time_s=30))
    knobs: dict[str, dict[str, object]] = {
        "sarathi": {"budget": 256, "chunks": "overlapped"},
        "kv-tier": {"chunk": 256},
        "wavepp": {"largest": 256, "waves": "static", "walk_us": 0, "hop_us": 0, "block_us": 0},
    }
    result = solve(instance.model_copy(update={"hardware": hosted(instance)}), method, knobs=knobs[method])
    assert result.metrics is not None
    assert plan.metrics is not None
    assert result.objective.value == plan.objective.value
    assert result.metrics.link_bytes == plan.metrics.link_bytes
    assert result.metrics.bubble == plan.metrics.bubble


def hosted(instance: Instance) -> Hardware:
    """The instance's hardware with a host."""
    return instance.hardware.model_copy(update={"host": Host(host_bytes=1e12, host_bytes_per_s=64e9)})


def test_where_stages_share_a_link_the_replay_has_the_last_word() -> None:
    # Stages on columns 0, 2, 1, 3 of one row: the first hop and the third take the link from 1 to 2.
    instance = traced(*ROWS, stages=4, hardware__rows=1, hardware__columns=4, hardware__link_bytes_per_s="20 MB/s")
    search = make_search(instance, "sarathi")
    near = setting_of(search, 64)
    places = ((0, 0), (0, 2), (0, 1), (0, 3))
    apart = Setting(instance, near.layers, places, IterationCost(instance, near.layers, places), 64, lambda: False)
    found = []
    for setting in (near, apart):
        scheduler = Sarathi(Memory(setting.cost, setting.free_bytes), 64, 8, overlapped=True)
        found.append(setting.judged(setting.run(scheduler, setting.jobs(1))))
    assert isinstance(found[0], Served)
    assert isinstance(found[1], Served)
    assert found[0].error_s == 0
    # The scheduler reserves the link iteration by iteration, the replay as transfers are requested; the links are slow.
    assert 0 < found[1].error_s < 0.2 * found[1].metrics.makespan_s
    assert found[1].value > found[0].value


def test_time_that_is_up_is_said() -> None:
    result = solve(traced(*ROWS), "sarathi", limits=Limits(time_s=1e-9))
    assert (result.status, result.stop_reason) == ("unknown", "time_limit")
    assert result.reason == "time is up after 0 iterations"
