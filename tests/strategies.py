"""Random programs for the two simulators: small, full of ties, with tight memory and every option now and then.

One recipe, two sources of choices: Hypothesis (which shrinks) and a numpy Generator (for bulk runs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

T = TypeVar("T")
Cell = tuple[int, int]
# An inclusive random integer: low, high -> value.
Integer = Callable[[int, int], int]

MESHES: tuple[Cell, ...] = ((1, 2), (2, 1), (1, 3), (2, 2), (3, 1), (2, 3), (3, 2), (3, 3))
LINK_BYTES_PER_S = (0.5, 1, 1, 2, 2, 3, 4, 5, 10)
HOP_LATENCY_S = (0, 0, 0, 0.1, 0.25, 0.5, 1)


@st.composite
def programs(draw: st.DrawFn) -> dict[str, Any]:
    """Programs with the keys of the worked examples, as a Hypothesis strategy."""
    return _Recipe(lambda low, high: draw(st.integers(low, high))).program()


def random_program(rng: np.random.Generator) -> dict[str, Any]:
    """One program from the same recipe, drawn from a numpy Generator."""
    return _Recipe(lambda low, high: int(rng.integers(low, high, endpoint=True))).program()


class _Recipe:
    """How a program is put together from inclusive random integers."""

    def __init__(self, integer: Integer) -> None:
        self.integer = integer

    def choice(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        # The small values say no, so that shrinking takes features away.
        return self.integer(0, 99) >= 100 - percent

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in items]

    def program(self) -> dict[str, Any]:
        document = self.placement()
        stages = len(document["die_of"])
        # In a crowd every stage writes what it can to one tight creditor, so that writes queue there.
        crowd = stages > 2 and self.chance(30)
        chunks = self.integer(3, 5) if crowd else self.choice((1, 2, 3, 3, 4, 4, 5))
        waves = self.integer(1, 4)
        time = self.time_style()
        document["compute_s"] = [[time() for _ in range(chunks)] for _ in range(stages)]
        document["activation_bytes"] = [self.integer(0, 3) for _ in range(chunks)]
        arrival = 0.0
        document["arrivals_s"] = []
        for _ in range(waves):
            arrival += self.choice((0, 0, 0, 1, 2.5, 6))
            document["arrivals_s"].append(arrival)
        if self.chance(20):
            # One table for all waves: it holds back the first ones.
            document["not_before_s"] = [
                [self.choice((0, 0, 0, 1, 2.5, 6)) for _ in range(chunks)] for _ in range(stages)
            ]
        document["link_bytes_per_s"] = self.choice(LINK_BYTES_PER_S)
        document["hop_latency_s"] = self.choice(HOP_LATENCY_S)
        self.options(document)
        # The page does not say whether a transfer to the host counts as a send of its die.
        if not document.get("one_send_per_die") and self.chance(25):
            host_bytes = self.integer(1, 8)
            document["host"] = {"host_bytes": host_bytes, "host_bytes_per_s": self.choice((1, 2, 3, 0.5))}
        fast = self.chance(5)
        # In nanoseconds a quarter of a byte could end on half a picosecond, and the page leaves that tie open.
        unit = 1 if fast else self.choice((1, 1, 1, 0.25))
        self.memory(document, unit, stages, chunks, crowd)
        if self.chance(80):
            document["serve_fraction"] = self.choice((1, 0.5, 0))
        if self.chance(80):
            document["overlap"] = self.chance(50)
        if self.chance(60):
            document["max_in_flight"] = self.integer(1, stages + 1) if self.chance(50) else None
        if fast:
            _to_nanoseconds(document)
        elif self.chance(10):
            _to_wafer_size(document, self.choice((4.5e12, 5e12)))
        return document

    def placement(self) -> dict[str, Any]:
        """Stages on distinct dies of a small mesh, sometimes with dead dies and links that detours avoid."""
        rows, columns = self.choice(MESHES)
        cells = [(row, column) for row in range(rows) for column in range(columns)]
        stages = self.integer(2, min(6, len(cells)))
        if len(cells) > 3 and self.chance(30):
            # Either the mesh is given, or its far corner is in use, so that its size can be read off the dies.
            given = self.chance(50)
            order = self.shuffled(cells) if given else [cells[-1], *self.shuffled(cells[:-1])]
            used, dead = order[:stages], order[stages:][: self.integer(0, 1)]
            links = [(one, other) for one in cells for other in cells if _east_or_south(one, other)]
            cut = self.shuffled(links)[: self.integer(0, 2)]
            if _connected(used, cells, dead, cut):
                cut_lists = [_lists(self.shuffled(link)) for link in cut]
                document = {"die_of": _lists(self.shuffled(used)), "disabled_dies": _lists(dead)}
                return document | {"disabled_links": cut_lists} | ({"rows": rows, "columns": columns} if given else {})
        return {"die_of": _lists(self.shuffled(cells)[:stages])}

    def time_style(self) -> Callable[[], float]:
        """Whole seconds, tenths, or whole seconds with zeros: ties are wanted."""
        styles: tuple[Callable[[], float], ...] = (
            lambda: self.integer(1, 5),
            lambda: self.integer(1, 5),
            lambda: self.integer(1, 50) / 10,
            lambda: self.integer(0, 3),
        )
        return self.choice(styles)

    def memory(self, document: dict[str, Any], unit: float, stages: int, chunks: int, crowd: bool) -> None:
        """KV, spills of part of it, and a capacity that is missing, loose, or tight enough to wait or lock up."""
        full = [[unit * self.integer(0, 4) for _ in range(chunks)] for _ in range(stages)]
        kv = [list(row) for row in full]
        if self.chance(20):
            # A sliding window: what it holds rises and falls, but is never negative.
            for row in kv:
                held = [unit * self.integer(0, 3) for _ in range(chunks)]
                for chunk in range(chunks):
                    row[chunk] += held[chunk] - (held[chunk - 1] if chunk else 0)
        document["kv_bytes"] = kv
        hub = self.integer(0, stages - 1) if crowd else None
        spill = self.spills(full, unit, hub, "host" in document)
        if spill or self.chance(30):
            document["spill"] = spill
        style = "crowd" if crowd else self.choice(("none", "loose", "tight", "tight", "mixed"))
        if style == "none":
            return
        static = [self.choice((0, 0, 0.5, 2)) for _ in range(stages)]
        if any(static) or self.chance(50):
            document["static_bytes"] = static
        document["capacity_bytes"] = []
        for stage in range(stages):
            loose = style == "loose" or (style == "mixed" and self.chance(50)) or (style == "crowd" and stage != hub)
            peak = max(sum(kv[stage][: chunk + 1]) for chunk in range(chunks))
            away = 0 if loose else sum(row["bytes"] for row in spill if row["stage"] == stage)
            slack = unit * (self.integer(4, 16) if loose else self.integer(0, 4))
            document["capacity_bytes"].append(static[stage] + max(peak - away, *kv[stage], 0) + slack)

    def spills(self, full: list[list[float]], unit: float, hub: int | None, host: bool) -> list[dict[str, Any]]:
        """Part of some chunks' KV at other stages, or all of it at one of them, the hub."""
        stages, chunks = len(full), len(full[0])
        density = self.choice((0, 40, 70, 100)) if hub is None else 100
        spill: list[dict[str, Any]] = []
        for stage in range(stages):
            creditors: list[int | str] = [k for k in range(stages) if k != stage and hub in (None, k)]
            creditors += ["host"] if host else []
            for chunk in range(chunks - 1):
                left = full[stage][chunk]
                if not self.chance(density):
                    continue
                for creditor in self.shuffled(creditors)[: self.integer(1, 2)]:
                    amount = unit * self.integer(1, 3)
                    if amount <= left:
                        left -= amount
                        spill.append({"stage": stage, "chunk": chunk, "creditor": creditor, "bytes": amount})
        return self.shuffled(spill)

    def options(self, document: dict[str, Any]) -> None:
        for name in ("store_and_forward", "one_send_per_die", "integer_ns"):
            if self.chance(10):
                document[name] = True
        if self.chance(15):
            document["routing"] = self.choice(("yx", "xy"))


