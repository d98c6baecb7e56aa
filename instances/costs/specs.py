"""The ``costs`` part of an instance: which cost model, and its numbers (interface page, spec section 2)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from instances.base import Document, read_text
from instances.costs.profile import Profile, read_profile
from instances.errors import InputError
from instances.units import Seconds

Row = tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0)]]


class RooflineSpec(Document):
    """Time from the shapes of the layers and the rates of the die."""

    kind: Literal["roofline"] = "roofline"


class FittedSpec(Document):
    """t = chunk_s + prefix_s*p + token_s*c + pair_s*(2*p*c + c*c), for the whole model and one sequence."""

    kind: Literal["fitted"] = "fitted"
    chunk_s: Seconds
    prefix_s: Seconds
    token_s: Seconds
    pair_s: Seconds


class TableSpec(Document):
    """Measured times of the whole model: a CSV file, or its rows (chunk, prefix, seconds) in place."""

    kind: Literal["table"] = "table"
    path: str | None = None
    rows: Annotated[tuple[Row, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.path is None) == (self.rows is None):
            raise ValueError("either a path or rows")
        return self

    def profile(self, base_dir: Path) -> Profile:
        """The measured rows; a relative path starts at ``base_dir``."""
        if self.path is not None:
            return read_profile(base_dir / self.path)
        return Profile.from_rows(self.rows or (), where="costs.rows")

    def inlined(self, base_dir: Path) -> TableSpec:
        """The same table with its rows in place of the path, so that an instance stands alone."""
        return TableSpec(rows=self.profile(base_dir).rows())


def resolve_costs(data: Any, base_dir: Path) -> Any:
    """Plain data of a cost model with a table's file replaced by its rows, so that an instance stands alone."""
    if not (isinstance(data, dict) and data.get("kind") == "table" and isinstance(data.get("path"), str)):
        return data
    try:
        spec = TableSpec.parse(data)
        read_text(base_dir / data["path"], "path")  # a file that cannot be read is this field's fault
        return spec.inlined(base_dir).model_dump(mode="json", exclude_none=True)
    except InputError as error:
        if error.file is not None:
            raise  # it concerns a place inside that file
        raise InputError(f"costs.{error.field}".rstrip("."), error.value, error.allowed) from None


CostSpec = Annotated[RooflineSpec | FittedSpec | TableSpec, Field(discriminator="kind")]
