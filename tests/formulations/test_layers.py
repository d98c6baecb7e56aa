"""Layer splits: four ways to the same answer, rules by hand, and splits that people had to find themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.interface import Engine, EngineLimits, EngineOutcome
from formulations.layers import cpsat, milp
from formulations.layers.exact import best_split
from formulations.layers.problem import LayerProblem, stated
from formulations.layers.split import split_layers
from formulations.layers.variables import in_ticks
from instances.errors import InputError
from solver.backends.cpsat import solve_cpsat
from solver.backends.highs import solve_highs
from tests.formulations.layer_cases import brute_force, every_split, random_problem

LIMITS = EngineLimits(time_s=60.0, deterministic=True)
ENGINES: dict[str, Engine] = {"cpsat": solve_cpsat, "milp": solve_highs}


@settings(max_examples=300)
@given(seed=st.integers(0, 10**6))
def test_four_ways_agree(seed: int) -> None:
    problem = random_problem(seed)
    best = brute_force(problem)
    results = [best_split(problem), *(split_layers(problem, form, engine, LIMITS) for form, engine in ENGINES.items())]
    for found in results:
        if best is None:
            assert (found.status, found.stop_reason, found.layers) == ("infeasible", "proved", None)
            continue
        assert (found.status, found.stop_reason, found.gap) == ("optimal", "proved", 0.0)
        assert (found.slowest_s, found.memory_bytes) == best
        assert (found.bound_s, found.memory_bound_bytes) == best
        assert found.layers is not None
        assert problem.violations(found.layers) == []
        assert (problem.slowest_s(found.layers), problem.memory_bytes(found.layers)) == best


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_a_start_narrows_but_does_not_change(seed: int) -> None:
    problem = random_problem(seed)
    split = next(every_split(problem.layers, problem.stages))
    assert best_split(problem, split) == best_split(problem)


def test_value_by_hand() -> None:
    # Stages (2, 1): 1 + 2 + 5 = 8 s and 3 + 1 = 4 s; 10 + 20 + workspace 7 + embedding 4 = 41 bytes against 40, and
    # 30 + workspace 5 = 35 against 50.
    problem = stated(
        [1, 2, 3],
        2,
        extra_s=[5, 1],
        weight_bytes=[10, 10, 10],
        kv_bytes_per_token=[0, 5, 10],
        held_tokens=2,
        workspace_bytes=[3, 7, 5],
        extra_bytes=[4, 0],
        capacity_bytes=[40, 50],
    )
    assert problem.stage_seconds((2, 1)) == [8.0, 4.0]
    assert problem.stage_bytes((2, 1)) == [41.0, 35.0]
    assert (problem.slowest_s((2, 1)), problem.memory_bytes((2, 1))) == (8.0, 1.0)
    assert problem.violations((2, 1)) == ["capacity_at_rest: stage 0 is 1 bytes too full"]
    # (1, 2): 6 s and 6 s, 17 bytes and 30 + 30 - 10 + 7 = 57.
    assert problem.stage_bytes((1, 2)) == [17.0, 57.0]
    assert best_split(problem).status == "infeasible"


def test_violations_are_named() -> None:
    problem = stated([1, 1, 1], 2, forbidden_cuts=[1], needed=[True, True, False])
    assert problem.violations((1, 2)) == ["forbidden_cuts: stage 1 starts at layer 1"]
    assert [text.split(":")[0] for text in problem.violations((2, 1))] == ["attention_in_stage"]
    assert [text.split(":")[0] for text in problem.violations((3,))] == ["stage_nonempty"]
    assert [text.split(":")[0] for text in problem.violations((1, 1))] == ["layers_cover"]


@pytest.mark.parametrize("form", ["exact", *ENGINES])
class TestReported:
    """Splits from issue trackers; the numbers are of the reports, the assumptions stated beside them."""

    def _layers(self, form: str, problem: LayerProblem) -> tuple[int, ...]:
        found = best_split(problem) if form == "exact" else split_layers(problem, form, ENGINES[form], LIMITS)
        assert found.status == "optimal"
        assert found.layers is not None
        return found.layers

    def test_extra_prediction_layers_on_the_last_rank(self, form: str) -> None:
        """NVIDIA/TensorRT-LLM#9003: [16,15,15,15] peaks at 122 ms, [16,16,15,14] at 106, three extra layers at the end.

        Assumed: layers are equal, 6 ms each (a rank of 16 took 95 to 96), and the extra layers with their heads take
        what the last rank of 14 took beyond 14 layers, 106 - 84 = 22 ms. Then the splits peak at 112 and 106, and
        [16,16,16,13], which the report tried too, at 100.
        """
        problem = stated([6.0] * 61, 4, extra_s=[0, 0, 0, 22])
        assert problem.slowest_s((16, 15, 15, 15)) == 112.0
        assert problem.slowest_s((16, 16, 15, 14)) == 106.0
        layers = self._layers(form, problem)
        assert problem.slowest_s(layers) == 100.0
        assert layers == (16, 16, 16, 13)

    def test_forbidden_cut(self, form: str) -> None:
        """sglang#28525: 78 layers cut evenly start a stage at layer 39, which must not; 38 and 40 work.

        Assumed: layers come in pairs, only even ones may start a stage; the last stage has the head.
        """
        problem = stated([1.0] * 78, 2, extra_bytes=[0, 1], weight_bytes=1.0, forbidden_cuts=range(1, 78, 2))
        assert self._layers(form, problem) == (40, 38)
        free = stated([1.0] * 78, 2, weight_bytes=1.0)
        assert self._layers(form, free) == (39, 39)

    def test_head_on_the_last_stage(self, form: str) -> None:
        """vllm#14120: of 16 stages the last always runs out of memory, its head weighs about as much as two layers."""
        ends = [20, *[0] * 14, 20]
        problem = stated([1.0] * 80, 16, weight_bytes=10.0, extra_bytes=ends, capacity_bytes=65.0)
        assert [text.split(":")[0] for text in problem.violations((5,) * 16)] == ["capacity_at_rest"] * 2
        layers = self._layers(form, problem)
        # At the ends 20 + 50 bytes do not fit and 20 + 40 do, so some stage in between takes six.
        assert problem.violations(layers) == []
        assert (max(layers[0], layers[-1]), max(layers)) == (4, 6)

    def test_remainder_layers(self, form: str) -> None:
        """vllm#13839: layers that are left over belong to the middle, where there is neither embedding nor head."""
        problem = stated([1.0] * 6, 4, weight_bytes=10.0, extra_bytes=[8, 0, 0, 9])
        assert self._layers(form, problem) == (1, 2, 2, 1)

    def test_attention_in_every_stage(self, form: str) -> None:
        """vllm#42927: a stage without attention layers breaks the pages of the KV cache.

        Assumed: every third of nine layers has attention, 0, 3 and 6. Three stages can have one each, four cannot.
        """
        needed = [layer % 3 == 0 for layer in range(9)]
        assert best_split(stated([1.0] * 9, 4, needed=needed)).status == "infeasible"
        problem = stated([1, 1, 1, 1, 1, 1, 1, 5, 1], 3, needed=needed)
        layers = self._layers(form, problem)
        # The fast split (4, 3, 2), 6 s, has no attention on the last stage, which needs layer 6: 7 s.
        assert (problem.slowest_s(layers), problem.violations(layers)) == (7.0, [])
        late = stated([1, 1, 1, 9, 1, 1], 3, needed=[False, False, False, True, True, True])
        # Layers 0 to 3 belong together, for the first stage needs layer 3: 12 s; without the rule 9.
        assert self._layers(form, late) == (4, 1, 1)

    def test_tightest_stage_has_the_most_layers_for_its_memory(self, form: str) -> None:
        """vllm#34076: with memories of 80 and 40 the stage with less memory is not the one that is short of it."""
        problem = stated([1.0] * 9, 2, weight_bytes=10.0, capacity_bytes=[80, 40])
        # (5, 4) is fastest: 50 of 80, and 40 of 40.
        assert self._layers(form, problem) == (5, 4)
        tight = stated([1.0] * 9, 2, weight_bytes=10.0, capacity_bytes=[80, 39])
        assert self._layers(form, tight) == (6, 3)


