"""Times of mixed iterations: one piece is a chunk, several share weights and overheads."""

from __future__ import annotations

import math
from typing import Any

import pytest

from instances.errors import InputError
from instances.instance import Instance
from solver.serving.jobs import Batch, Piece
from solver.serving.timing import IterationCost
from tests.builders import small_instance
from tests.solver.serving.building import FITTED, MIXTURE

SLIDING = {
    "attention": {"kind": "sliding", "heads": 4, "kv_heads": 2, "head_dim": 16, "window": 100},
    "feed_forward": {"kind": "dense", "width": 128},
}
PLACES = ((0, 0), (0, 1), (1, 1), (1, 0))


def piece(job: int, tokens: int, context: int, *, decode: bool = False, emits: bool = False) -> Piece:
    return Piece(job, tokens, context, decode, emits)


def cost_of(instance: Instance, layers: tuple[int, ...] = (1, 1, 1, 1)) -> IterationCost:
    return IterationCost(instance, layers, PLACES[: len(layers)])


@pytest.mark.parametrize("changes", [{}, {"costs": {**FITTED, "pair_s": 1e-4, "prefix_s": 1e-3}}])
def test_one_piece_takes_what_a_chunk_takes(changes: dict[str, Any]) -> None:
    instance = small_instance(**changes)
    found = cost_of(instance).seconds(Batch((piece(0, 300, 700, emits=True),)))
    expected = [
        float(instance.stage_cost.stage_seconds(instance.hardware.die, s, s + 1, 1, 300, 700, head=s == 3))
        for s in range(4)
    ]
    assert found == pytest.approx(expected, rel=1e-12)


def test_mixed_pieces_read_weights_once_and_attend_each_on_its_own() -> None:
    instance = small_instance()
    die, cost = instance.hardware.die, instance.stage_cost
    mixed = Batch(
        (piece(0, 1, 900, decode=True, emits=True), piece(1, 1, 50, decode=True, emits=True), piece(2, 64, 128))
    )
    whole = cost.layer_seconds(die, "layer", 1, 66, 0)
    alone = [cost.layer_seconds(die, "layer", 1, c, p).attention for c, p in ((1, 900), (1, 50), (64, 128))]
    # 66 tokens through the matrices, three attentions, one overhead each of layer and chunk; two tokens come out.
    layer = float(whole.gemm + whole.vector) + 1e-6 + float(sum(alone)) + 5e-6
    expected = [layer] * 3 + [layer + cost.head_seconds(die, 2)]
    assert cost_of(instance).seconds(mixed) == pytest.approx(expected, rel=1e-12)


def test_fitted_costs_pay_the_chunk_once() -> None:
    mixed = Batch((piece(0, 1, 9, decode=True), piece(1, 7, 0)))
    # (1 s + 8 tokens of 0.25 s) on four stages of one layer each.
    assert cost_of(small_instance(costs=FITTED)).seconds(mixed) == pytest.approx([0.75] * 4)


def test_layers_outside_a_group_see_decodes_alone() -> None:
    instance = small_instance(costs=FITTED)
    mixed = Batch((piece(0, 1, 9, decode=True), piece(1, 7, 0)), layers=(1, 2))
    # A layer takes a quarter of 1 s + 0.25 s a token: 8 tokens on layer 1, one elsewhere.
    assert cost_of(instance, (2, 2)).seconds(mixed) == pytest.approx([0.3125 + 0.75, 0.625])
    # Without decodes nothing runs there, and nothing is paid.
    assert cost_of(instance, (2, 2)).seconds(Batch((piece(1, 7, 0),), layers=(1, 2))) == pytest.approx([0.6875, 0])


def test_expert_bytes_follow_the_formula() -> None:
    instance = small_instance(model__kinds={"layer": MIXTURE})
    # 8 experts of 3*64*32 weights of 2 bytes, 2 a token, 4 layers, 10 tokens: E*(1-(1-k/E)^n)*w each.
    expected = 4 * 8 * (1 - (1 - 2 / 8) ** 10) * 3 * 64 * 32 * 2
    assert cost_of(instance).expert_bytes(Batch((piece(0, 10, 0),))) == pytest.approx(expected)
    inside = Batch((piece(0, 9, 0), piece(1, 1, 5, decode=True)), layers=(0, 1))
    # 10 tokens on the first layer, the decode alone on three: 2 experts each.
    assert cost_of(instance).expert_bytes(inside) == pytest.approx(expected / 4 + 3 * 2 * 3 * 64 * 32 * 2)


@pytest.mark.parametrize("tokens", [0, 1, 90, 130, 1000])
def test_kv_is_that_of_the_cost_model(tokens: int) -> None:
    kinds = {"layer": small_instance().model.kinds["layer"].model_dump(mode="json"), "window": SLIDING}
    layers = [{"pattern": ["layer", "window"], "repeat": 2}]
    instance = small_instance(model__kinds=kinds, model__layers=layers, model__kv_bytes=0.5)
    held = [math.ceil(instance.stage_cost.kv_held_bytes(s, s + 1, 1, tokens, 33)) for s in range(4)]
    assert cost_of(instance).held_bytes(tokens, 33) == held


def test_a_table_says_nothing_of_mixed_iterations() -> None:
    rows = [[256, 0, 1.0], [256, 256, 1.5], [512, 0, 2.0], [512, 512, 3.0]]
    with pytest.raises(InputError, match=r"costs\.kind.*mixed iterations"):
        cost_of(small_instance(costs={"kind": "table", "rows": rows}))
