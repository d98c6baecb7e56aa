"""Largest chunks that memory admits: by hand, and claims of infeasibility against plans that are tried.

One layer of ``tests.tiny.line`` weighs 8 + 6 + 4 = 18 bytes, embedding and head 4 each, the last norm 2: 28 bytes on a
single stage. The workspace takes 2*2 + 1 = 5 bytes a token of the largest chunk, KV 2 bytes a token and layer.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings

from formulations.admissible import admissible_chunk_tokens
from formulations.bounds import TimeBounds
from formulations.tables import StageTables
from instances.hardware import DieOverride
from instances.instance import Instance
from instances.plan import Plan, SpillRow
from instances.workload import form_waves
from solver.evaluate import Evaluator
from tests.brute_force import batches, every_plan
from tests.tiny import Data, Recipe, line, recipes


def _on(
    hbm_bytes: float, *, host_bytes: float | None = None, layers: tuple[int, ...] = (1,), **parts: Data
) -> Instance:
    host = None if host_bytes is None else {"host_bytes": host_bytes, "host_bytes_per_s": 1000}
    return line(layers, hardware={"die": {"hbm_bytes": hbm_bytes}, "host": host}, **parts)


def _runs(instance: Instance, sizes: tuple[int, ...], spill: tuple[SpillRow, ...] = ()) -> bool:
    plan = Plan(
        instance=instance.fingerprint,
        batch=1,
        layers=instance.fixed_layers or (),
        placement=tuple((0, stage) for stage in range(instance.pipeline.stages)),
        chunks={str(sum(sizes)): sizes},
        spill=spill,
    )
    return Evaluator(instance).value(plan) is not None


def test_all_kv_of_a_wave_beside_the_workspace() -> None:
    # 28 + 5c + 4*2 <= 49: c = 2. The plan of 2 + 2 tokens runs (46 bytes), that of 3 + 1 does not (51).
    instance = _on(49)
    assert admissible_chunk_tokens(instance, 1, (4, 0)) == (2, None)
    assert _runs(instance, (2, 2))
    assert not _runs(instance, (3, 1))


def test_own_kv_and_workspace_of_the_largest_chunk() -> None:
    # With a host the KV of earlier chunks may leave: 28 + (5 + 2)c <= 49: c = 3, exactly full at the start of chunk 0.
    instance = _on(49, host_bytes=100)
    assert admissible_chunk_tokens(instance, 1, (4, 0)) == (3, None)
    assert _runs(instance, (3, 1), (SpillRow(stage=0, chunk=0, creditor="host", tokens=3),))
    assert admissible_chunk_tokens(_on(48.5, host_bytes=100), 1, (4, 0)) == (2, None)


def test_host_that_is_too_small() -> None:
    # Die and host have 21 + 1 bytes beside the weights, 8 of them for KV: 5c <= 14.
    assert admissible_chunk_tokens(_on(49, host_bytes=1), 1, (4, 0)) == (2, None)
    # 21 + 2: 5c <= 15. With one token of chunk 0 on the host: 28 + 15 + 6 = 49, then 43 + 4 + 2 = 49.
    instance = _on(49, host_bytes=2)
    assert admissible_chunk_tokens(instance, 1, (4, 0)) == (3, None)
    assert _runs(instance, (3, 1), (SpillRow(stage=0, chunk=0, creditor="host", tokens=1),))


def test_cached_prefix_counts_as_kv() -> None:
    # 4 new tokens after 3 cached: 28 + 5c + 7*2 <= 49 leaves c = 1.
    workload = {"requests": 1, "tokens": 7, "cached_tokens": 3}
    instance = _on(49, workload=workload)
    assert admissible_chunk_tokens(instance, 1, (7, 3)) == (1, None)
    assert _runs(instance, (1, 1, 1, 1))
    assert not _runs(instance, (2, 1, 1))


def test_memory_of_all_stages_together() -> None:
    # Two stages weigh 22 and 18 + 6 = 24 bytes. All dies have 2*49 - 46 - 8 = 44 for two workspaces: c = 4; a die alone
    # admits (49 - 24) / 7: c = 3.
    instance = _on(49, layers=(1, 1))
    assert admissible_chunk_tokens(instance, 1, (4, 0)) == (3, None)
    assert _runs(instance, (3, 1))


def test_free_layers_have_at_least_one_each() -> None:
    # One layer of 18 bytes, embedding and head may be elsewhere: 18 + 7c <= 39.
    instance = _on(39, layers=(2, 1), pipeline={"layers": "free"})
    assert admissible_chunk_tokens(instance, 1, (4, 0))[0] <= 3


@pytest.mark.parametrize(
    ("hbm_bytes", "tokens", "rule"),
    [
        # 28 + 7 = 35 for a chunk of one token.
        (34.9, 4, "capacity_at_rest"),
        # 28 + 5 + 8 = 41 with the KV of four tokens.
        (40.9, 4, "memory_admission"),
    ],
)
def test_nothing_fits(hbm_bytes: float, tokens: int, rule: str) -> None:
    limit, reason = admissible_chunk_tokens(_on(hbm_bytes), 1, (tokens, 0))
    assert limit == 0
    assert reason is not None
    assert rule in reason
    assert admissible_chunk_tokens(_on(41), 1, (tokens, 0)) == (1, None)


def test_too_few_chunks_of_the_largest_size() -> None:
    instance = _on(49, pipeline={"max_chunks": 1})
    found = TimeBounds(instance, StageTables(instance)).batch(1)
    assert found.bound_s is None
    assert found.reason is not None
    assert "do not cover 4 tokens" in found.reason
    assert not any(Evaluator(instance).value(plan) for plan in every_plan(instance))


def test_exactly_full_with_widths_that_no_float_has() -> None:
    """The division once rounded down past the chunk that fits."""
    ran = 0
    for kv_bytes, activation_bytes, tokens in product((0.1, 0.3, 0.7), (0.1, 0.3), (2, 3, 6, 7, 11)):
        full = 28 + tokens * (5 * Fraction(str(activation_bytes)) + 2 * Fraction(str(kv_bytes)))
        widths: Data = {"kv_bytes": kv_bytes, "activation_bytes": activation_bytes}
        instance = _on(float(full), model=widths, workload={"requests": 1, "tokens": tokens})
        if _runs(instance, (tokens,)):
            ran += 1
            assert admissible_chunk_tokens(instance, 1, (tokens, 0)) == (tokens, None)
    assert ran >= 10


@settings(max_examples=100)
@given(recipes())
def test_no_plan_with_partial_spill_runs_where_none_can(recipe: Recipe) -> None:
    """Reasons and limits hold for spill of single tokens too, which the exhausted spaces leave out."""
    instance = recipe.instance(tight=True)
    if recipe.chance(50):
        instance = _with_unlike_memories(recipe, instance)
    proved = TimeBounds(instance, StageTables(instance))
    found = {batch: proved.batch(batch) for batch in batches(instance)}
    for _ in range(8):
        plan = recipe.plan(instance, spill_percent=60)
        plan = plan.model_copy(update={"batch": min(plan.batch, max(found))})
        value = Evaluator(instance).value(plan)
        if value is None:
            continue
        bound = found[plan.batch].bound_s
        assert bound is not None, found[plan.batch].reason
        assert bound <= value
        for wave in form_waves(instance.workload.all_requests(), plan.batch):
            largest = max(plan.chunk_sizes(wave.shape[0] - wave.shape[1]))
            assert largest <= admissible_chunk_tokens(instance, wave.size, wave.shape)[0]


def _with_unlike_memories(recipe: Recipe, instance: Instance) -> Instance:
    hardware = instance.hardware
    dies = tuple(
        DieOverride(at=die, hbm_bytes=hardware.die.hbm_bytes * recipe.choice((0.5, 0.8, 0.9, 1.1, 1.5, 3.0)))
        for die in hardware.live_dies
    )
    return instance.model_copy(update={"hardware": hardware.model_copy(update={"dies": dies})})


def _two_stages(bytes_of_dies: tuple[float, ...], layers: tuple[int, ...] | str = (1, 1)) -> Instance:
    dies = [{"at": [0, column], "hbm_bytes": amount} for column, amount in enumerate(bytes_of_dies)]
    host = {"host_bytes": 1000, "host_bytes_per_s": 1000}
    hardware: Data = {"columns": len(bytes_of_dies), "die": {"hbm_bytes": 1000}, "dies": dies, "host": host}
    split = (1, 1) if isinstance(layers, str) else layers
    return line(split, hardware=hardware, pipeline={"layers": layers} if isinstance(layers, str) else {})


def test_a_die_for_every_stage() -> None:
    # Stage 0 weighs 18 + 4 = 22 bytes and stage 1 18 + 4 + 2 = 24; a chunk of c tokens takes (5 + 2)c on each.
    # 22 + 7*3 = 43 and 24 + 7*3 = 45 fit on 43 and 45 bytes in this order, and 24 + 7*3 does not fit on 44.
    for amounts, most in (((43, 45), 3), ((45, 43), 3), ((43, 44), 2), ((100, 43), 3), ((29, 1000), 1)):
        assert _limit(_two_stages(amounts)) == (most, None)


def test_no_die_for_one_of_the_stages() -> None:
    # 22 + 7 = 29 and 24 + 7 = 31 are needed for one token.
    needed = "capacity_at_rest: {} of the stages need at least {} bytes each, which {} of the enabled dies have,"
    assert _limit(_two_stages((28, 1000))) == (0, f"{needed.format(2, 29, 1)} at batch 1")
    assert _limit(_two_stages((30, 30.5))) == (
        0,
        "capacity_at_rest: layers 1..1 need 31 bytes on a die of 30.5 at batch 1",
    )
    # A third die is another choice.
    assert _limit(_two_stages((28, 31, 29))) == (1, None)
    # With a free split a layer of 18 + 7 bytes is all that is known of a stage.
    assert _limit(_two_stages((24, 1000), "free"))[1] is not None
    assert _limit(_two_stages((25, 1000), "free")) == (1, None)


def _limit(instance: Instance) -> tuple[int, str | None]:
    return admissible_chunk_tokens(instance, 1, (4, 0))
