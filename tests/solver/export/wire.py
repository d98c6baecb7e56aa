"""Reads Chakra traces byte by byte, by the rules of protobuf's wire format: a witness apart from the writer's library.

Field numbers are those of the public schema (``et_def.proto`` of mlcommons/chakra).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARINT, EIGHT_BYTES, LENGTH = 0, 1, 2
# Values of an attribute: field number -> (name, how its number is kept).
_ATTRIBUTE_VALUES = {3: "double", 7: "int32", 9: "int64", 13: "uint64", 27: "bool", 29: "string"}


@dataclass(frozen=True)
class WireNode:
    """One node as it is in a file; attributes are (type, value) by name."""

    npu: int
    id: int
    name: str
    type: int
    data_deps: tuple[int, ...]
    duration_us: int
    attributes: dict[str, tuple[str, Any]]

    def value(self, name: str) -> Any:
        """Value of an attribute."""
        return self.attributes[name][1]

    @property
    def message(self) -> tuple[int, int, int, int]:
        """Tag, source, target and size of a message."""
        tag, source, target, size = (self.value(f"comm_{name}") for name in ("tag", "src", "dst", "size"))
        return tag, source, target, size


def read_traces(folder: Path) -> tuple[list[dict[str, Any]], list[WireNode]]:
    """Metadata of each file by NPU, and the nodes of all files, file by file."""
    paths = {int(path.name.split(".")[-2]): path for path in folder.iterdir()}
    assert sorted(paths) == list(range(len(paths)))
    metadata: list[dict[str, Any]] = []
    nodes: list[WireNode] = []
    for npu in sorted(paths):
        first, *others = _delimited(paths[npu].read_bytes())
        fields = _fields(first)
        attributes = {name: value for name, (_, value) in _attributes(fields[2]).items()}
        metadata.append({"version": fields[1][0].decode(), **attributes})
        nodes += [_node(npu, _fields(message)) for message in others]
    return metadata, nodes


def _node(npu: int, fields: dict[int, list[Any]]) -> WireNode:
    assert fields.keys() <= {1, 2, 3, 5, 7, 10}, "id, name, type, data_deps, duration_micros, attr; never ctrl_deps"
    # Whole numbers that repeat are packed into one field.
    return WireNode(
        npu=npu,
        id=fields.get(1, [0])[0],
        name=fields[2][0].decode(),
        type=fields[3][0],
        data_deps=tuple(_varints(fields.get(5, [b""])[0])),
        duration_us=fields.get(7, [0])[0],
        attributes=_attributes(fields[10]),
    )


def _attributes(messages: list[bytes]) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = {}
    for message in messages:
        fields = _fields(message)
        (name,), ((number, (value,)),) = fields.pop(1), fields.items()
        kind = _ATTRIBUTE_VALUES[number]
        if kind == "double":
            value = struct.unpack("<d", value)[0]
        elif kind == "string":
            value = value.decode()
        elif kind == "bool":
            value = bool(value)
        assert name.decode() not in found
        found[name.decode()] = kind, value
    return found


def _delimited(data: bytes) -> list[bytes]:
    """Messages, each after its length."""
    messages, at = [], 0
    while at < len(data):
        length, at = _varint(data, at)
        assert at + length <= len(data)
        messages.append(data[at : at + length])
        at += length
    return messages


def _fields(message: bytes) -> dict[int, list[Any]]:
    """Values of each field, in order: whole numbers and bytes."""
    fields: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == VARINT:
            value, at = _varint(message, at)
            fields.setdefault(key >> 3, []).append(value)
            continue
        length = 8
        if key & 7 == LENGTH:
            length, at = _varint(message, at)
        else:
            assert key & 7 == EIGHT_BYTES
        fields.setdefault(key >> 3, []).append(message[at : at + length])
        at += length
    return fields


def _varints(data: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(data):
        number, at = _varint(data, at)
        numbers.append(number)
    return numbers


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first, until a byte below 128."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at
