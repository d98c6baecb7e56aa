"""Random programs whose stages share dies, V-shaped or with an order of their own, on all topologies.

Made from the programs of ``tests.strategies`` by the same two sources of choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from tests.strategies import Integer, programs, random_program

T = TypeVar("T")
Data = dict[str, Any]
Label = tuple[int, int, int]


@st.composite
def shared_die_programs(draw: st.DrawFn) -> Data:
    """As a Hypothesis strategy."""
    return shared(draw(programs()), lambda low, high: draw(st.integers(low, high)))


def random_shared_die_program(rng: np.random.Generator) -> Data:
    """From a numpy Generator."""
    return shared(random_program(rng), lambda low, high: int(rng.integers(low, high, endpoint=True)))


def shared(document: Data, integer: Integer) -> Data:
    """The document's stages put together on dies, by a fold or in an order."""
    return _Recipe(dict(document), integer).program()


class _Recipe:
    """Changes one document; ``dies`` has the die of each stage by its number."""

    def __init__(self, document: Data, integer: Integer) -> None:
        self.document = document
        self.integer = integer
        self.waves, self.chunks = len(document["arrivals_s"]), len(document["activation_bytes"])

    def choice(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def program(self) -> Data:
        document = self.document
        document["topology"] = self.choice(("mesh", "mesh", "torus", "switch"))
        if document["topology"] == "switch":
            document.pop("disabled_links", None)
        places = len(document["die_of"])
        if "disabled_dies" in document and "rows" not in document:
            # Not all of the dies may stay in use, from which the size could be read off.
            document["rows"], document["columns"] = (
                max(die[axis] for die in document["die_of"]) + 1 for axis in (0, 1)
            )
        if self.integer(0, 2):
            document["schedule"] = self.choice(("vpp", "vpp-async", "vpp-packed"))
            self.double()
            dies = [*range(places), *reversed(range(places))]
            if document.get("max_in_flight") is not None and self.integer(0, 3):
                document["max_in_flight"] += 2 * places - 2
        else:
            used = self.integer(1, places)
            # Every die in use has a stage at least.
            dies = [*range(used), *(self.integer(0, used - 1) for _ in range(places - used))]
            document["order"] = self.order(dies)
        self.memory(dies, dies if "schedule" in document else [*range(len(dies))])
        document["die_of"] = [document["die_of"][die] for die in dies]
        self.spill(dies)
        return document

    def double(self) -> None:
        """Twice as many stages: the second half does what the first does, last stage first."""
        for key in {"compute_s", "kv_bytes", "not_before_s"} & self.document.keys():
            self.document[key] = [*self.document[key], *reversed(self.document[key])]
        last = len(self.document["kv_bytes"]) - 1
        rows = self.document.get("spill", [])
        back = [{**row, "stage": last - row["stage"]} for row in rows]
        if "spill" in self.document:
            self.document["spill"] = [*rows, *back]

    def memory(self, dies: list[int], was: list[int]) -> None:
        """A die gets what its most demanding stage had, mostly what the others had too; ``was``: their old numbers."""
        capacity, static = self.document.get("capacity_bytes"), self.document.get("static_bytes")
        if static is not None:
            most = {die: max(static[was[s]] for s in _held(dies, die)) for die in dies}
            self.document["static_bytes"] = [most[die] for die in dies]
        if capacity is not None:
            room = {die: max(capacity[was[s]] for s in _held(dies, die)) for die in dies}
            for die in room:
                for stage in _held(dies, die)[1:]:
                    room[die] += capacity[was[stage]] if self.integer(0, 3) else 0
            self.document["capacity_bytes"] = [room[die] for die in dies]

    def spill(self, dies: list[int]) -> None:
        """Creditors under any number of their die, not on the stage's own die, each once."""
        kept, seen = [], set()
        for row in self.document.get("spill", []):
            creditor = row["creditor"]
            if creditor != "host":
                creditor = self.choice(_held(dies, dies[creditor]))
            memory = creditor if creditor == "host" else dies[creditor]
            key = (row["stage"], row["chunk"], memory)
            if memory != dies[row["stage"]] and key not in seen:
                seen.add(key)
                kept.append({**row, "creditor": creditor})
        if "spill" in self.document:
            self.document["spill"] = kept

    def order(self, dies: list[int]) -> list[list[list[int]]]:
        """What each die runs, read off one random order of all tasks in which each follows those that it needs."""
        left = [(w, s, i) for w in range(self.waves) for i in range(self.chunks) for s in range(len(dies))]
        done: set[Label] = set()
        order: list[list[list[int]]] = [[] for _ in dict.fromkeys(dies)]
        while left:
            ready = [task for task in left[:30] if _inputs(task) <= done]
            task = self.choice(ready)
            left.remove(task)
            done.add(task)
            order[dies[task[1]]].append(list(task))
        return order


def _inputs(task: Label) -> set[Label]:
    """Tasks that come before: the same chunk at the stage before, the chunk before at the same stage."""
    wave, stage, chunk = task
    return {(wave, s, i) for s, i in ((stage - 1, chunk), (stage, chunk - 1)) if s >= 0 and i >= 0}


def _held(dies: list[int], die: int) -> list[int]:
    """Stages of a die."""
    return [stage for stage, other in enumerate(dies) if other == die]
