"""Which rules clash, as a CP-SAT model: every rule is an assumption that the engine may name as a reason.

Variables as in ``formulations.layers``: ``before[s,l]``, layer l lies on a stage before s. Beside them ``uses[g]``, the
plan uses dies of group g, and ``on[s,g,k]``, stage s sits on a die of the k-th memory of group g. Memory is a set of
clauses, "these layers are too many for a stage on such a die", so nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, pairwise, product
from typing import Literal

import numpy as np
from ortools.sat.python import cp_model

from formulations.explain.needs import EVERY_CHUNKS, Chunks, StageNeeds, smallest_too_large
from formulations.explain.problem import RULES, ClashProblem
from formulations.interface import EngineOutcome
from formulations.layers import variables
from formulations.layers.problem import LayerProblem, stated
from formulations.layers.variables import At, before_name

Soft = Literal["layers_given", "forbidden_cuts"]
Clause = Sequence[cp_model.LiteralT]


@dataclass
class ClashModel:
    """The model and its variables.

    The rules of ``kept`` are stated, and no others; ``assumed`` is empty, or has a literal for each of them.
    """

    problem: ClashProblem
    kept: frozenset[str]
    model: cp_model.CpModel
    before: dict[At, cp_model.IntVar]
    uses: list[cp_model.IntVar]
    on: dict[tuple[int, int, int], cp_model.IntVar]
    assumed: dict[str, cp_model.IntVar] = field(default_factory=dict)

    def state(self, clause: Clause, *rules: str) -> None:
        """Add a clause that holds while all these rules are kept."""
        if self.kept.issuperset(rules):
            self.model.add_bool_or([*clause, *(~self.assumed[rule] for rule in rules if self.assumed)])


def build(problem: ClashProblem, kept: Collection[str] = RULES, *, assume: bool = False) -> ClashModel:
    """The model with these rules, stated or (``assume``) assumed."""
    model = cp_model.CpModel()
    before: dict[At, cp_model.IntVar] = {}
    for s in range(problem.stages + 1):
        for layer in range(problem.layers):
            low, high = int(s == problem.stages), int(s > 0)
            before[s, layer] = model.new_int_var(low, high, before_name(s, layer))
    clash = ClashModel(
        problem=problem,
        kept=frozenset(kept),
        model=model,
        before=before,
        uses=[model.new_bool_var(f"uses[g{g}]") for g in range(len(problem.groups))],
        on={
            (s, g, k): model.new_bool_var(f"on[s{s},g{g},k{k}]")
            for s in range(problem.stages)
            for g, group in enumerate(problem.groups)
            for k in range(len(group.memories))
        },
        assumed={rule: model.new_bool_var(rule) for rule in RULES if rule in kept} if assume else {},
    )
    layers_cover(clash)
    stage_nonempty(clash)
    placement_injective(clash)
    placement_live(clash)
    placement_connected(clash)
    layers_given(clash)
    forbidden_cuts(clash)
    capacity_at_rest(clash)
    memory_admission(clash)
    if clash.assumed:
        model.add_assumptions(list(clash.assumed.values()))
    return clash


def layers_cover(clash: ClashModel) -> None:
    """Layers lie in order on the stages."""
    _imply(clash, variables.layers_cover(_split_problem(clash.problem)))


def stage_nonempty(clash: ClashModel) -> None:
    """Every stage has a layer."""
    _imply(clash, variables.stage_nonempty(_split_problem(clash.problem)))


def placement_injective(clash: ClashModel) -> None:
    """Every stage sits on a die of the group in use, and on each die at most one."""
    problem = clash.problem
    clash.model.add_exactly_one(clash.uses)
    for s in range(problem.stages):
        places = [literal for (stage, _, _), literal in clash.on.items() if stage == s]
        clash.model.add_bool_or(places)
    for g, group in enumerate(problem.groups):
        for k, (_, count) in enumerate(group.memories):
            held = [clash.on[s, g, k] for s in range(problem.stages)]
            clash.model.add_linear_constraint(cp_model.LinearExpr.sum(held), 0, count)
            for literal in held:
                clash.model.add_implication(literal, clash.uses[g])


def placement_live(clash: ClashModel) -> None:
    """No group with disabled dies."""
    _refuse_groups(clash, "placement_live")


def placement_connected(clash: ClashModel) -> None:
    """No group of dies that links do not join."""
    _refuse_groups(clash, "placement_connected")


def layers_given(clash: ClashModel) -> None:
    """The split that the instance gives."""
    problem = clash.problem
    if problem.given is None:
        return
    for s, start in enumerate(accumulate(problem.given[:-1]), start=1):
        for layer in range(problem.layers):
            literal = clash.before[s, layer]
            clash.state([literal if layer < start else ~literal], "layers_given")


def forbidden_cuts(clash: ClashModel) -> None:
    """No stage starts at a forbidden layer."""
    for condition, conclusion in variables.forbidden_cuts(_split_problem(clash.problem)):
        clash.state([~clash.before[condition], clash.before[conclusion]], "forbidden_cuts")


def capacity_at_rest(clash: ClashModel) -> None:
    """Weights and workspace of every stage fit in its die."""
    for needs in _needs(clash):
        _on_its_die(clash, "capacity_at_rest", needs, needs.at_rest)


def memory_admission(clash: ClashModel) -> None:
    """KV that cannot leave fits beside that, and all KV of a request at a stage fits somewhere."""
    problem = clash.problem
    for needs in _needs(clash):
        _on_its_die(clash, "memory_admission", needs, needs.admitted)
        for g, group in enumerate(problem.groups):
            room = group.largest_sum(problem.stages) + problem.host_bytes
            pairs = list(smallest_too_large(problem.layers, needs.everywhere, room))
            for s, (first, last) in product(range(problem.stages), pairs):
                apart = _apart(clash, s, first, last)
                clash.state([*apart, ~clash.uses[g]], "memory_admission", *needs.chunks.rules)


def soften(clash: ClashModel, rule: Soft) -> None:
    """Minimise by how much a rule is broken that is not kept: forbidden cuts in use, or layers moved from the split."""
    problem, model = clash.problem, clash.model
    if rule == "forbidden_cuts":
        cuts = {cut: model.new_bool_var(f"starts[l{cut}]") for cut in sorted(problem.forbidden_cuts)}
        for s, (cut, literal) in product(range(1, problem.stages), cuts.items()):
            model.add_bool_or([~clash.before[s, cut - 1], clash.before[s, cut], literal])
        model.minimize(cp_model.LinearExpr.sum(list(cuts.values())))
        return
    assert problem.given is not None
    moved = []
    for s, start in enumerate(accumulate(problem.given[:-1]), start=1):
        moved.append(model.new_int_var(0, problem.layers, f"moved[s{s}]"))
        here = cp_model.LinearExpr.sum([clash.before[s, layer] for layer in range(problem.layers)])
        model.add(moved[-1] >= here - start)
        model.add(moved[-1] >= start - here)
    model.minimize(cp_model.LinearExpr.sum(moved))


def split_of(clash: ClashModel, outcome: EngineOutcome) -> tuple[int, ...]:
    """Layers of each stage."""
    ends = [
        sum(outcome.value_of(clash.before[s, layer]) > 0.5 for layer in range(clash.problem.layers))
        for s in range(1, clash.problem.stages + 1)
    ]
    return tuple(stop - start for start, stop in pairwise((0, *ends)))


def memory_of(clash: ClashModel, outcome: EngineOutcome) -> tuple[float, ...]:
    """Bytes of each stage's die."""
    chosen: dict[int, float] = {}
    for (s, g, k), literal in clash.on.items():
        if outcome.value_of(literal) > 0.5:
            size = clash.problem.groups[g].memories[k][0]
            chosen[s] = max(size, chosen.get(s, 0.0))
    return tuple(chosen[s] for s in range(clash.problem.stages))


