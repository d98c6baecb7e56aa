"""Workload: two forms, traces from files, and how requests gather in waves."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.errors import InputError
from instances.instance import Instance
from instances.workload import MAX_REQUESTS, Request, Wave, Workload, form_waves, read_trace
from tests.builders import small_document, small_instance


def _requests(*rows: tuple[float, int, int]) -> list[Request]:
    return [Request(arrival_s=arrival, tokens=tokens, cached_tokens=cached) for arrival, tokens, cached in rows]


def test_equal_requests_arrive_at_time_0() -> None:
    workload = Workload.parse({"requests": 3, "tokens": "2k", "cached_tokens": 512})
    assert workload.all_requests() == _requests(*[(0.0, 2048, 512)] * 3)
    assert workload.shapes == [(2048, 512)]
    assert workload.uncached_counts == [1536]


def test_a_trace_keeps_its_order() -> None:
    rows = [{"arrival_s": "2 ms", "tokens": 10}, {"tokens": 30, "cached_tokens": 20}, {"arrival_s": 1, "tokens": 8}]
    workload = Workload.parse({"trace": rows})
    assert workload.all_requests() == _requests((0.002, 10, 0), (0, 30, 20), (1, 8, 0))
    assert workload.shapes == [(8, 0), (10, 0), (30, 20)]
    # 10 - 0 and 30 - 20 tokens share a chunk list, not a spill list.
    assert workload.uncached_counts == [8, 10]


def test_keys_for_other_policies_are_kept() -> None:
    row = {"tokens": 8, "output_tokens": 2, "prefix_id": 7, "prefix_tokens": 4}
    (request,) = Workload.parse({"trace": [row]}).all_requests()
    assert (request.output_tokens, request.prefix_id, request.prefix_tokens) == (2, 7, 4)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "expected requests and tokens, or a trace"),
        ({"requests": 2}, "expected requests and tokens, or a trace"),
        ({"tokens": 2}, "expected requests and tokens, or a trace"),
        ({"requests": 2, "tokens": 4, "trace": [{"tokens": 4}]}, "expected either trace, or requests and tokens, not"),
        ({"requests": 2, "trace": [{"tokens": 4}]}, "expected either trace, or requests and tokens, not both"),
        ({"tokens": 2, "trace": [{"tokens": 4}]}, "expected either trace, or requests and tokens, not both"),
        ({"cached_tokens": 2, "trace": [{"tokens": 4}]}, "expected either trace, or requests and tokens, not both"),
        ({"trace": []}, "expected a trace of at least one request"),
        ({"trace": {"tokens": 4}}, 'trace: {"tokens": 4} is not allowed; expected a list'),
        ({"trace": [4]}, "trace.0: 4 is not allowed; expected an object"),
        ({"trace": [{"tokens": 4}, {"arrival_s": 1}]}, "trace.1.tokens: nothing is given"),
        ({"trace": [{"tokens": 4, "cached_tokens": 4}]}, "trace.0.cached_tokens: 4 is not allowed; expected fewer t"),
        ({"trace": [{"tokens": 0}]}, "trace.0.tokens: 0 is not allowed; expected a number of at least 1"),
        ({"trace": [{"tokens": 4, "arrival_s": -1}]}, "trace.0.arrival_s: -1 is not allowed"),
        # Seconds since 1970 would overflow the replay's clock.
        ({"trace": [{"tokens": 4, "arrival_s": 1.7e9}]}, "trace.0.arrival_s: 1700000000.0 is not allowed; expected a"),
        ({"trace": [{"tokens": 4, "prefix_id": True}]}, "trace.0.prefix_id: true is not allowed; expected a text or "),
        ({"trace": [{"tokens": 4, "length": 1}]}, "trace.0.length: 1 is not allowed; expected one of the keys arr"),
        ({"requests": 0, "tokens": 4}, "requests: 0 is not allowed; expected a number of at least 1"),
        ({"requests": 1.0, "tokens": 4}, "requests: 1.0 is not allowed; expected a whole number"),
        ({"requests": 10**12, "tokens": 4}, f"expected a number of at most {MAX_REQUESTS}"),
        ({"requests": 1, "tokens": 0}, "tokens: 0 is not allowed; expected a number of at least 1"),
        ({"requests": 1, "tokens": 4, "cached_tokens": 4}, "cached_tokens: 4 is not allowed; expected fewer than"),
    ],
)
def test_what_is_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Workload.parse(data)


def test_all_but_one_token_may_be_cached() -> None:
    assert Workload.parse({"requests": 1, "tokens": 4, "cached_tokens": 3}).uncached_counts == [1]


def test_waves_of_equal_requests_are_full_but_the_last() -> None:
    waves = form_waves(_requests(*[(0, 8, 0)] * 5), 2)
    assert waves == [
        Wave((8, 0), (0, 1), (0, 0)),
        Wave((8, 0), (2, 3), (0, 0)),
        Wave((8, 0), (4,), (0,)),
    ]
    assert [wave.size for wave in waves] == [2, 2, 1]


def test_a_change_of_shape_starts_a_wave() -> None:
    # Uncached tokens are equal throughout; the cached prefix differs.
    waves = form_waves(_requests((0, 8, 0), (0, 12, 4), (0, 12, 4), (0, 8, 0), (0, 8, 0)), 3)
    assert [(wave.shape, wave.requests) for wave in waves] == [((8, 0), (0,)), ((12, 4), (1, 2)), ((8, 0), (3, 4))]


def test_waves_gather_by_arrival_and_ties_by_index() -> None:
    waves = form_waves(_requests((3, 8, 0), (1, 8, 0), (3, 8, 0), (0, 8, 0), (1, 8, 0)), 2)
    # Order of arrival: 3 (at 0), 1 and 4 (at 1), 0 and 2 (at 3).
    assert [wave.requests for wave in waves] == [(3, 1), (4, 0), (2,)]
    assert [wave.arrivals_s for wave in waves] == [(0, 1), (1, 3), (3,)]
    # A wave is ready with its latest request.
    assert [wave.ready_s for wave in waves] == [1, 3, 3]


def test_one_request_a_wave() -> None:
    assert [wave.requests for wave in form_waves(_requests((1, 8, 0), (0, 8, 0)), 1)] == [(1,), (0,)]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(5, 6), st.integers(0, 1)), min_size=1, max_size=12),
    st.integers(1, 4),
)
def test_waves_are_maximal_runs_of_one_shape(rows: list[tuple[int, int, int]], batch: int) -> None:
    requests = _requests(*rows)
    waves = form_waves(requests, batch)
    order = [index for wave in waves for index in wave.requests]
    assert order == sorted(range(len(rows)), key=lambda index: (rows[index][0], index))
    for wave in waves:
        assert 1 <= wave.size <= batch
        assert {requests[index].shape for index in wave.requests} == {wave.shape}
        assert wave.arrivals_s == tuple(requests[index].arrival_s for index in wave.requests)
    for wave, following in pairwise(waves):
        assert wave.size == batch or wave.shape != following.shape


TRACE = '{"arrival_s": 0, "tokens": 1024}\n\n{"arrival_s": "1 s", "tokens": 2048, "cached_tokens": 1024}\r\n'


def test_trace_files_are_read_beside_the_instance(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_bytes(TRACE.encode())
    instance = Instance.read(small_document(workload={"trace": "trace.jsonl"}), base_dir=tmp_path)
    assert instance.workload.all_requests() == _requests((0, 1024, 0), (1, 2048, 1024))
    # The rows are part of the instance, the path is not.
    rows = [{"tokens": 1024}, {"arrival_s": 1, "tokens": 2048, "cached_tokens": 1024}]
    assert instance == small_instance(workload={"trace": rows})


def test_only_newlines_end_a_row_of_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('\ufeff{"tokens": 1, "prefix_id": "a\u2028b\x85c"}', encoding="utf-8")
    assert read_trace(path, "workload.trace") == [{"tokens": 1, "prefix_id": "a\u2028b\x85c"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "workload.trace: .* expected a file with at least one request"),
        ("\n \n", "workload.trace: .* expected a file with at least one request"),
        ('{"tokens": 1}\n{"tokens": 2', "trace.jsonl: line 2: .* expected complete, valid JSON"),
        ('{"tokens": 1}{"tokens": 2}', "trace.jsonl: line 1: .* expected complete, valid JSON"),
        ('\n{"tokens": NaN}', "trace.jsonl: line 2: tokens: 'NaN' is not allowed; expected JSON without NaN"),
        ('{"tokens": 1, "tokens": 2}', "trace.jsonl: line 1: tokens: 'tokens' is not allowed; expected each key once"),
        ("[" * 100_000, "trace.jsonl: line 1: .* nested less deeply"),
        ('[{"tokens": 1}]', r"inst.json: workload.trace.0: \[.* is not allowed; expected an object"),
        ('{"tokens": 1}\n{"token": 1}', "inst.json: workload.trace.1.tokens: nothing is given"),
        ('{"tokens": 0}', "inst.json: workload.trace.0.tokens: 0 is not allowed"),
    ],
)
def test_bad_trace_files(tmp_path: Path, text: str, message: str) -> None:
    trace, path = tmp_path / "trace.jsonl", tmp_path / "inst.json"
    trace.write_text(text, encoding="utf-8")
    path.write_text(_with_trace("trace.jsonl"), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        Instance.load(path)


def test_missing_trace_files(tmp_path: Path) -> None:
    path = tmp_path / "inst.json"
    path.write_text(_with_trace("none.jsonl"), encoding="utf-8")
    with pytest.raises(InputError, match=r"inst.json: workload.trace: '.*none.jsonl' .* existing file"):
        Instance.load(path)
    (tmp_path / "none.jsonl").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"workload.trace: .* readable UTF-8 file"):
        Instance.load(path)


def _with_trace(name: str) -> str:
    return json.dumps(small_document(workload={"trace": name}))


@given(
    st.lists(st.tuples(st.sampled_from((0.0, 0.25, 1.0)), st.sampled_from((5, 6)), st.integers(0, 1)), max_size=12),
    st.integers(1, 4),
)
def test_waves_are_gathered_one_request_after_the_other(rows: list[tuple[float, int, int]], batch: int) -> None:
    requests = [Request(arrival_s=arrival, tokens=tokens, cached_tokens=cached) for arrival, tokens, cached in rows]
    expected: list[list[int]] = []
    for index in sorted(range(len(rows)), key=lambda index: (rows[index][0], index)):
        if not expected or len(expected[-1]) == batch or rows[expected[-1][0]][1:] != rows[index][1:]:
            expected.append([])
        expected[-1].append(index)
    waves = form_waves(requests, batch)
    assert [list(wave.requests) for wave in waves] == expected
    assert [wave.shape for wave in waves] == [rows[indices[0]][1:] for indices in expected]
    assert [list(wave.arrivals_s) for wave in waves] == [[rows[index][0] for index in indices] for indices in expected]


def test_equal_requests_gather_in_order() -> None:
    workload = Workload(requests=7, tokens=5)
    assert [wave.requests for wave in form_waves(workload.all_requests(), 3)] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert (workload.count, workload.shapes, workload.uncached_counts) == (7, [(5, 0)], [5])
    assert workload.requests_of_shape == {(5, 0): 7}
    waves = workload.gathered(3)
    assert (waves.kinds, waves.waves_of_kind) == ((((5, 0), 3), ((5, 0), 1)), (2, 1))
    assert (waves.size.tolist(), waves.wave_of_request.tolist()) == ([3, 3, 1], [0, 0, 0, 1, 1, 1, 2])


def test_waves_in_arrays() -> None:
    rows = ((3, 8, 0), (1, 9, 4), (3, 8, 0), (0, 8, 0), (1, 9, 4))
    trace = [{"arrival_s": arrival, "tokens": tokens, "cached_tokens": cached} for arrival, tokens, cached in rows]
    waves = Workload.parse({"trace": trace}).gathered(2)
    assert waves.order.tolist() == [3, 1, 4, 0, 2]
    assert waves.arrival_s.tolist() == [0, 1, 1, 3, 3]
    assert [waves.kinds[kind] for kind in waves.kind] == [((8, 0), 1), ((9, 4), 2), ((8, 0), 2)]
    assert waves.ready_s.tolist() == [0, 1, 3]