def test_memory_above_capacity_is_summed() -> None:
    # Both splits take 2 s. (2, 1): 20 and 10 against 15 each: 5 too much; (1, 2): 10 and 40, so 25.
    problem = stated([1, 1, 1], 2, weight_bytes=[10, 10, 30], capacity_bytes=15.0, memory="excess")
    assert problem.memory_bytes((2, 1)) == 5.0 + 15.0
    assert problem.memory_bytes((1, 2)) == 25.0
    assert best_split(problem).layers == (2, 1)


def test_ties_go_to_even_splits() -> None:
    # No stage above 8 of 122 layers on 16: from (2, 8, ..., 8) on; ten stages of 8 and six of 7 are as even as can be.
    found = best_split(stated([1.0] * 122, 16))
    assert found.layers == (7,) * 6 + (8,) * 10


def test_many_layers() -> None:
    # 16 stages of 126 layers: 8 each but for two; embedding and head push the short ones to the ends.
    problem = stated([1.0] * 126, 16, weight_bytes=10.0, extra_bytes=[5, *[0] * 14, 5])
    assert best_split(problem, (7, 7) + (8,) * 14).layers == (7, *[8] * 14, 7)
    found = split_layers(problem, "cpsat", solve_cpsat, LIMITS)
    assert (found.status, found.slowest_s, found.memory_bytes) == ("optimal", 8.0, 80.0)


