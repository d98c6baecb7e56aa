"""Dies of a program document: where stages sit, how dies are joined, in which order they run their tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from instances.errors import InputError
from instances.hardware import MAX_DIES
from instances.mesh import Die, Link, Mesh, Topology
from instances.plan import Schedule
from solver.simulation.document_fields import as_count, as_die, as_list

Label = tuple[int, int, int]
"""Wave, stage, chunk."""


def read_dies(document: Mapping[str, Any]) -> list[Die]:
    """The die of each stage. Stages share one in a V-shaped schedule, or where ``order`` says what it runs."""
    value = document["die_of"]
    dies = [as_die(die, f"die_of[{stage}]") for stage, die in enumerate(as_list(value, "die_of"))]
    if not dies:
        raise InputError("die_of", [], "at least one stage")
    if read_schedule(document) != "chunked":
        half = len(dies) // 2
        if dies != dies[::-1] or len(dies) % 2 or len(set(dies)) != half:
            raise InputError("die_of", value, "2N stages in a V-shaped schedule, r and 2N-1-r on one die of their own")
    elif len(set(dies)) < len(dies) and document.get("order") is None:
        raise InputError("die_of", value, "a die of its own for each stage, or the key order")
    return dies


def read_schedule(document: Mapping[str, Any]) -> Schedule:
    """The schedule, by which each die orders its tasks; plain unless given."""
    value = document.get("schedule", "chunked")
    for schedule in get_args(Schedule):
        if value == schedule:
            chosen: Schedule = schedule
            return chosen
    raise InputError("schedule", value, "one of " + ", ".join(get_args(Schedule)))


def read_order(
    document: Mapping[str, Any], dies: Sequence[Die], chunks_of_wave: Sequence[int]
) -> list[list[Label]] | None:
    """Tasks of each die in the order in which it runs them; None where the schedule decides.

    One list for each die, dies in the order in which ``die_of`` first names them; a task is [wave, stage, chunk].
    """
    value = document.get("order")
    if value is None:
        return None
    if read_schedule(document) != "chunked":
        raise InputError("order", f"beside the schedule {document['schedule']}", "either order or a V-shaped schedule")
    places = list(dict.fromkeys(dies))
    lists = as_list(value, "order")
    if len(lists) != len(places):
        raise InputError("order", f"{len(lists)} lists", f"{len(places)} lists, one for each die of die_of")
    return [
        _order_of_die(tasks, f"order[{number}]", [s for s, die in enumerate(dies) if die == place], chunks_of_wave)
        for number, (place, tasks) in enumerate(zip(places, lists, strict=True))
    ]


def _order_of_die(value: object, field: str, stages: list[int], chunks_of_wave: Sequence[int]) -> list[Label]:
    """Every task of the die once; the chunks of a stage and wave one after the other, each needs those before it."""
    order: list[Label] = []
    done: Counter[tuple[int, int]] = Counter()
    for position, entry in enumerate(as_list(value, field)):
        name = f"{field}[{position}]"
        numbers = as_list(entry, name)
        if len(numbers) != 3:
            raise InputError(name, entry, "[wave, stage, chunk]")
        wave, stage, chunk = (as_count(number, name) for number in numbers)
        if wave >= len(chunks_of_wave) or stage not in stages or chunk >= chunks_of_wave[wave]:
            raise InputError(name, entry, f"a task of stages {', '.join(map(str, stages))}, which this die runs")
        if chunk != done[wave, stage]:
            raise InputError(name, entry, "the chunks of a wave and stage in order, each once")
        done[wave, stage] += 1
        order.append((wave, stage, chunk))
    for wave, chunks in enumerate(chunks_of_wave):
        for stage in stages:
            if done[wave, stage] < chunks:
                missing = f"no task [{wave}, {stage}, {done[wave, stage]}]"
                raise InputError(field, missing, "every task of the die")
    return order


def read_mesh(document: Mapping[str, Any], dies: Sequence[Die]) -> Mesh:
    """How dies are joined: a mesh as large as the dies in use, unless the document says otherwise."""
    topology = _topology(document)
    used_rows, used_columns = (max(die[axis] for die in dies) + 1 for axis in (0, 1))
    rows = as_count(document.get("rows", used_rows), "rows", low=used_rows, high=MAX_DIES)
    columns = as_count(document.get("columns", used_columns), "columns", low=used_columns, high=MAX_DIES // rows)
    grid = f"inside the {rows}x{columns} {topology}"
    dead = []
    for index, value in enumerate(as_list(document.get("disabled_dies", []), "disabled_dies")):
        field = f"disabled_dies[{index}]"
        die = as_die(value, field)
        if die in dies:
            raise InputError(field, value, "a die that no stage uses")
        if die[0] >= rows or die[1] >= columns:
            raise InputError(field, value, f"a die {grid}")
        dead.append(die)
    whole = Mesh(rows, columns, topology=topology)
    cut: list[Link] = []
    for index, value in enumerate(as_list(document.get("disabled_links", []), "disabled_links")):
        field = f"disabled_links[{index}]"
        ends = [as_die(end, field) for end in as_list(value, field)]
        inside = len(ends) == 2 and all(whole.contains(end) for end in ends)
        if topology == "switch":
            raise InputError(field, value, "no disabled links with a switch")
        if not inside or not whole.adjacent(ends[0], ends[1]):
            raise InputError(field, value, f"two neighbouring dies {grid}")
        cut.append((ends[0], ends[1]))
    return Mesh(rows, columns, disabled_dies=frozenset(dead), disabled_links=frozenset(cut), topology=topology)


def _topology(document: Mapping[str, Any]) -> Topology:
    value = document.get("topology", "mesh")
    for topology in get_args(Topology):
        if value == topology:
            chosen: Topology = topology
            return chosen
    raise InputError("topology", value, "one of " + ", ".join(get_args(Topology)))