def _to_wafer_size(document: dict[str, Any], link_bytes_per_s: float) -> None:
    """The same program with the figures of a real one: chunks of 98,304,000 bytes, milliseconds, terabytes a second."""

    def larger(amount: float) -> float:
        return amount * 98_304_000

    for name in ("activation_bytes", "capacity_bytes", "static_bytes"):
        if name in document:
            document[name] = [larger(amount) for amount in document[name]]
    document["kv_bytes"] = [[larger(amount) for amount in row] for row in document["kv_bytes"]]
    for row in document.get("spill", []):
        row["bytes"] = larger(row["bytes"])
    for name in {"compute_s", "not_before_s"} & document.keys():
        document[name] = [[float(f"{time_s}e-3") for time_s in row] for row in document[name]]
    document["arrivals_s"] = [float(f"{time_s}e-3") for time_s in document["arrivals_s"]]
    document["hop_latency_s"] = float(f"{document['hop_latency_s']}e-7")
    document["link_bytes_per_s"] = link_bytes_per_s
    if "host" in document:
        document["host"] = {"host_bytes": larger(document["host"]["host_bytes"]), "host_bytes_per_s": 64e9}


def _to_nanoseconds(document: dict[str, Any]) -> None:
    """The same program a billion times faster, with numbers as a person would write them: 1.2e-09."""

    def faster(time_s: float) -> float:
        return float(f"{time_s}e-9")

    for name in {"compute_s", "not_before_s"} & document.keys():
        document[name] = [[faster(time_s) for time_s in row] for row in document[name]]
    document["arrivals_s"] = [faster(time_s) for time_s in document["arrivals_s"]]
    document["hop_latency_s"] = faster(document["hop_latency_s"])
    document["link_bytes_per_s"] *= 1e9
    if "host" in document:
        document["host"]["host_bytes_per_s"] *= 1e9


def _lists(cells: Sequence[Cell]) -> list[list[int]]:
    return [list(cell) for cell in cells]


def _east_or_south(one: Cell, other: Cell) -> bool:
    return (other[0] - one[0], other[1] - one[1]) in ((0, 1), (1, 0))


def _connected(used: list[Cell], cells: list[Cell], dead: list[Cell], cut: list[tuple[Cell, Cell]]) -> bool:
    reached, grew = {used[0]}, True
    while grew:
        grew = False
        for one in cells:
            for other in cells:
                joined = _east_or_south(one, other) and one not in dead and other not in dead
                if joined and (one, other) not in cut and (one in reached) != (other in reached):
                    reached |= {one, other}
                    grew = True
    return set(used) <= reached
