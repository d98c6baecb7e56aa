"""A plan: the decisions (spec section 1), as exchanged in JSON (spec ``interface.md``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator

from instances.base import Document, SchemaVersion, read_json
from instances.display import html_table, placement_html, plan_facts
from instances.errors import InputError
from instances.workload import Shape

# The ceilings only keep absurd numbers from overflowing the engines' integers; rules find what is merely too much.
_MOST = 2**40
Index = Annotated[int, Field(ge=0, le=_MOST, strict=True)]
Amount = Annotated[int, Field(ge=-_MOST, le=_MOST, strict=True)]
Creditor = Index | Literal["host"]
Schedule = Literal["chunked", "vpp", "vpp-async", "vpp-packed"]


class SpillRow(Document):
    """``tokens`` of chunk ``chunk`` (per sequence) of stage ``stage`` are kept at ``creditor``."""

    stage: Index
    chunk: Index
    creditor: Creditor
    tokens: Index
    shape: tuple[Index, Index] | None = None


class Plan(Document):
    """Batch, layers per stage, placement, chunk lists, spill and schedule.

    ``chunks`` maps the number of uncached tokens (as a string, JSON keys are) to the chunk sizes in tokens.
    ``instance`` is the fingerprint of the instance it was made for.

    In the V-shaped schedules "vpp", "vpp-async" and "vpp-packed" (spec section 3) each of the N dies holds two virtual
    stages, r and 2N-1-r. Stages are numbered 0..2N-1 throughout: ``layers`` has 2N entries, and so has ``placement``,
    whose entries r and 2N-1-r are the same die (rule ``v_fold``). A creditor is a memory, so that r and 2N-1-r name the
    same one.
    """

    schema_version: SchemaVersion = 1
    instance: str
    batch: Annotated[Index, Field(ge=1)]
    layers: tuple[Amount, ...]
    placement: tuple[tuple[Index, Index], ...]
    chunks: dict[str, tuple[Amount, ...]]
    spill: tuple[SpillRow, ...] = ()
    schedule: Schedule = "chunked"

    @field_validator("chunks")
    @classmethod
    def _keys_are_counts(cls, value: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        for key, sizes in value.items():
            if not re.fullmatch("[1-9][0-9]{0,12}", key):
                raise InputError("", key, "a number of uncached tokens as the key of a chunk list")
            if not sizes:
                raise InputError(key, [], "a list of at least one chunk")
        return value

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan file, or the plan inside a result file.

        Raises
        ------
        InputError
            For anything that is not a plan.
        """
        data = read_json(path)
        if isinstance(data, dict) and "plan" in data:
            data = data["plan"]
            if data is None:
                raise InputError("plan", None, "a result that holds a plan", file=str(path))
        return cls.parse(data, file=str(path))

    def to_json(self) -> str:
        """The plan as JSON text, without keys that are null."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=1)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The plan in a few lines, for people."""
        spill = ((row.stage, row.creditor, row.tokens) for row in self.spill)
        return plan_facts(self.schedule, self.batch, self.layers, self.chunks, spill)

    def _repr_html_(self) -> str:
        """The plan in a notebook: what it decides, and its stages on the dies in use."""
        return html_table((), self.facts) + placement_html(self.placement)

    @property
    def v_shaped(self) -> bool:
        """Whether each die holds two virtual stages."""
        return self.schedule != "chunked"

    def chunk_sizes(self, uncached_tokens: int) -> tuple[int, ...]:
        """Chunk sizes for requests with that many tokens to compute."""
        return self.chunks[str(uncached_tokens)]

    def spill_of(self, shape: Shape) -> Iterator[SpillRow]:
        """Rows that concern requests of a shape; a row without a shape concerns the only one."""
        return (row for row in self.spill if row.shape is None or row.shape == shape)

    @property
    def layer_starts(self) -> tuple[int, ...]:
        """First layer of each stage."""
        return (0, *accumulate(self.layers))[: len(self.layers)]
