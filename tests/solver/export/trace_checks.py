"""Structure of trace events, as the readers of the format need it (Chrome trace format; facts on peers, section 4)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from itertools import pairwise
from typing import Any

Event = dict[str, Any]


def assert_sound(document: dict[str, Any]) -> dict[str, int]:
    """Fail on a trace that a viewer would show wrongly.

    Returns
    -------
    dict
        Number of events of each phase (``X`` slice, ``s`` start of an arrow, ``C`` counter and so on).
    """
    events: list[Event] = document["traceEvents"]
    phases: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        phases[event["ph"]].append(event)
        assert event["ph"] in "XCMsf", "only kinds that are shown"
        assert event["ph"] == "M" or event["ts"] >= 0
    _assert_named(phases)
    slices = _assert_nested(phases["X"])
    _assert_arrows(phases["s"], phases["f"], slices)
    _assert_counters(phases["C"])
    return {phase: len(found) for phase, found in phases.items()}


def _assert_named(phases: dict[str, list[Event]]) -> None:
    """Every process and track that shows something has a name, and only one."""
    named = [(event["name"], event["pid"], event.get("tid")) for event in phases["M"]]
    assert len(named) == len(set(named))
    for event in phases["X"]:
        assert ("process_name", event["pid"], None) in named
        assert ("thread_name", event["pid"], event["tid"]) in named


def _assert_nested(slices: list[Event]) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """Durations are not negative; of two slices of a track, one is inside the other or they are apart."""
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in slices:
        assert event["dur"] >= 0
        tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        # Of slices that begin together, the longer one is the outer one.
        spans.sort(key=lambda span: (span[0], -span[1]))
        open_until: list[float] = []
        for start, end in spans:
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or end <= open_until[-1], (start, end, open_until[-1])
            open_until.append(end)
    return tracks


def _assert_arrows(
    starts: list[Event], ends: list[Event], slices: dict[tuple[int, int], list[tuple[float, float]]]
) -> None:
    """Every arrow has one start and one end, not before it, both on a slice; its end belongs to the enclosing one."""
    start_of = {(event["cat"], event["name"], event["id"]): event for event in starts}
    end_of = {(event["cat"], event["name"], event["id"]): event for event in ends}
    assert len(start_of) == len(starts)
    assert len(end_of) == len(ends)
    assert start_of.keys() == end_of.keys()
    for arrow, start in start_of.items():
        end = end_of[arrow]
        assert start["ts"] <= end["ts"]
        assert end["bp"] == "e"
        for event in (start, end):
            assert _on_a_slice(slices[event["pid"], event["tid"]], event["ts"])


def _on_a_slice(spans: list[tuple[float, float]], moment: float) -> bool:
    """Whether one of the spans, which are in order of their starts, holds the moment; most likely the last to begin."""
    begun = bisect_right(spans, moment, key=lambda span: span[0])
    return any(spans[place][1] >= moment for place in reversed(range(begun)))


def _assert_counters(counters: list[Event]) -> None:
    """Values of one counter are in order of time, one for each moment, none negative, always of the same series."""
    by_name: dict[tuple[int, str], list[Event]] = defaultdict(list)
    for event in counters:
        by_name[event["pid"], event["name"]].append(event)
    for values in by_name.values():
        for one, next_one in pairwise(values):
            assert one["ts"] < next_one["ts"]
            assert one["args"].keys() == next_one["args"].keys()
        assert all(amount >= 0 for event in values for amount in event["args"].values())
