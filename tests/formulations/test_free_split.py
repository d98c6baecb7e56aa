"""The bound for every layer split: by hand, against every split of small instances, and with errors put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import bounds
from formulations.bounds import TimeBounds
from formulations.free_split import search
from formulations.free_split.cases import ReferenceLayers, SplitCase, WaveKind
from formulations.free_split.parts import Parts, may_be_stage
from formulations.free_split.search import SplitSearch
from formulations.stage_path import StagePath
from formulations.tables import StageTables
from instances.instance import Instance
from solver.evaluate import Evaluator
from tests.brute_force import batches, cut_lists
from tests.formulations.free_split_cases import MOST_PLANS, best_value, every_split_and_cut, plans_of, random_instance
from tests.formulations.layer_cases import every_split
from tests.tiny import Recipe, line, recipes

# Layers of one kind, all cuts allowed, on stages: 2 tokens take 0.3 s, and so on.
SMOOTH = {"chunk_s": 0.3, "token_s": 0.2, "pair_s": 0.05}


def _bound(instance: Instance, batch: int = 1) -> float:
    found = TimeBounds(instance, StageTables(instance)).batch(batch).bound_s
    assert found is not None
    return found


@pytest.mark.parametrize(("stages", "layers"), [(2, 2), (2, 4), (3, 6), (4, 4)])
@pytest.mark.parametrize("requests", [1, 2, 4])
def test_equal_stages_are_best_and_proved(stages: int, layers: int, requests: int) -> None:
    """Where equal stages are possible, W*sum t + (N-1)*max t of the best cuts is the least over all splits too.

    Times are such that chunks are about equal, for else an unequal split could be better.
    """
    workload = {"requests": requests, "tokens": 6}
    split = [layers // stages] * stages
    instance = line(split, fitted={**SMOOTH, "pair_s": 0}, workload=workload, pipeline={"layers": "free"})

    def closed_form(sizes: tuple[int, ...]) -> float:
        times = [(0.3 + 0.2 * (e - p)) / stages for p, e in pairwise((0, *accumulate(sizes)))]
        return requests * sum(times) + (stages - 1) * max(times)

    expected = min(closed_form(sizes) for sizes in cut_lists(instance, 6))
    best = best_value(instance, 1)
    assert best == pytest.approx(expected, rel=1e-9)
    assert _bound(instance) == pytest.approx(expected, rel=1e-7)


def test_an_unequal_split_is_not_cut_off() -> None:
    """Specification section 5: chunks of 1, 1, 1, 1 and 10 on two stages take 12 in equal halves, 10.96 unequally."""
    fitted = {"token_s": 1.0, "prefix_s": 0.0, "pair_s": 0.0}
    instance = line((2, 2), fitted=fitted, workload={"requests": 1, "tokens": 14}, pipeline={"layers": "free"})
    best = best_value(instance, 1)
    assert best is not None
    assert _bound(instance) <= best


def test_bound_of_a_model_that_does_not_divide() -> None:
    """126 layers on 16 stages, many waves: two stages have 7 layers, or one 6, and the best of these splits is met."""
    layers: dict[str, object] = {"layers": [{"pattern": ["k"], "repeat": 126}]}
    split = [7] * 2 + [8] * 14
    given = line(
        split,
        fitted=SMOOTH,
        workload={"requests": 20, "tokens": 24},
        pipeline={"max_chunks": 12},
        model=layers,
        hardware={"link_bytes_per_s": 1e4},
    )
    free = given.with_pipeline(layers="free")
    fixed = [
        _bound(given.with_pipeline(layers=tuple(each)))
        for each in (split, split[::-1], [7, *split[2:], 7], [6, *[8] * 15], [*[8] * 15, 6])
    ]
    assert 0.999 * min(fixed) <= _bound(free) <= min(fixed) * (1 + 1e-6)


@settings(max_examples=80)
@given(recipes())
def test_no_split_beats_the_bound(recipe: Recipe) -> None:
    instance = random_instance(recipe)
    if plans_of(instance) > MOST_PLANS:
        return
    proved = TimeBounds(instance, StageTables(instance))
    for batch in batches(instance):
        best = best_value(instance, batch)
        found = proved.batch(batch)
        if best is not None:
            assert found.bound_s is not None
            assert found.bound_s <= best


@settings(max_examples=30)
@given(recipes())
def test_little_memory_forbids_no_split_that_runs(recipe: Recipe) -> None:
    instance = recipe.with_memory(random_instance(recipe))
    if plans_of(instance) > MOST_PLANS:
        return
    plans = list(every_split_and_cut(instance, 1))
    runs = [plan for plan in plans if Evaluator(instance).full(plan).value is not None]
    kinds: dict[WaveKind, int] = {(shape, 1): 10**6 for shape in instance.workload.shapes}
    allowed = may_be_stage(instance, kinds, instance.pipeline.max_chunks)
    for plan in runs:
        for start, length in zip(plan.layer_starts, plan.layers, strict=True):
            assert allowed(np.array([start]), length).all()
    best = best_value(instance, 1)
    found = TimeBounds(instance, StageTables(instance)).batch(1).bound_s
    assert best is None or (found is not None and found <= best)


def _hunted(count: int) -> list[tuple[Instance, float]]:
    """Instances with the best value of single requests."""
    cases = []
    for number in range(count):
        instance = random_instance(Recipe.seeded(21, number))
        if plans_of(instance) <= MOST_PLANS:
            best = best_value(instance, 1)
            assert best is not None
            cases.append((instance, best))
    return cases


@pytest.fixture(scope="module")
def hunted() -> list[tuple[Instance, float]]:
    return _hunted(70)


def _caught(cases: Sequence[tuple[Instance, float]]) -> int:
    return sum(_bound(instance) > best for instance, best in cases)


PATH_MUTANTS: dict[str, Callable[[StagePath], StagePath]] = {
    "work": lambda path: replace(path, work=path.work * 1.02),
    "crossing": lambda path: replace(path, crossing=path.crossing * 1.02),
    "entry": lambda path: replace(path, entry=path.entry * 1.02),
    "way_out": lambda path: replace(path, way_out=path.way_out * 1.02),
}


@pytest.mark.parametrize("part", PATH_MUTANTS)
def test_each_part_of_a_case_is_as_large_as_can_be(
    hunted: list[tuple[Instance, float]], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ReferenceLayers.paths

    def wrong(self: ReferenceLayers, case: SplitCase) -> dict[WaveKind, StagePath]:
        return {kind: PATH_MUTANTS[part](path) for kind, path in right(self, case).items()}

    assert _caught(hunted) == 0
    monkeypatch.setattr(ReferenceLayers, "paths", wrong)
    assert _caught(hunted) >= 1


def test_a_width_that_is_too_small_is_caught(
    hunted: list[tuple[Instance, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = search._Level.width
    monkeypatch.setattr(search._Level, "width", lambda self, below: max(0, right(self, below) - 1))
    assert _caught(hunted) >= 1


def test_the_average_stage_remains_a_bound(
    hunted: list[tuple[Instance, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new bound is never weaker than the old one, and most often stronger."""
    new = [_bound(instance) for instance, _ in hunted]
    monkeypatch.setattr(bounds.TimeBounds, "_any_split", lambda self, average, *args, **kwargs: average)
    old = [_bound(instance) for instance, _ in hunted]
    assert all(now >= before for now, before in zip(new, old, strict=True))
    assert sum(now > 1.001 * before for now, before in zip(new, old, strict=True)) > len(hunted) / 2


