"""Trace files: the public schema to the byte, back through the protobuf library, and sound for ASTRA-sim."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx
import pytest
from google.protobuf.proto import parse_length_prefixed, serialize_length_prefixed

from solver.export import export_result
from solver.export.chakra.schema import messages
from solver.export.source import Source, replayed
from solver.result import Result
from tests.builders import small_instance, small_plan
from tests.solver.export.astra import COMP, MEM_LOAD, MEM_STORE, RECV, SEND, run_traces
from tests.solver.export.results import result_of, small_result, spilling_result
from tests.solver.export.wire import WireNode, read_traces


def _exported(result: Result, folder: Path) -> tuple[Source, list[dict[str, Any]], list[WireNode]]:
    export_result(result, "chakra", folder)
    return replayed(result), *read_traces(folder)


def test_a_node_is_what_the_public_schema_says_byte_by_byte() -> None:
    minus_one = messages().attribute(name="n", int64_val=-1)
    node = messages().node(id=1, name="a", type=5, data_deps=[2, 300], duration_micros=7, attr=[minus_one])
    # Keys are field * 8 + wire type. id 1: 08 01; name 2: 12 01 'a'; type 3: 18 05; data_deps 5, packed: 2a 03, then
    # 02 and ac 02; duration_micros 7: 38 07; attr 10: 52 len, in it name 1: 0a 01 'n', int64_val 9: 48, -1 as ten bytes
    attribute = b"\x0a\x01n" + b"\x48" + b"\xff" * 9 + b"\x01"
    expected = b"\x08\x01" + b"\x12\x01a" + b"\x18\x05" + b"\x2a\x03\x02\xac\x02" + b"\x38\x07"
    assert node.SerializeToString(deterministic=True) == expected + b"\x52" + bytes([len(attribute)]) + attribute
    metadata = messages().metadata(version="0.0.4", attr=[messages().attribute(name="n", bool_val=True)])
    # version 1: 0a 05; attr 2: 12 06, in it name and bool_val 27: key 27 * 8 = 216 = d8 01.
    assert metadata.SerializeToString() == b"\x0a\x050.0.4" + b"\x12\x06" + b"\x0a\x01n" + b"\xd8\x01\x01"


@pytest.mark.parametrize(
    ("name", "number", "value"),
    [
        ("double_val", 3, 1.0),
        ("float_val", 5, 1.0),
        ("int32_val", 7, 1),
        ("int64_val", 9, 1),
        ("uint32_val", 11, 1),
        ("uint64_val", 13, 1),
        ("sint32_val", 15, 1),
        ("sint64_val", 17, 1),
        ("fixed32_val", 19, 1),
        ("fixed64_val", 21, 1),
        ("sfixed32_val", 23, 1),
        ("sfixed64_val", 25, 1),
        ("bool_val", 27, True),
        ("string_val", 29, "x"),
        ("bytes_val", 31, b"x"),
    ],
)
def test_attributes_have_the_public_numbers(name: str, number: int, value: object) -> None:
    attribute = messages().attribute(**{name: value})
    fields = {field.name: field for field in attribute.DESCRIPTOR.fields}
    assert fields[name].number == number
    listed = fields[name.replace("_val", "_list")]
    assert listed.number == number + 1
    assert listed.message_type.fields_by_name["values"].type == fields[name].type
    assert attribute.WhichOneof("value") == name
    assert len(fields) == 2 + 2 * 15


def test_files_go_through_the_protobuf_library_and_back(tmp_path: Path) -> None:
    _, metadata, nodes = _exported(spilling_result(), tmp_path / "traces")
    seen = iter(nodes)
    for npu in range(4):
        data = (tmp_path / "traces" / f"plan.{npu}.et").read_bytes()
        source, again = io.BytesIO(data), io.BytesIO()
        head = parse_length_prefixed(messages().metadata, source)
        assert head.version == metadata[npu]["version"] == "0.0.4"
        serialize_length_prefixed(head, again)
        while (node := parse_length_prefixed(messages().node, source)) is not None:
            serialize_length_prefixed(node, again)
            witness = next(seen)
            assert (node.id, node.name, node.type, node.duration_micros, tuple(node.data_deps)) == (
                witness.id,
                witness.name,
                witness.type,
                witness.duration_us,
                witness.data_deps,
            )
            values = {attr.name: getattr(attr, attr.WhichOneof("value")) for attr in node.attr}
            assert values == {name: value for name, (_, value) in witness.attributes.items()}
        assert again.getvalue() == data
    assert next(seen, None) is None


@pytest.mark.parametrize("overlap", [True, False])
def test_traces_are_sound(tmp_path: Path, overlap: bool) -> None:
    result = spilling_result(pipeline__overlap=overlap, pipeline__max_in_flight=5)
    source, _, nodes = _exported(result, tmp_path / "traces")
    program, events = source.program, source.events
    at = {node.id: node for node in nodes}
    assert len(at) == len(nodes)
    sends = {node.message: node for node in nodes if node.type == SEND}
    receipts = {node.message: node for node in nodes if node.type == RECV}
    kinds = Counter(node.type for node in nodes)
    assert sends.keys() == receipts.keys()
    assert len(sends) == kinds[SEND] == kinds[RECV]
    assert len({tag for tag, *_ in sends}) == len(sends)
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    for node in nodes:
        assert all(other < node.id and at[other].npu == node.npu for other in node.data_deps)
        graph.add_edges_from((other, node.id) for other in node.data_deps)
        assert node.attributes["is_cpu_op"] == ("bool", False)
    for message, send in sends.items():
        assert (send.npu, receipts[message].npu) == message[1:3]
        graph.add_edge(send.id, receipts[message].id)
    assert networkx.is_directed_acyclic_graph(graph)
    # Everything that moved is there, in whole bytes: 96 activations, 448 transfers between dies, 224 to and from hosts.
    sizes = Counter(size for *_, size in sends)
    control = sizes.pop(1)
    assert control == 224 + 32 - 5, "a request for each fetch between dies, a free place for all but the first 5 chunks"
    on_mesh = (events.transfers[:, 1] >= 0) & (events.transfers[:, 2] >= 0)
    moved = Counter((events.transfers[on_mesh, 4] // program.units_per_byte).tolist())
    assert sizes == moved
    assert sum(moved.values()) == 96 + 448
    assert (kinds[MEM_STORE], kinds[MEM_LOAD]) == (112, 112)
    # Each die computes its tasks in the order of its program.
    tasks = [node for node in nodes if node.type == COMP]
    assert len(tasks) == program.tasks
    by_npu: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for node in tasks:
        by_npu[node.npu].append(tuple(node.value(name) for name in ("wave", "stage", "chunk")))
    for die, (row, column) in enumerate(program.network.dies.tolist()):
        order = program.die_tasks[program.die_ptr[die] : program.die_ptr[die + 1]]
        columns = (program.wave[order].tolist(), program.stage[order].tolist(), program.chunk[order].tolist())
        assert by_npu[row * 2 + column] == list(zip(*columns, strict=True))
        ids = [node.id for node in tasks if node.npu == row * 2 + column]
        assert all(networkx.has_path(graph, one, other) for one, other in pairwise(ids))
    assert len(run_traces(nodes)) == len(nodes), "nothing waits for ever"


def test_attributes_have_the_types_in_which_they_are_read(tmp_path: Path) -> None:
    _, _, nodes = _exported(spilling_result(), tmp_path / "traces")
    expected = {
        COMP: {"wave": "int32", "stage": "int32", "chunk": "int32", "exact_ps": "int64"},
        SEND: {"comm_size": "int64", "comm_src": "int32", "comm_dst": "int32", "comm_tag": "int32"},
        MEM_LOAD: {"tensor_size": "uint64"},
    }
    expected |= {RECV: expected[SEND], MEM_STORE: expected[MEM_LOAD]}
    for node in nodes:
        kinds = {name: kind for name, (kind, _) in node.attributes.items()}
        assert kinds == {"is_cpu_op": "bool", **expected[node.type]}


@pytest.mark.parametrize(("rows", "columns"), [(2, 3), (3, 2)])
def test_every_die_of_the_mesh_has_a_file_numbered_row_by_row(tmp_path: Path, rows: int, columns: int) -> None:
    # Stages go around the upper left square; a dead die and one that is not used have files without nodes.
    instance = small_instance(
        hardware__rows=rows, hardware__columns=columns, hardware__disabled_dies=[[rows - 1, columns - 1]]
    )
    result = result_of(instance, small_plan(instance))
    _, metadata, nodes = _exported(result, tmp_path / "traces")
    assert len(list((tmp_path / "traces").iterdir())) == rows * columns
    assert [(head["row"], head["column"]) for head in metadata] == [(r, c) for r in range(rows) for c in range(columns)]
    stage_at = {(0, 0): "0", (0, 1): "1", (1, 1): "2", (1, 0): "3"}
    assert [head["stages"] for head in metadata] == [stage_at.get((h["row"], h["column"]), "") for h in metadata]
    npu_of_stage = {node.value("stage"): node.npu for node in nodes if node.type == COMP}
    assert npu_of_stage == {0: 0, 1: 1, 2: columns + 1, 3: columns}
    assert {node.npu for node in nodes} == set(npu_of_stage.values())
    assert all(head["fingerprint"] == result.fingerprint for head in metadata)


def test_rounding_is_stated(tmp_path: Path) -> None:
    source, metadata, nodes = _exported(small_result(), tmp_path / "traces")
    off_us = [0.0] * 4
    for node in nodes:
        if node.type == COMP:
            exact_us = node.value("exact_ps") / 1e6
            assert abs(node.duration_us - exact_us) <= 0.5
            off_us[node.npu] += node.duration_us - exact_us
    assert [head["duration_rounding_error_us"] for head in metadata] == pytest.approx(off_us)
    assert any(abs(error) > 0.01 for error in off_us)
    assert {head["duration_rounding"] for head in metadata} == {"to the nearest microsecond, halves up"}
    total_ps = sum(node.value("exact_ps") for node in nodes if node.type == COMP)
    assert total_ps == source.program.duration_ps.sum()


@pytest.mark.parametrize("schedule", ["vpp", "vpp-async", "vpp-packed"])
def test_the_two_stages_of_a_die_share_its_file(tmp_path: Path, schedule: str) -> None:
    instance = small_instance(pipeline__stages=2)
    there_and_back = [[0, 0], [0, 1], [0, 1], [0, 0]]
    plan = small_plan(instance, placement=there_and_back, chunks={"2048": [512] * 4}, schedule=schedule)
    _, metadata, nodes = _exported(result_of(instance, plan), tmp_path / "traces")
    assert [head["stages"] for head in metadata] == ["0,3", "1,2", "", ""]
    # 16 chunks go from stage 0 to 1 and from 2 to 3 by message; from 1 to 2 they stay where they are.
    assert Counter(node.type for node in nodes) == {COMP: 16 * 4, SEND: 16 * 2, RECV: 16 * 2}
    tasks = [node for node in nodes if node.type == COMP]
    by_label = {tuple(node.value(name) for name in ("wave", "stage", "chunk")): node for node in tasks}
    for (wave, stage, chunk), node in by_label.items():
        if stage == 2:
            assert by_label[wave, 1, chunk].id in node.data_deps
    assert len(run_traces(nodes)) == len(nodes), "nothing waits for ever"
