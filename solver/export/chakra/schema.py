"""Messages of the public Chakra schema, described to the protobuf library when they are first needed.

Facts of the schema (names, field numbers and types) are those of ``schema/protobuf/et_def.proto`` in mlcommons/chakra,
commit 6dc63e147b9d, restated here; astra-sim/chakra, commit b8d2e8b988b3, which ASTRA-sim builds with, has the same.
What execution traces of a plan have no use for (collectives, storage operations, tensors) is left out: a reader of the
whole schema sees those fields as not set.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "ChakraProtoMsg"
SCHEMA_VERSION = "0.0.4"
"""What traces of this schema carry as ``GlobalMetadata.version``."""

# The value of an attribute is one of these, or a list of them: fields 3 and 4, 5 and 6, and so on.
_VALUES = (
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
)
_NODE_TYPES = (
    "INVALID_NODE",
    "METADATA_NODE",
    "MEM_LOAD_NODE",
    "MEM_STORE_NODE",
    "COMP_NODE",
    "COMM_SEND_NODE",
    "COMM_RECV_NODE",
    "COMM_COLL_NODE",
)


class Messages(NamedTuple):
    """Classes of the messages that a trace file consists of."""

    attribute: Any
    metadata: Any
    node: Any


@cache
def messages() -> Messages:
    """The classes; in a pool of their own, so that another package may describe the schema too."""
    pool = DescriptorPool()
    pool.Add(_file())
    names = ("AttributeProto", "GlobalMetadata", "Node")
    return Messages(*(GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in names))


def _file() -> Any:
    file = FileDescriptorProto(name="waferplan_chakra.proto", package=PACKAGE, syntax="proto3")
    types = file.enum_type.add(name="NodeType")
    for number, name in enumerate(_NODE_TYPES):
        types.value.add(name=name, number=number)
    _add_attribute(file)
    _add(file, "GlobalMetadata", ("version", 1, "string"), ("attr", 2, "AttributeProto*"))
    _add(file, "IOInfo", ("values", 1, "string"), ("shapes", 2, "string"), ("types", 3, "string"))
    _add(
        file,
        "Node",
        ("id", 1, "uint64"),
        ("name", 2, "string"),
        ("type", 3, "NodeType"),
        ("ctrl_deps", 4, "uint64*"),
        ("data_deps", 5, "uint64*"),
        ("start_time_micros", 6, "uint64"),
        ("duration_micros", 7, "uint64"),
        ("inputs", 8, "IOInfo"),
        ("outputs", 9, "IOInfo"),
        ("attr", 10, "AttributeProto*"),
    )
    return file


def _add_attribute(file: Any) -> None:
    """An attribute: its name, and one value of any of the types."""
    attribute = _add(file, "AttributeProto", ("name", 1, "string"), ("doc_string", 2, "string"))
    attribute.oneof_decl.add(name="value")
    for place, scalar in enumerate(_VALUES):
        list_name = f"{scalar.capitalize()}List"
        _add(file, list_name, ("values", 1, f"{scalar}*"))
        for name, number, type_name in (
            (f"{scalar}_val", 3 + 2 * place, scalar),
            (f"{scalar}_list", 4 + 2 * place, list_name),
        ):
            _add_field(attribute, name, number, type_name).oneof_index = 0


def _add(file: Any, name: str, *fields: tuple[str, int, str]) -> DescriptorProto:
    message = file.message_type.add(name=name)
    for field in fields:
        _add_field(message, *field)
    return message


def _add_field(message: Any, name: str, number: int, type_name: str) -> Any:
    """Add a field; a star after its type means that it repeats."""
    plain = type_name.removesuffix("*")
    label = FieldDescriptorProto.LABEL_OPTIONAL if plain == type_name else FieldDescriptorProto.LABEL_REPEATED
    field = message.field.add(name=name, number=number, label=label)
    if plain in _VALUES:
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{plain.upper()}")
    else:
        is_enum = plain == "NodeType"
        field.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{plain}"
    return field