def _anything(starts: np.ndarray, length: int) -> np.ndarray:
    return np.ones(len(starts), dtype=bool)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_least_sum_over_splits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = int(rng.integers(1, 8))
    stages = int(rng.integers(1, layers + 1))
    weights = rng.integers(0, 4, layers) / 2
    weights[0] += 1
    forbidden = set(rng.choice(np.arange(1, layers + 1), int(rng.integers(0, 2)), replace=False).tolist()) - {layers}
    parts = Parts(weights, stages, lambda starts, length: _keeps(forbidden, starts, length))
    steps = [(level, float(rng.integers(1, 4))) for level in sorted(rng.choice(np.arange(1, 8), 2, replace=False) / 2)]
    cap = float(rng.choice([1.0, 2.0, parts.limit]))
    sums = []
    for split in every_split(layers, stages):
        ends = [0, *accumulate(split)]
        held = [float(weights[start:stop].sum()) for start, stop in pairwise(ends)]
        if max(held) <= cap and not forbidden & set(ends[1:-1]):
            sums.append(sum(step for weight in held for level, step in steps if weight >= level))
    assert parts.least(steps, cap) == min(sums, default=np.inf)


def _keeps(forbidden: set[int], starts: np.ndarray, length: int) -> np.ndarray:
    return np.array([start not in forbidden and start + length not in forbidden for start in starts.tolist()])


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6), concave=st.booleans())
def test_search_is_below_every_split(seed: int, concave: bool) -> None:
    """With made-up bounds of cases: no split has, over its own cases, a smaller one than the search returns."""
    rng = np.random.default_rng(seed)
    layers = int(rng.integers(2, 9))
    stages = int(rng.integers(2, min(5, layers) + 1))
    weights = rng.integers(1, 3, layers).astype(float)
    # Concave in (f, r): the least of three planes; growing with the weight; a stage alone is the least of its cases.
    planes = rng.integers(-3, 4, (3, 2)) + 0.5
    start = rng.integers(8, 20, 3)

    def case_bound(weight: float, front: int, back: int) -> float:
        return float(weight * 3 + (start + planes @ [front, back]).min())

    lowest = min(case_bound(0.0, f, r) for f in range(stages) for r in range(stages - f))

    def evaluate(case: SplitCase, careful: bool) -> float:
        if case.front is None or case.back is None:
            return case.weight * 3 + lowest
        return case_bound(case.weight, case.front, case.back)

    parts = Parts(weights, stages, _anything)
    found = SplitSearch(parts, evaluate, concave, np.inf, lambda: False).run()
    values = []
    for split in every_split(layers, stages):
        held = [float(weights[a:b].sum()) for a, b in pairwise((0, *accumulate(split)))]
        reached = {level: [s for s, weight in enumerate(held) if weight >= level] for level in parts.levels.tolist()}
        own = [case_bound(level, at[0], stages - 1 - at[-1]) for level, at in reached.items() if at]
        values.append(max(own))
    assert found <= min(values) + 1e-9


