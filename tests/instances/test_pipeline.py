"""Pipeline limits, and balanced layers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.errors import InputError
from instances.pipeline import Pipeline, balanced_layers


def test_defaults_are_those_of_the_interface_page() -> None:
    assert Pipeline.parse({"stages": 4}).model_dump(mode="json") == {
        "stages": 4,
        "chunk_quantum": 1024,
        "max_chunks": 64,
        "max_batch": 8,
        "max_in_flight": None,
        "overlap": True,
        "serve_fraction": 1.0,
        "switching": "cut_through",
        "routing": "xy",
        "one_send_per_die": False,
        "integer_ns": False,
        "layers": "balanced",
        "forbidden_cuts": [],
    }


@pytest.mark.parametrize(
    ("layers", "stages", "sizes"),
    [
        # 88 = 16 * 5 + 8: eight stages of 5, then eight of 6.
        (88, 16, (5,) * 8 + (6,) * 8),
        # 126 = 16 * 7 + 14, the split of Llama 3 405B.
        (126, 16, (7, 7) + (8,) * 14),
        (80, 16, (5,) * 16),
        (5, 2, (2, 3)),
        (3, 3, (1, 1, 1)),
        (7, 1, (7,)),
    ],
)
def test_balanced_layers(layers: int, stages: int, sizes: tuple[int, ...]) -> None:
    assert balanced_layers(layers, stages) == sizes


@given(st.integers(1, 300).flatmap(lambda layers: st.tuples(st.just(layers), st.integers(1, layers))))
def test_balanced_layers_cover_and_differ_by_one_at_most(case: tuple[int, int]) -> None:
    layers, stages = case
    sizes = balanced_layers(layers, stages)
    assert (len(sizes), sum(sizes)) == (stages, layers)
    assert max(sizes) - min(sizes) <= 1
    assert list(sizes) == sorted(sizes)
    assert min(sizes) >= 1
    assert all(type(size) is int for size in sizes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages": 0}, "stages: 0 is not allowed; expected a number of at least 1"),
        ({"stages": "4"}, "stages: '4' is not allowed; expected a whole number"),
        ({"stages": True}, "stages: true is not allowed; expected a whole number"),
        ({"stages": 10**400}, "expected a number of at most 1000000000"),
        ({"chunk_quantum": 0}, "chunk_quantum: 0 is not allowed; expected a number of at least 1"),
        ({"chunk_quantum": "1 kB"}, "chunk_quantum: '1 kB' is not allowed"),
        ({"max_chunks": 0}, "max_chunks: 0 is not allowed"),
        ({"max_batch": 0}, "max_batch: 0 is not allowed"),
        ({"max_in_flight": 0}, "max_in_flight: 0 is not allowed"),
        ({"overlap": 1}, "overlap: 1 is not allowed; expected true or false"),
        ({"one_send_per_die": "yes"}, "one_send_per_die: 'yes' is not allowed; expected true or false"),
        ({"serve_fraction": -0.1}, "serve_fraction: -0.1 is not allowed; expected a number of at least 0"),
        ({"serve_fraction": True}, "serve_fraction: true is not allowed; expected a number"),
        ({"switching": "wormhole"}, "'wormhole' is not allowed; expected 'cut_through' or 'store_and_forward'"),
        ({"routing": "XY"}, "routing: 'XY' is not allowed; expected 'xy' or 'yx'"),
        ({"layers": "even"}, "layers: 'even' is not allowed; expected 'balanced' or 'free' or a list"),
        ({"layers": None}, "layers: null is not allowed; expected 'balanced' or 'free' or a list"),
        ({"layers": [1, 2.5]}, "layers.1: 2.5 is not allowed; expected a whole number"),
        ({"layers": [4]}, "layers: [4] is not allowed; expected one entry for each of the 2 stages"),
        ({"layers": [4, 0]}, "layers: [4, 0] is not allowed; expected at least one layer for every stage"),
        ({"forbidden_cuts": [0]}, "forbidden_cuts.0: 0 is not allowed; expected a number of at least 1"),
        ({"forbidden_cuts": 3}, "forbidden_cuts: 3 is not allowed; expected a list"),
        ({"microbatch": 1}, "microbatch: 1 is not allowed; expected one of the keys stages, chunk_quantum"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        Pipeline.parse({"stages": 2, **changes})


def test_given_layers_may_be_as_few_as_one_a_stage() -> None:
    assert Pipeline.parse({"stages": 2, "layers": [1, 4]}).layers == (1, 4)


def test_units_of_the_quantum() -> None:
    assert Pipeline.parse({"stages": 1, "chunk_quantum": "2k"}).chunk_quantum == 2048
