"""An instance: what is given (spec section 1), read from JSON and checked as a whole."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from instances.base import Document, SchemaVersion, read_json, read_text
from instances.catalogue import load_model
from instances.costs import CostSpec, RooflineSpec, StageCost, make_costs, resolve_costs
from instances.display import facts_of, html_table, mesh_html
from instances.errors import InputError
from instances.hardware import Hardware
from instances.huggingface import read_config
from instances.model import Model
from instances.pipeline import Pipeline, balanced_layers
from instances.workload import Workload, read_trace

Objective = Literal["mean_latency", "makespan", "p95_latency", "max_tokens"]
_BYTE_KEYS = ("weight_bytes", "kv_bytes", "activation_bytes")


class Instance(Document):
    """Hardware, model, workload, pipeline limits, cost model and objective.

    ``Instance.load`` reads the published JSON form, in which the model may be a catalogue name or a Hugging Face
    config; here the model is always spelled out.
    """

    schema_version: SchemaVersion = 1
    name: Annotated[str, Field(min_length=1)]
    source: str | None = None
    hardware: Hardware
    model: Model
    workload: Workload
    pipeline: Pipeline
    costs: CostSpec = RooflineSpec()
    objective: Objective = "mean_latency"

    def _repr_html_(self) -> str:
        """The instance in a notebook: what is given, and the mesh."""
        facts = facts_of(self.hardware, self.model, self.workload, self.pipeline, self.objective)
        return f"<p><b>{escape(self.name)}</b></p>{html_table((), facts)}{mesh_html(self.hardware, {})}"

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an instance file; relative paths in it are relative to it.

        Raises
        ------
        InputError
            With file, field, value and what is allowed.
        """
        file = str(path)
        try:
            return cls.read(read_json(path), base_dir=Path(path).parent, file=file)
        except InputError as error:
            raise error.in_file(file) from error

    @classmethod
    def read(cls, data: Any, *, base_dir: Path = Path(), file: str | None = None) -> Self:
        """Read the published JSON form from plain data."""
        if not isinstance(data, dict):
            raise InputError("", data, "a JSON object", file=file)
        resolved = dict(data)
        if "model" in resolved:
            resolved["model"] = _resolve_model(resolved["model"], base_dir)
        workload = resolved.get("workload")
        if isinstance(workload, dict) and isinstance(workload.get("trace"), str):
            rows = read_trace(base_dir / workload["trace"], "workload.trace")
            resolved["workload"] = {**workload, "trace": rows}
        if "costs" in resolved:
            resolved["costs"] = _resolve_costs(resolved["costs"], base_dir)
        return cls.parse(resolved, file=file)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        pipeline, layers, live = self.pipeline, len(self.model.layer_kinds), len(self.hardware.live_dies)
        if pipeline.stages > live:
            raise InputError("pipeline.stages", pipeline.stages, f"at most {live}, the number of enabled dies")
        if pipeline.stages > layers:
            raise InputError("pipeline.stages", pipeline.stages, f"at most {layers}, the number of layers")
        if isinstance(pipeline.layers, tuple) and sum(pipeline.layers) != layers:
            raise InputError(
                "pipeline.layers", list(pipeline.layers), f"numbers with the sum {layers}, the layers of the model"
            )
        for number, cut in enumerate(pipeline.forbidden_cuts):
            if cut >= layers:
                raise InputError(f"pipeline.forbidden_cuts.{number}", cut, f"a layer index below {layers}")
        if self.workload.tokens is not None:
            # In a trace short requests are a fact of life; here a quantum larger than the request is a slip.
            uncached = self.workload.tokens - self.workload.cached_tokens
            if uncached < pipeline.chunk_quantum:
                allowed = f"at least the chunk_quantum ({pipeline.chunk_quantum}) beside the cached tokens"
                raise InputError("workload.tokens", self.workload.tokens, allowed)
        return self

    def canonical(self) -> dict[str, Any]:
        """Plain data in base units with everything spelled out; reading it back gives an equal instance."""
        return self.model_dump(mode="json")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical instance without its names and remarks, 32 hexadecimal digits."""
        facts = self.canonical()
        facts.pop("name")
        for part in (facts, facts["hardware"], facts["model"]):
            part.pop("source", None)
            part.pop("name", None)
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @cached_property
    def stage_cost(self) -> StageCost:
        """The cost model of this instance."""
        return make_costs(self.model, self.costs, Path())

    def with_pipeline(self, **changes: Any) -> Self:
        """The instance with other limits or switches of its pipeline, which are not checked again."""
        return self.model_copy(update={"pipeline": self.pipeline.model_copy(update=changes)})

    def with_tokens(self, tokens: int) -> Self:
        """The instance with equal requests of another length.

        Raises
        ------
        InputError
            For a trace, and for a length that does not suit the instance.
        """
        workload = self.workload
        if workload.trace is not None:
            allowed = "equal requests: those of a trace have their lengths"
            raise InputError("workload.trace", len(workload.trace), allowed)
        changed = {"requests": workload.requests, "tokens": tokens, "cached_tokens": workload.cached_tokens}
        return self.read({**self.canonical(), "workload": changed})

    @property
    def batches(self) -> range:
        """Batches that differ in effect: more than all requests is the same as all."""
        return range(1, min(self.pipeline.max_batch, self.workload.count) + 1)

    @property
    def fixed_layers(self) -> tuple[int, ...] | None:
        """Layers per stage where the instance decides them, None where they are free."""
        split = self.pipeline.layers
        if split == "free":
            return None
        if split == "balanced":
            return balanced_layers(len(self.model.layer_kinds), self.pipeline.stages)
        assert isinstance(split, tuple)
        return split


def _resolve_model(data: Any, base_dir: Path) -> Any:
    """Spell a model out: from the catalogue, from a Hugging Face config, or as it is."""
    if not isinstance(data, dict):
        raise InputError("model", data, 'an object: {"name": ...}, {"huggingface": path} or a description')
    changes = {key: data[key] for key in _BYTE_KEYS if key in data}
    reference = {key: value for key, value in data.items() if key not in _BYTE_KEYS}
    predictions = reference.pop("prediction_layers", 0) if "huggingface" in reference else 0
    if "huggingface" in reference and len(reference) > 1:
        extra = min(set(reference) - {"huggingface"})
        allowed = f"beside huggingface only {', '.join(_BYTE_KEYS)}, prediction_layers"
        raise InputError(f"model.{extra}", data[extra], allowed)
    if isinstance(predictions, bool) or not isinstance(predictions, int) or predictions < 0:
        raise InputError("model.prediction_layers", predictions, "a whole number of at least 0")
    try:
        if set(reference) == {"name"}:
            return load_model(_text(reference["name"], "model.name")).with_bytes(**changes)
        if set(reference) == {"huggingface"}:
            path = base_dir / _text(reference["huggingface"], "model.huggingface")
            read_text(path, "model.huggingface")  # a file that cannot be read is this field's fault
            return read_config(path, **changes, prediction_layers=predictions)
    except InputError as error:
        raise _inside("model", error) from None
    return data


def _resolve_costs(data: Any, base_dir: Path) -> Any:
    """Put the rows of a measured table in place of its path, so that the instance stands alone."""
    try:
        return resolve_costs(data, base_dir)
    except InputError as error:
        raise _inside("costs", error) from None


def _inside(part: str, error: InputError) -> InputError:
    """The same error with its field named from the top, unless it is so already or concerns a field of another file."""
    if error.file is not None or error.field.startswith(f"{part}."):
        return error
    return InputError(f"{part}.{error.field}".rstrip("."), error.value, error.allowed)


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(field, value, "a text")
    return value
