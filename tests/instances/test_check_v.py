"""Rules of V-shaped plans that depend on the instance: the split over 2N parts, tied tables, one memory a die."""

from __future__ import annotations

from typing import Any

import pytest

from instances.check import check
from instances.instance import Instance
from tests.builders import small_instance, small_plan

V_DIES = [[0, 0], [0, 1], [0, 1], [0, 0]]


def _instance(layers: int = 4, **changes: Any) -> Instance:
    """Two dies in use."""
    model = [{"pattern": ["layer"], "repeat": layers}]
    return small_instance(**{"pipeline__stages": 2, "model__layers": model, **changes})


def _broken(instance: Instance, **changes: Any) -> dict[str, list[float]]:
    plan = small_plan(instance, **{"schedule": "vpp-async", "placement": V_DIES, **changes})
    found: dict[str, list[float]] = {}
    for finding in check(instance, plan):
        if not finding.ok:
            found.setdefault(finding.rule, []).append(finding.amount)
    return found


def test_balanced_is_over_all_parts() -> None:
    # 10 layers over 4 parts: 2, 2, 3, 3; over 2 dies it would be 5 and 5 in many ways.
    instance = _instance(10)
    assert _broken(instance, layers=[2, 2, 3, 3]) == {}
    assert _broken(instance, layers=[2, 3, 2, 3]) == {"layers_given": [1, 1]}
    # As plain plans have it: half a V.
    assert "stage_count" in _broken(instance, layers=[5, 5])


def test_a_model_with_too_few_layers_leaves_a_part_empty() -> None:
    # 3 layers over 4 parts: 0, 1, 1, 1.
    assert _broken(_instance(3), layers=[0, 1, 1, 1]) == {"stage_nonempty": [1]}


def test_a_free_split_needs_a_layer_in_every_part() -> None:
    instance = _instance(pipeline__layers="free")
    assert _broken(instance, layers=[1, 2, 0, 1]) == {"stage_nonempty": [1]}
    assert _broken(_instance(5, pipeline__layers="free"), layers=[2, 1, 1, 1]) == {}


@pytest.mark.parametrize("tied", [False, True])
def test_tied_tables_count_once_on_the_die_that_has_both(tied: bool) -> None:
    # A layer has projections 64*16*(2*4 + 2*2) = 12,288 and feed-forward 3*64*128 = 24,576 weights and two norms of 64:
    # 36,992 of 2 bytes. Two of them on the first die, a table of 1000*64*2 = 128,000 bytes, twice unless tied, the last
    # norm, 128 bytes, and workspace 1024*(2*64 + 128)*2 = 524,288.
    tables = 128_000 if tied else 256_000
    need = 2 * 73_984 + tables + 128 + 524_288
    for short in (0, 1):
        instance = _instance(model__tied_embeddings=tied, hardware__dies=[{"at": [0, 0], "hbm_bytes": need - short}])
        assert _broken(instance) == ({"capacity_at_rest": [1]} if short else {})


def test_stages_and_creditors_are_numbered_to_2n() -> None:
    instance = _instance()
    row = {"stage": 3, "chunk": 0, "creditor": 2, "tokens": 8}
    assert _broken(instance, spill=[row]) == {}
    assert _broken(instance, spill=[{**row, "stage": 4}]) == {"spill_stage": [1]}
    assert _broken(instance, spill=[{**row, "creditor": 4}]) == {"spill_creditor": [8]}
