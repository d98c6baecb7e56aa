"""Rules that clash: by hand, and against all dies, splits and chunk lists of tiny instances.

One layer of ``tests.tiny.line`` weighs 8 + 6 + 4 = 18 bytes, embedding and head 4 each, the last norm 2. The workspace
takes 2*2 + 1 = 5 bytes a token of the largest chunk, KV 2 bytes a token and layer.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.explain.core import Rules
from formulations.explain.cpsat import build
from formulations.explain.needs import Chunks, StageNeeds, least_largest_chunk
from formulations.explain.problem import RULES, clash_problem
from formulations.explain.uniform import memory_reason
from formulations.interface import EngineLimits
from instances.check import check
from instances.instance import Instance
from instances.plan import Plan
from instances.rules import REPLAY_RULES, STATIC_RULES
from solver.backends.cpsat import solve_cpsat
from solver.evaluate import Evaluator
from tests.brute_force import cut_lists, every_plan
from tests.builders import small_instance
from tests.formulations.explain_cases import some_plan_keeps
from tests.tiny import Data, Recipe, line, recipes


def rules_of(instance: Instance) -> Rules:
    return Rules(clash_problem(instance), solve_cpsat, EngineLimits(deterministic=True))


def on(hbm_bytes: float, layers: tuple[int, ...] = (1,), **parts: Data) -> Instance:
    return line(layers, hardware={"die": {"hbm_bytes": hbm_bytes}}, **parts)


def test_rules_that_can_clash_are_rules() -> None:
    assert set(RULES) <= {*STATIC_RULES, *REPLAY_RULES}


# Weights of one stage 18 + 4 + 4 + 2 = 28. Four tokens in at most four chunks of one: 5 of workspace, 2 of KV a chunk.
AT_REST: list[tuple[Instance, tuple[str, ...] | None]] = [
    # 28 + 5 at rest, 2 of KV for a chunk, and all 8 of KV on the one die: 28 + 5 + 8 = 41.
    (on(41), None),
    (on(40), ("memory_admission",)),
    # Not even a chunk of one token fits at rest.
    (on(32), ("capacity_at_rest",)),
    # One chunk of four tokens: 28 + 20 + 8 = 56; at rest 48.
    (on(56, pipeline={"max_chunks": 1}), None),
    (on(55, pipeline={"max_chunks": 1}), ("memory_admission", "chunk_count")),
    (on(47, pipeline={"max_chunks": 1}), ("chunk_count", "capacity_at_rest")),
    # The same by a quantum of four.
    (on(47, pipeline={"chunk_quantum": 4}), ("chunk_quantum", "capacity_at_rest")),
    # Three cached tokens stay on the die: 28 + 5 + 2*4 = 41 with the first chunk, 2*7 with the last: 47.
    (on(47, workload={"requests": 1, "tokens": 7, "cached_tokens": 3}), None),
    (on(46, workload={"requests": 1, "tokens": 7, "cached_tokens": 3}), ("memory_admission",)),
    # Stages of one layer and three: 3*18 + 4 + 2 + 5 = 65 at rest on the last one; two and two: 18*2 + 6 + 5 = 47.
    (on(64, (1, 3)), ("layers_given", "capacity_at_rest")),
    (on(64, (1, 3), pipeline={"layers": "free"}), None),
    # Three and one: 3*18 + 4 + 5 = 63 at rest on the first one, and 3*2 of KV.
    (on(64, (1, 3), pipeline={"layers": "free", "forbidden_cuts": [2]}), ("memory_admission", "forbidden_cuts")),
    (on(62, (1, 3), pipeline={"layers": "free", "forbidden_cuts": [2]}), ("forbidden_cuts", "capacity_at_rest")),
    (on(46, (1, 3), pipeline={"layers": "free"}), ("capacity_at_rest",)),
]


@pytest.mark.parametrize(("instance", "core"), AT_REST)
def test_cores_by_hand(instance: Instance, core: tuple[str, ...] | None) -> None:
    assert rules_of(instance).core() == core
    assert some_plan_keeps(instance, RULES) == (core is None)


PLACEMENT: list[tuple[dict[str, Any], tuple[str, ...] | None]] = [
    ({"hardware__disabled_dies": [[0, 1]]}, ("placement_connected", "placement_live")),
    ({"hardware__disabled_links": [[[0, 1], [0, 2]]]}, ("placement_connected",)),
    ({"hardware__disabled_links": [[[0, 0], [0, 1]]]}, None),
]


@pytest.mark.parametrize(("changes", "core"), PLACEMENT)
def test_dies_on_a_line(changes: dict[str, Any], core: tuple[str, ...] | None) -> None:
    instance = small_instance(hardware__rows=1, hardware__columns=4, pipeline__stages=3, **changes)
    assert rules_of(instance).core() == core
    assert rules_of(small_instance(pipeline__stages=2, hardware__topology="switch")).core() is None


def test_cuts() -> None:
    # Four layers on two stages, cut at layer 2; the nearest allowed cuts are 1 and 3.
    rules = rules_of(small_instance(pipeline__stages=2, pipeline__forbidden_cuts=[2]))
    assert rules.core() == ("layers_given", "forbidden_cuts")
    moved = rules.least_broken("layers_given")
    assert moved is not None
    assert moved[0] == 1
    assert moved[1] in ((1, 3), (3, 1))
    assert rules.least_broken("forbidden_cuts") == (1, (2, 2))
    rules = rules_of(small_instance(pipeline__stages=4, pipeline__forbidden_cuts=[1, 2], pipeline__layers="free"))
    assert rules.core() == ("forbidden_cuts",)
    assert rules.least_broken("forbidden_cuts") == (2, (1, 1, 1, 1))


@given(uncached=st.integers(1, 12), quantum=st.integers(1, 5), most=st.integers(1, 6))
def test_least_largest_chunk_is_that_of_all_lists(uncached: int, quantum: int, most: int) -> None:
    instance = line(
        (1,),
        workload={"trace": [{"tokens": uncached}]},
        pipeline={"chunk_quantum": quantum, "max_chunks": most},
    )
    assert least_largest_chunk(uncached, quantum, most) == min(map(max, cut_lists(instance, uncached)))


@st.composite
def equal_layers(draw: st.DrawFn) -> Instance:
    """Equal layers, of full attention, on equal dies: then what the model states is all there is to these rules."""
    rows, columns = draw(st.sampled_from([(1, 3), (1, 4), (2, 2)]))
    layers = draw(st.integers(2, 4))
    dies = [[row, column] for row in range(rows) for column in range(columns)]
    links = [[a, b] for a in dies for b in dies if a < b and abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    disabled = draw(st.lists(st.sampled_from(dies), unique_by=tuple, max_size=len(dies) - 2))
    stages = draw(st.integers(1, min(3, layers, len(dies) - len(disabled))))
    ends = sorted(draw(st.sets(st.integers(1, layers - 1), min_size=stages - 1, max_size=stages - 1)))
    split = [stop - start for start, stop in zip([0, *ends], [*ends, layers], strict=True)]
    cached = draw(st.integers(0, 2))
    host = draw(st.sampled_from([None, {"host_bytes": 6, "host_bytes_per_s": 1e9}]))
    die = {"peak_flops": 1e4, "hbm_bytes": draw(st.integers(20, 110)), "hbm_bytes_per_s": 1e9}
    return line(
        (1,),
        hardware={
            "rows": rows,
            "columns": columns,
            "disabled_dies": disabled,
            "disabled_links": draw(st.lists(st.sampled_from(links), max_size=2, unique_by=str)),
            "die": die,
            "host": host,
        },
        model={"layers": [{"pattern": ["k"], "repeat": layers}]},
        workload={"requests": 1, "tokens": cached + draw(st.integers(4, 5)), "cached_tokens": cached},
        pipeline={
            "stages": stages,
            "layers": draw(st.sampled_from(["free", "balanced", split])),
            "forbidden_cuts": sorted(draw(st.sets(st.integers(1, layers - 1), max_size=2))),
            "chunk_quantum": draw(st.integers(1, 4)),
            "max_chunks": draw(st.integers(1, 4)),
        },
    )


@settings(max_examples=60)
@given(instance=equal_layers(), kept=st.sets(st.sampled_from(RULES)))
def test_core_is_there_exactly_where_no_plan_keeps_the_rules_and_is_minimal(instance: Instance, kept: set[str]) -> None:
    rules = rules_of(instance)
    core = rules.core()
    assert (core is None) == some_plan_keeps(instance, RULES)
    if core is not None:
        assert not some_plan_keeps(instance, core)
        for rule in core:
            assert some_plan_keeps(instance, [other for other in core if other != rule])
    assert rules.clash(kept) != some_plan_keeps(instance, kept)
    by_engine = solve_cpsat(build(rules.problem, kept).model, EngineLimits(deterministic=True)).status
    assert rules.clash(kept) == (by_engine == "infeasible")


@settings(max_examples=40)
@given(recipe=recipes())
def test_what_clashes_cannot_be_kept(recipe: Recipe) -> None:
    """Layers of all kinds, dies that differ: the model is a relaxation there, and its claims hold all the same."""
    workload = {"requests": recipe.integer(1, 2), "tokens": 6, "cached_tokens": recipe.choice((0, 1))}
    instance = recipe.instance(tight=True, workload=workload)
    core = rules_of(instance).core()
    if core is not None:
        assert not some_plan_keeps(instance, core)


@settings(max_examples=25)
@given(recipe=recipes())
def test_no_plan_runs_where_rules_clash(recipe: Recipe) -> None:
    instance = recipe.instance(tight=True)
    if rules_of(instance).core() is None:
        return
    evaluator = Evaluator(instance)
    for number, plan in enumerate(every_plan(instance, spill=True)):
        if number >= 300:
            break
        assert evaluator.full(plan).value is None


def test_needs_of_windows_and_caches() -> None:
    """A window of 3 keeps what it holds at home: 2 heads * 2 * head_dim 2 * 2 bytes = 16 bytes a token."""
    attention = {"kind": "sliding", "heads": 2, "kv_heads": 2, "head_dim": 2, "window": 3}
    kinds = {"k": {"attention": attention, "feed_forward": {"kind": "dense", "width": 1}}}
    instance = line((1,), model={"kinds": kinds, "kv_bytes": 2}, workload={"requests": 1, "tokens": 8})
    needs = StageNeeds(instance, Chunks(count=True, quantum=True))
    # Eight tokens in four chunks of two: the last holds min(8, 3 + 1) tokens at least, the largest min(2, 3 + 2).
    assert needs.largest_chunk == 2
    assert needs.home_kv_bytes(0, 1) == 4 * 16
    assert needs.wave_kv_bytes(0, 1) == 4 * 16


@settings(max_examples=60)
@given(recipe=recipes())
def test_nothing_clashes_where_a_plan_runs(recipe: Recipe) -> None:
    """A random plan with spill, on the least memory with which it runs."""
    instance = recipe.instance()
    plan = recipe.plan(instance)
    if any(not finding.ok for finding in check(instance, plan)):
        return
    low, high = 0, int(max(Evaluator(instance).replay(plan).peak_memory_bytes)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _runs(instance, plan, middle) else (middle, high)
    tight = _with_memory(instance, high)
    assert _runs(instance, plan, high)
    assert rules_of(tight).core() is None
    assert memory_reason(tight) is None


def _with_memory(instance: Instance, size: int) -> Instance:
    hardware = instance.hardware
    die = hardware.die.model_copy(update={"hbm_bytes": float(size)})
    return instance.model_copy(update={"hardware": hardware.model_copy(update={"die": die})})


def _runs(instance: Instance, plan: Plan, size: int) -> bool:
    tight = _with_memory(instance, size)
    return Evaluator(tight).full(plan.model_copy(update={"instance": tight.fingerprint})).value is not None
