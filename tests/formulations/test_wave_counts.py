"""Counts of path parts over all waves, against the definition path by path."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from formulations.wave_counts import Counts, wave_counts
from instances.gathering import gather


def test_one_burst_by_hand() -> None:
    # Three waves of 2, 2 and 1 requests from one start: wave 0 lies on all paths, 5/5; wave 1 on 3/5, wave 2 on 1/5.
    waves = gather([0.0] * 5, [8] * 5, [0] * 5, 2)
    assert wave_counts(waves, [0, 0, 0], [0.4, 0.4, 0.2], 5) == {
        ((8, 0), 2): Counts(1.6, 1.0, 0.8),
        ((8, 0), 1): Counts(0.2, 0.0, 0.2),
    }


def test_what_no_path_with_weight_holds_is_left_out() -> None:
    # The makespan counts the last wave alone, whose path starts with itself.
    waves = gather([0.0, 0.0], [8, 9], [0, 0], 1)
    assert wave_counts(waves, [0, 1], [0.0, 1.0], 1) == {((9, 0), 1): Counts(1.0, 1.0, 1.0)}


@given(st.data())
def test_as_path_by_path(data: st.DataObject) -> None:
    tokens = data.draw(st.lists(st.integers(8, 9), min_size=1, max_size=12))
    waves = gather([0.0] * len(tokens), tokens, [0] * len(tokens), data.draw(st.integers(1, 3)))
    starts = [data.draw(st.integers(0, w)) for w in range(waves.waves)]
    expected: defaultdict[tuple[tuple[int, int], int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for w, start in enumerate(starts):
        for k in range(start, w + 1):
            parts = expected[waves.kinds[waves.kind[k]]]
            for part, counts in enumerate((True, k == start, k == w)):
                parts[part] += int(waves.size[w]) * counts
    total = len(tokens)
    found = wave_counts(waves, starts, waves.size / total, total)
    assert found == {key: Counts(*(part / total for part in parts)) for key, parts in expected.items()}