def test_search_finds_the_case_that_decides() -> None:
    # Five layers on three stages, one may have 1 and two have 2. A level of 2 costs 10, and 1 more for each stage that
    # is inside; two stages have it at least, so 12 is proved, and (2, 2, 1) has no more.
    def evaluate(case: SplitCase, careful: bool) -> float:
        if case.front is None or case.back is None:
            return 5.0 * case.weight
        return 5.0 * case.weight + 3 - case.front - case.back

    assert SplitSearch(Parts(np.ones(5), 3, _anything), evaluate, True, np.inf, lambda: False).run() == 12.0
    # What is enough ends the search, and out of time it has nothing.
    assert SplitSearch(Parts(np.ones(5), 3, _anything), evaluate, True, 10.0, lambda: False).run() >= 10.0
    assert SplitSearch(Parts(np.ones(5), 3, _anything), evaluate, True, np.inf, lambda: True).run() == -np.inf


def test_weights_of_mixed_layers() -> None:
    """A second kind weighs what it takes at least, relative to the first, for any chunk."""
    kinds = {
        "a": {"attention": _full(1), "feed_forward": {"kind": "dense", "width": 8}},
        "b": {"attention": _full(3), "feed_forward": {"kind": "dense", "width": 8}},
    }
    model = {"kinds": kinds, "layers": [{"pattern": ["a", "a", "b"]}]}
    instance = line((1, 1, 1), model=model, pipeline={"layers": "free"}, workload={"requests": 1, "tokens": 4})
    tables = StageTables(instance)
    kind: WaveKind = ((4, 0), 1)
    layers = ReferenceLayers(tables, {kind: 4})
    die = instance.hardware.best_die
    a = tables.stage(die, 0, 1, 1, (4, 0), head=False)
    b = tables.stage(die, 2, 3, 1, (4, 0), head=False)
    chunks = np.isfinite(a)
    ratio = float((b[chunks] / a[chunks]).min())
    assert layers.weights.tolist() == [1.0, 1.0, pytest.approx(ratio, abs=2e-6)]
    assert layers.weights[2] <= ratio
    assert 1.0 < ratio < 3.0


def _full(heads: int) -> dict[str, object]:
    return {"kind": "full", "heads": heads, "kv_heads": 1, "head_dim": 2}