def test_ticks_round_down() -> None:
    problem = stated([0.5, 1.0], 1, weight_bytes=[3, 2**40], capacity_bytes=2.0**41)
    ticks = in_ticks(problem)
    # The largest numbers are a million ticks: 1e-6 s, and 2**41 / 1e6 bytes.
    assert (ticks.tick_s, ticks.tick_bytes) == (1e-6, 2.0**41 / 1e6)
    assert ticks.seconds.tolist() == [[500_000, 1_000_000]]
    assert (ticks.held.tolist(), ticks.capacity.tolist()) == ([0, 500_000], [1_000_000])
    whole = in_ticks(stated([1, 2], 1, weight_bytes=[3, 4]))
    assert (whole.tick_s, whole.tick_bytes) == (1.0, 1.0)


def test_exactly_full_memory_is_allowed_by_all() -> None:
    # Thirds of a byte do not round: 3 * (1/3 of 2**40) against 2**40.
    third = 2.0**40 / 3
    problem = stated([1.0] * 6, 2, weight_bytes=third, capacity_bytes=3 * third)
    assert best_split(problem).layers == (3, 3)
    for form, engine in ENGINES.items():
        assert split_layers(problem, form, engine, LIMITS).layers == (3, 3)


def test_start_is_taken_up() -> None:
    problem = random_problem(3)
    start = next(split for split in every_split(problem.layers, problem.stages) if not problem.violations(split))
    model = cpsat.build(problem, start).model.proto.solution_hint
    assert len(model.vars) == (problem.stages - 1) * problem.layers
    programmed = milp.build(problem, start)
    assert milp.extract(programmed, solve_highs(programmed.model, EngineLimits(time_s=0.0))) == start


def _only_a_bound(model: object, limits: EngineLimits) -> EngineOutcome:
    return EngineOutcome("unknown", "time_limit", None, 1.0, "UNKNOWN", "CP-SAT", "9", 0.0)


def test_engine_without_values() -> None:
    problem = stated([1, 1, 1], 2)
    found = split_layers(problem, "cpsat", _only_a_bound, LIMITS)
    assert (found.status, found.layers, found.bound_s, found.gap) == ("unknown", None, 1.0, None)
    with_start = split_layers(problem, "cpsat", _only_a_bound, LIMITS, (1, 2))
    assert (with_start.status, with_start.layers, with_start.gap) == ("feasible", (1, 2), 0.5)
    assert with_start.native_status == "UNKNOWN"
    refused = split_layers(problem, "cpsat", _only_a_bound, LIMITS, (2, 2))
    assert refused.layers is None


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("layer_s", {"layer_s": [[[1.0]]]}),
        ("layer_s", {"layer_s": [-1.0, 1.0]}),
        ("layer_s", {"layer_s": np.ones((3, 2))}),
        ("stages", {"stages": 3}),
        ("forbidden_cuts", {"forbidden_cuts": [2]}),
        ("needed", {"needed": [True]}),
        ("weight_bytes", {"weight_bytes": [1.0, np.inf]}),
        ("extra_s", {"extra_s": [1.0, 2.0, 3.0]}),
    ],
)
def test_bad_input_is_named(field: str, arguments: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        stated(**{"layer_s": [1.0, 1.0], "stages": 2, **arguments})  # type: ignore[arg-type]  # wrong on purpose
    assert caught.value.field == field