def _needs(clash: ClashModel) -> list[StageNeeds]:
    """Those under every set of rules on chunks that may be kept; needs under more rules are the larger ones."""
    if clash.assumed:
        return [clash.problem.needs(chunks) for chunks in EVERY_CHUNKS]
    return [clash.problem.needs(Chunks("chunk_count" in clash.kept, "chunk_quantum" in clash.kept))]


def _on_its_die(clash: ClashModel, rule: str, needs: StageNeeds, need: Callable[[int, int, int], float]) -> None:
    problem = clash.problem
    known: dict[tuple[bool, bool, float], list[tuple[int, int]]] = {}
    for s, g, k in clash.on:
        # Stages differ in what the first and the last one have besides their layers.
        room = problem.groups[g].memories[k][0]
        kind = s == 0, s == problem.stages - 1, room
        if kind not in known:
            known[kind] = list(smallest_too_large(problem.layers, partial(need, s), room))
        for first, last in known[kind]:
            clash.state([*_apart(clash, s, first, last), ~clash.on[s, g, k]], rule, *needs.chunks.rules)


def _apart(clash: ClashModel, stage: int, first: int, last: int) -> Clause:
    """Not both on this stage: the first one lies before it, or the last one behind."""
    return [clash.before[stage, first], ~clash.before[stage + 1, last]]


def _refuse_groups(clash: ClashModel, rule: str) -> None:
    for literal, group in zip(clash.uses, clash.problem.groups, strict=True):
        if rule in group.forbidden_by:
            clash.state([~literal], rule)


def _imply(clash: ClashModel, implications: Iterator[tuple[At, At]]) -> None:
    for condition, conclusion in implications:
        clash.model.add_implication(clash.before[condition], clash.before[conclusion])


def _split_problem(problem: ClashProblem) -> LayerProblem:
    """Layers without times: the rules on cuts alone."""
    return stated(np.zeros(problem.layers), problem.stages, forbidden_cuts=problem.forbidden_cuts)
