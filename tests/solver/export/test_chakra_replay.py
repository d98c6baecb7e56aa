"""Traces run by an independent list scheduler take as long as the engine says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.export.chakra.files import write_traces
from solver.simulation.engine import Run
from solver.simulation.program import Program
from tests.solver.export.astra import run_traces
from tests.solver.export.wire import WireNode, read_traces
from tests.solver.simulation.documents import line, run_document, spill

US = 1e-6
AT_ONCE = 1e21  # bytes/s: a transfer takes less than half a picosecond


def _traces(document: dict[str, Any], folder: Path) -> tuple[Program, Run, list[WireNode]]:
    program, outcome = run_document(document, traced=True)
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    write_traces(program, outcome, (1, program.dies), {}, folder)
    return program, outcome, read_traces(folder)[1]


def _assert_same_times(program: Program, outcome: Run, nodes: list[WireNode], **network: Any) -> None:
    """Computations start and end at the same whole microsecond."""
    assert not outcome.deadlock
    times = run_traces(nodes, **network)
    assert len(times) == len(nodes), "nothing waits for ever"
    starts_us = (outcome.compute_start_ps / 1e6).tolist()
    durations_us = (program.duration_ps / 1e6).tolist()
    labels = zip(program.wave.tolist(), program.stage.tolist(), program.chunk.tolist(), strict=True)
    expected = {
        label: (start_us, start_us + duration_us)
        for label, start_us, duration_us in zip(labels, starts_us, durations_us, strict=True)
    }
    measured = {
        tuple(node.value(name) for name in ("wave", "stage", "chunk")): times[node.id]
        for node in nodes
        if "chunk" in node.attributes
    }
    assert measured == expected


def test_four_stages_and_four_chunks(tmp_path: Path) -> None:
    document = line([[10 * US, 20 * US, 30 * US, 40 * US]] * 4)
    program, outcome, nodes = _traces(document, tmp_path)
    _assert_same_times(program, outcome, nodes)
    # 10 + 20 + 30 + 40 = 100, and the longest chunk, 40, on three more stages: 220, as ASTRA-sim says.
    assert max(end for _, end in run_traces(nodes).values()) == 220


@st.composite
def pipelines(draw: st.DrawFn) -> dict[str, Any]:
    """Lines of dies, compute in whole microseconds, unlimited memory."""
    stages, chunks = draw(st.integers(2, 4)), draw(st.integers(1, 5))
    waves = draw(st.integers(1, 3))
    microseconds = st.integers(1, 9).map(lambda us: us * US)
    document = line([[draw(microseconds) for _ in range(chunks)] for _ in range(stages)])
    document["arrivals_s"] = sorted(draw(st.integers(0, 30)) * US for _ in range(waves))
    document["overlap"] = draw(st.booleans())
    document["max_in_flight"] = draw(st.none() | st.integers(1, stages + 1))
    return document


@given(document=pipelines(), spilled=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4))))
def test_pipelines_whose_transfers_take_no_time(
    document: dict[str, Any], spilled: set[tuple[int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    stages, chunks = len(document["compute_s"]), len(document["compute_s"][0])
    document["link_bytes_per_s"] = AT_ONCE
    document["host"] = {"host_bytes": 1000, "host_bytes_per_s": AT_ONCE}
    document["kv_bytes"] = [[4] * chunks] * stages
    # Creditor 4 stands for the host.
    document["spill"] = [
        spill(stage, chunk, "host" if creditor == 4 else creditor, 1)
        for stage, chunk, creditor in sorted(spilled)
        if stage < stages and chunk < chunks - 1 and creditor != stage and (creditor < stages or creditor == 4)
    ]
    _assert_same_times(*_traces(document, tmp_path_factory.getbasetemp() / "at once"))


@given(document=pipelines(), data=st.data())
def test_pipelines_with_activations_on_their_way(
    document: dict[str, Any], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # One byte a microsecond, 2 us of latency; neighbours have a link of their own each way.
    document["link_bytes_per_s"] = 1e6
    document["hop_latency_s"] = 2 * US
    document["max_in_flight"] = None
    document["activation_bytes"] = [data.draw(st.integers(1, 6)) for _ in document["activation_bytes"]]
    traces = _traces(document, tmp_path_factory.getbasetemp() / "on their way")
    _assert_same_times(*traces, message_us=lambda size_bytes: size_bytes, latency_us=2)
