"""``waferplan schema``: JSON schemas of the published documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from instances import units
from instances.errors import InputError
from instances.instance import Instance
from instances.model import WidthChanges
from instances.plan import Plan
from solver.cli.errors import DONE
from solver.cli.terminal import show_json
from solver.result import Result

app = typer.Typer(add_completion=False)

_QUANTITY = {
    "type": "string",
    "pattern": r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*(\S.*)?$",
    "description": 'a number with a unit, such as "180 GB", "5 TB/s", "50 ns", "128k"',
}
_LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_WIDTHS = ("weight_bytes", "kv_bytes", "activation_bytes")


class _Published(GenerateJsonSchema):
    """Documents as they may be written: quantities with units, a discriminating ``kind`` that is always there."""

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Validators of ``instances.units`` that run before a type's own read text with a unit."""
        own = super().function_before_schema(schema)
        reads_units = schema["function"]["function"].__module__ == units.__name__
        return {"anyOf": [own, _QUANTITY]} if reads_units else own

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """Without the discriminator there is no telling which member is meant, default or not."""
        union = super().tagged_union_schema(schema)
        return {**union, "required": [schema["discriminator"]]}


def instance_schema() -> dict[str, Any]:
    """Schema of an instance file; reading one spells the model out and takes the rows of a trace in."""
    schema = _schema_of(Instance)
    definitions = schema["$defs"]
    widths = {name: definitions["Model"]["properties"][name] for name in _WIDTHS}
    definitions["WidthChanges"] = _standard(WidthChanges.model_json_schema(schema_generator=_Published))
    # Beside a reference a map changes the groups that it names; a description gives all of them.
    widths["weight_bytes"] = {
        "anyOf": [form for form in widths["weight_bytes"]["anyOf"] if "$ref" not in form]
        + [{"$ref": "#/$defs/WidthChanges"}]
    }
    for title, key, says in (
        ("CatalogueModel", "name", "A model of the catalogue: `waferplan models` lists the names."),
        ("HuggingFaceModel", "huggingface", "A config.json; the path is relative to the instance file."),
    ):
        definitions[title] = {
            "title": title,
            "description": says,
            "type": "object",
            "properties": {key: {"type": "string", "minLength": 1}, **widths},
            "required": [key],
            "additionalProperties": False,
        }
    definitions["HuggingFaceModel"]["properties"]["prediction_layers"] = {
        "type": "integer",
        "minimum": 0,
        "description": "extra layers for multi-token prediction to put behind the others; none by default",
    }
    references = [{"$ref": f"#/$defs/{title}"} for title in ("CatalogueModel", "HuggingFaceModel", "Model")]
    schema["properties"]["model"] = {"title": "Model", "anyOf": references}
    file = {"type": "string", "description": "a JSON-lines file; the path is relative to the instance file"}
    definitions["Workload"]["properties"]["trace"]["anyOf"].append(file)
    return schema


def plan_schema() -> dict[str, Any]:
    """Schema of a plan file."""
    return _schema_of(Plan)


def result_schema() -> dict[str, Any]:
    """Schema of a result file."""
    return _schema_of(Result)


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "instance": instance_schema,
    "plan": plan_schema,
    "result": result_schema,
}


@app.command("schema", epilog="Example: waferplan schema instance > instance.schema.json")
def schema_command(kind: Annotated[str, typer.Argument(metavar="KIND", help="instance, plan or result.")]) -> int:
    """Print the JSON schema of instance, plan or result."""
    if kind not in SCHEMAS:
        raise InputError("KIND", kind, f"one of {', '.join(SCHEMAS)}")
    show_json(SCHEMAS[kind]())
    return DONE


def _schema_of(kind: type[Instance] | type[Plan] | type[Result]) -> dict[str, Any]:
    schema: dict[str, Any] = _standard(kind.model_json_schema(schema_generator=_Published))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _standard(part: Any) -> Any:
    """Limits under the names of the standard: pydantic keeps its own where a validator runs before the limit."""
    if isinstance(part, list):
        return [_standard(entry) for entry in part]
    if isinstance(part, dict):
        return {_LIMITS.get(key, key): _standard(value) for key, value in part.items()}
    return part
