"""A list of layer names as a few repeated patterns."""

from __future__ import annotations

from instances.model import LayerRun

_LONGEST_PATTERN = 16


def layer_runs(names: list[str]) -> tuple[LayerRun, ...]:
    """Cut greedily: at each place the pattern whose repetitions cover most layers, the shorter of equals.

    A pattern of several names must repeat; what fits no pattern is a run of one name.
    """
    runs = []
    start = 0
    while start < len(names):
        best, covered = 1, _repeats(names, start, 1)
        for period in range(2, min(_LONGEST_PATTERN, (len(names) - start) // 2) + 1):
            length = period * _repeats(names, start, period)
            if length > covered and length > period:
                best, covered = period, length
        runs.append(LayerRun(pattern=tuple(names[start : start + best]), repeat=covered // best))
        start += covered
    return tuple(runs)


def _repeats(names: list[str], start: int, period: int) -> int:
    pattern = names[start : start + period]
    count = 1
    while names[start + count * period : start + (count + 1) * period] == pattern:
        count += 1
    return count
