"""The layer problem of an instance, and the splits that a search starts from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from formulations.layers.candidates import at_rest, even_split, fastest_split, mean_chunk_tokens
from formulations.layers.exact import best_split
from formulations.layers.from_instance import layer_problem
from formulations.layers.problem import ranges
from formulations.tables import fastest_die
from instances.costs import RooflineSpec
from instances.instance import Instance
from instances.pipeline import balanced_layers
from solver.exact.splits import free_splits
from solver.policies.layout import layer_split
from tests.brute_force import splits
from tests.builders import small_instance
from tests.searches import make_search
from tests.tiny import Recipe, recipes

FREE: dict[str, Any] = {"pipeline__layers": "free"}


@settings(max_examples=60)
@given(recipes())
def test_stages_take_and_hold_what_the_cost_model_says(recipe: Recipe) -> None:
    instance = recipe.instance()
    shape, size = instance.workload.shapes[0], recipe.integer(1, 3)
    chunk = recipe.integer(1, shape[0] - shape[1])
    problem = layer_problem(instance, size, shape, chunk)
    cost, die = instance.stage_cost, fastest_die(instance)
    starts = np.arange(0, shape[0] - shape[1], chunk)
    chunks = np.minimum(chunk, shape[0] - shape[1] - starts)
    for split in splits(instance):
        for stage, (first, stop) in enumerate(ranges(split)):
            last = stage == len(split) - 1
            seconds = cost.stage_seconds(die, first, stop, size, chunks, shape[1] + starts).sum()
            seconds += cost.head_seconds(die, size) if last else 0.0
            assert problem.stage_seconds(split)[stage] == pytest.approx(float(seconds), rel=1e-7)
            held = cost.weight_bytes(first, stop, embedding=stage == 0, head=last)
            held += float(cost.kv_held_bytes(first, stop, size, shape[0], chunk))
            held += cost.workspace_bytes(first, stop, size, chunk)
            assert problem.stage_bytes(split)[stage] == pytest.approx(held, rel=1e-12)
    assert problem.capacity_bytes.tolist() == [die.hbm_bytes] * instance.pipeline.stages
    assert problem.forbidden_cuts == set(instance.pipeline.forbidden_cuts)


def test_slow_and_small_dies_by_stage() -> None:
    instance = small_instance(**FREE, pipeline__stages=2)
    slow = instance.hardware.die.model_copy(update={"peak_flops": 0.5e12, "hbm_bytes": 1e6})
    problem = layer_problem(instance, 1, (2048, 0), 256, dies=[instance.hardware.die, slow])
    assert problem.layer_s[1, 0] > 1.5 * problem.layer_s[0, 0]
    assert problem.capacity_bytes.tolist() == [64e6, 1e6]
    fast_first = layer_problem(instance, 1, (2048, 0), 256, dies=[instance.hardware.die, slow], memory="even")
    assert best_split(fast_first).layers == (3, 1)


def test_attention_in_every_stage_counts_all_layers_with_kv() -> None:
    problem = layer_problem(small_instance(**FREE), 1, (2048, 0), 256, attention_each_stage=True)
    assert problem.needed.all()


def test_costs_of_the_whole_model_are_shared_equally() -> None:
    fitted = {"kind": "fitted", "chunk_s": 4.0, "prefix_s": 0, "token_s": 0, "pair_s": 0}
    problem = layer_problem(small_instance(costs=fitted, **FREE), 1, (2048, 0), 512)
    # Four chunks of 4 s on four layers; nothing is added.
    assert problem.layer_s.tolist() == [[4.0] * 4] * 4
    assert problem.extra_s.tolist() == [0.0] * 4
    assert not isinstance(small_instance(costs=fitted).costs, RooflineSpec)


def test_even_split_is_the_balanced_one_off_forbidden_cuts() -> None:
    assert even_split(small_instance(**FREE, pipeline__stages=3)) == balanced_layers(4, 3) == (1, 1, 2)
    assert even_split(small_instance(**FREE, pipeline__stages=2, pipeline__forbidden_cuts=[2])) == (1, 3)
    assert even_split(small_instance(**FREE, pipeline__stages=3, pipeline__forbidden_cuts=[1, 2])) is None


def test_fastest_split_gives_way_to_memory() -> None:
    changes = {**FREE, "pipeline__stages": 2, "model__vocab": 10, "pipeline__max_batch": 1}
    # A wave has 4 * 2*2*16*2 * 2048 = 1,048,576 bytes of KV on four layers.
    whole = 1_048_576.0
    roomy = small_instance(**changes)
    weights = roomy.stage_cost.weight_bytes(0, 1, embedding=False, head=False)
    assert fastest_split(roomy, 1, (2048, 0)) == (2, 2)
    # With room for the KV of a chunk only: the same split, to be spilled from.
    rest = at_rest(roomy, 1, (2048, 0))
    least = max(rest.stage_bytes((2, 2)))
    assert least < 2 * weights + whole / 2
    tight = small_instance(**changes, hardware__die__hbm_bytes=least)
    assert fastest_split(tight, 1, (2048, 0)) == (2, 2)
    # And where not even that fits, what comes closest.
    assert fastest_split(small_instance(**changes, hardware__die__hbm_bytes=least - 1), 1, (2048, 0)) == (2, 2)
    assert fastest_split(small_instance(**changes, pipeline__forbidden_cuts=[1, 2, 3]), 1, (2048, 0)) is None


def test_head_takes_a_layer_from_the_last_stage() -> None:
    """A vocabulary of ten millions: its head takes as long as many layers, and lies on the last stage."""
    instance = small_instance(**FREE, pipeline__stages=2, model__vocab=10**7, hardware__die__hbm_bytes="10 GB")
    assert fastest_split(instance, 1, (2048, 0)) == (3, 1)
    assert even_split(instance) == (2, 2)
    search = make_search(instance, "exact")
    assert free_splits(search) == [(3, 1), (2, 2)]
    assert layer_split(search) == (3, 1)


@pytest.mark.parametrize(
    ("tokens", "quantum", "most", "mean"),
    [(2048, 256, 8, 256), (2048, 256, 3, 768), (100, 256, 4, 100), (1000, 100, 4, 300)],
)
def test_mean_chunk(tokens: int, quantum: int, most: int, mean: int) -> None:
    # 8 quanta in 8 chunks are one each, in 3 chunks three; a short request is one chunk; 10 quanta in 4 chunks three.
    trace = {"trace": [{"tokens": tokens}]}
    instance = small_instance(workload=trace, pipeline__chunk_quantum=quantum, pipeline__max_chunks=most)
    assert mean_chunk_tokens(instance, (tokens, 0)) == mean


@settings(max_examples=40)
@given(recipes())
def test_splits_to_start_from_keep_the_rules(recipe: Recipe) -> None:
    instance = recipe.instance(tight=recipe.chance(50))
    search = make_search(instance, "exact")
    found = free_splits(search)
    assert found
    assert len(set(found)) == len(found)
    for split in (*found, layer_split(search)):
        assert split in splits(instance)
    if instance.fixed_layers is not None:
        assert found == [instance.fixed_layers]
    elif _any_fits(instance):
        longest = max(instance.workload.shapes)
        assert not any(at_rest(instance, 1, longest).violations(split) for split in found)


def _any_fits(instance: Instance) -> bool:
    memory = at_rest(instance, 1, max(instance.workload.shapes))
    return any(not memory.violations(split) for split in splits(instance))


def test_too_few_cuts() -> None:
    search = make_search(small_instance(**FREE, pipeline__stages=3, pipeline__forbidden_cuts=[1, 2]), "exact")
    assert free_splits(search) == []
    assert layer_split(search) == (1, 1, 2)
