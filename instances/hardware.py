"""Hardware: a grid of dies, their rates, the links between neighbours, an optional host tier (spec section 1)."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, model_validator

from instances.base import Document
from instances.errors import InputError
from instances.mesh import Mesh, Topology
from instances.units import Bytes, BytesPerSecond, FlopsPerSecond, Seconds

# The floor only keeps absurd numbers from overflowing.
Efficiency = Annotated[float, Field(ge=1e-9, le=1)]
Position = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
MAX_DIES = 100_000
"""Dies of the whole grid; the ceiling only keeps absurd files from exhausting memory."""
Count = Annotated[int, Field(ge=1, le=MAX_DIES, strict=True)]


class Die(Document):
    """Rates and memory of one die; efficiencies are the reachable share of a peak, in (0, 1]."""

    peak_flops: FlopsPerSecond
    hbm_bytes: Bytes
    hbm_bytes_per_s: BytesPerSecond
    gemm_efficiency: Efficiency = 1.0
    attention_efficiency: Efficiency = 1.0
    hbm_efficiency: Efficiency = 1.0
    layer_overhead_s: Seconds = 0.0
    chunk_overhead_s: Seconds = 0.0


class Host(Document):
    """DRAM behind every die, reached over the die's own host link, one each way."""

    host_bytes: Bytes
    host_bytes_per_s: BytesPerSecond


class DieOverride(Document):
    """What differs at one die; keys as in ``die``."""

    at: Position
    peak_flops: FlopsPerSecond | None = None
    hbm_bytes: Bytes | None = None
    hbm_bytes_per_s: BytesPerSecond | None = None
    gemm_efficiency: Efficiency | None = None
    attention_efficiency: Efficiency | None = None
    hbm_efficiency: Efficiency | None = None
    layer_overhead_s: Seconds | None = None
    chunk_overhead_s: Seconds | None = None


class Hardware(Document):
    """A wafer, or a grid of wafers, of dies. ``rows`` and ``columns`` are per wafer.

    ``tensor_parallel`` accelerators work as one die (``instances.groups``); rates and memory are those of all together.
    ``topology`` says how the dies are joined, see ``instances.mesh``. A mesh of single ones is not written down, so
    that instances from before there was a choice keep their fingerprints.
    """

    name: str | None = None
    source: str | None = None
    rows: Count
    columns: Count
    wafers: tuple[Count, Count] = (1, 1)
    topology: Annotated[Topology, Field(exclude_if=lambda topology: topology == "mesh")] = "mesh"
    tensor_parallel: Annotated[Count, Field(exclude_if=lambda degree: degree == 1)] = 1
    link_bytes_per_s: BytesPerSecond
    wafer_link_bytes_per_s: BytesPerSecond | None = None
    hop_latency_s: Seconds = 0.0
    disabled_dies: tuple[Position, ...] = ()
    disabled_links: tuple[tuple[Position, Position], ...] = ()
    die: Die
    dies: tuple[DieOverride, ...] = ()
    host: Host | None = None

    @model_validator(mode="after")
    def _inside_the_grid(self) -> Self:
        if self.total_rows * self.total_columns > MAX_DIES:
            raise InputError("rows", self.rows, f"at most {MAX_DIES} dies in the whole grid")
        for number, position in enumerate(self.disabled_dies):
            self._check_inside(position, f"disabled_dies.{number}")
        for number, override in enumerate(self.dies):
            self._check_inside(override.at, f"dies.{number}.at")
        if len({override.at for override in self.dies}) < len(self.dies):
            raise InputError("dies", [list(override.at) for override in self.dies], "each die at most once")
        if self.topology == "switch":
            self._check_switch()
        whole = Mesh(self.total_rows, self.total_columns, topology=self.topology)
        for number, (a, b) in enumerate(self.disabled_links):
            self._check_inside(a, f"disabled_links.{number}.0")
            self._check_inside(b, f"disabled_links.{number}.1")
            if not whole.adjacent(a, b):
                raise InputError(f"disabled_links.{number}", [list(a), list(b)], "two neighbouring dies")
        return self

    def _check_switch(self) -> None:
        if self.disabled_links:
            links = [[list(a), list(b)] for a, b in self.disabled_links]
            raise InputError("disabled_links", links, "an empty list with a switch: a die without links is disabled")
        if self.wafer_link_bytes_per_s is not None:
            raise InputError("wafer_link_bytes_per_s", self.wafer_link_bytes_per_s, "null: a switch has no seams")

    def _check_inside(self, position: tuple[int, int], field: str) -> None:
        if position[0] >= self.total_rows or position[1] >= self.total_columns:
            allowed = f"[row, column] inside the {self.total_rows}x{self.total_columns} grid, counted from 0"
            raise InputError(field, list(position), allowed)

    @property
    def total_rows(self) -> int:
        """Rows of the whole grid, over all wafers."""
        return self.rows * self.wafers[0]

    @property
    def total_columns(self) -> int:
        """Columns of the whole grid, over all wafers."""
        return self.columns * self.wafers[1]

    @property
    def seam_bytes_per_s(self) -> float:
        """Speed of a link that crosses a wafer edge; as inside a wafer unless given."""
        return self.link_bytes_per_s if self.wafer_link_bytes_per_s is None else self.wafer_link_bytes_per_s

    @cached_property
    def live_dies(self) -> list[tuple[int, int]]:
        """Enabled dies, row by row."""
        dead = set(self.disabled_dies)
        grid = ((row, column) for row in range(self.total_rows) for column in range(self.total_columns))
        return [position for position in grid if position not in dead]

    @cached_property
    def special_dies(self) -> dict[tuple[int, int], Die]:
        """The dies that have an override, with it applied."""
        return {
            override.at: self.die.model_copy(update=override.model_dump(exclude_none=True, exclude={"at"}))
            for override in self.dies
        }

    def die_at(self, position: tuple[int, int]) -> Die:
        """The die at a position, with its override applied."""
        return self.special_dies.get(position, self.die)

    @cached_property
    def best_die(self) -> Die:
        """A die at least as fast and as large as every enabled one, rate by rate."""
        dead = set(self.disabled_dies)
        dies = {die for position, die in self.special_dies.items() if position not in dead}
        if any(position not in self.special_dies for position in self.live_dies):
            dies.add(self.die)
        best = {
            name: (min if name.endswith("overhead_s") else max)(getattr(die, name) for die in dies)
            for name in Die.model_fields
        }
        return self.die.model_copy(update=best)

    @cached_property
    def largest_memories(self) -> tuple[float, ...]:
        """Bytes of memory of the enabled dies, the largest first."""
        return tuple(sorted((self.die_at(position).hbm_bytes for position in self.live_dies), reverse=True))

    def mesh(self) -> Mesh:
        """Geometry of the grid: links, routes, hops."""
        return Mesh(
            rows=self.total_rows,
            columns=self.total_columns,
            wafer_rows=self.rows,
            wafer_columns=self.columns,
            disabled_dies=frozenset(self.disabled_dies),
            disabled_links=frozenset(self.disabled_links),
            topology=self.topology,
        )
