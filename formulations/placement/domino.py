"""Placement with adjacent partners as a circuit of dominoes (CP-SAT).

With the fixed pairing of stages k and k + N/2 and partners one hop apart, a pair is a domino: an ordered couple of
neighbouring dies (die of k, die of k + N/2). A placement is a path over N/2 disjoint dominoes; the step from one to the
next costs the hops of both its ends (flows k -> k+1 and k+N/2 -> k+N/2+1), and one closing step leads from the last
domino's first die to the first domino's second die (flow N/2-1 -> N/2), which makes the path a circuit.

On a mesh a step costs an even number of hops: both ends lie on opposite colours of the chessboard, before and after. It
costs 2 only between parallel dominoes side by side, so the steps of cost 2 form straight strips, two dies wide and no
longer than the mesh, and every change of strip costs at least 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from formulations.interface import EngineOutcome
from formulations.placement.problem import PlacementProblem
from formulations.placement.symmetry import moved_to_representative, representatives
from formulations.placement.variables import shortest_and_longest

Domino = tuple[int, int]


@dataclass(frozen=True)
class DominoWeights:
    """Flow weights in ticks, where they have the form the circuit needs."""

    step: int
    jump: int
    pair: int


@dataclass
class DominoModel:
    """The model and its arcs."""

    problem: PlacementProblem
    model: cp_model.CpModel
    dominoes: list[Domino]
    used: list[cp_model.IntVar]
    step: dict[tuple[int, int], cp_model.IntVar]
    jump: dict[tuple[int, int], cp_model.IntVar]


def domino_weights(problem: PlacementProblem) -> DominoWeights | None:
    """The weights, or None if the problem is no such circuit.

    Needed: symmetric distances of at least 1, pairs (k, k + N/2) exactly, flows i -> i+1 of one weight (the jump
    N/2-1 -> N/2 may have its own) and no others but those between partners.
    """
    half = problem.stages // 2
    if problem.stages % 2 or half < 2 or (problem.hops != problem.hops.T).any():
        return None
    if shortest_and_longest(problem)[0] < 1:
        return None
    if {frozenset(pair) for pair in problem.pairs} != {frozenset((k, k + half)) for k in range(half)}:
        return None
    forward = [0] * (problem.stages - 1)
    between_partners = 0
    for (s, t, _), ticks in zip(problem.flows, problem.ticks, strict=True):
        if abs(s - t) == half:
            between_partners += ticks
        elif abs(s - t) == 1:
            forward[min(s, t)] += ticks
        else:
            return None
    jump = forward.pop(half - 1)
    if len(set(forward)) > 1:
        return None
    return DominoWeights(step=forward[0], jump=jump, pair=between_partners)


def build(
    problem: PlacementProblem,
    weights: DominoWeights,
    start: Sequence[int] | None = None,
    below: int | None = None,
    at_least: int = 0,
) -> DominoModel:
    """The model; `start` is a placement to begin from, `below` a value in ticks that is known to be reached.

    `at_least`: a proved bound in ticks.

    Arcs that no placement of value <= `below` can use are left out.
    """
    model = cp_model.CpModel()
    dominoes = [(a, b) for a in range(problem.dies) for b in problem.neighbours[a]]
    used = [model.new_bool_var(f"used[d{a},d{b}]") for a, b in dominoes]
    circuit = DominoModel(problem, model, dominoes, used, {}, {})
    add_arcs(circuit, weights, below)
    one_circuit(circuit)
    placement_injective(circuit)
    strips_are_short(circuit)
    break_symmetry(circuit)
    minimise_traffic(circuit, weights, at_least)
    if start is not None:
        hint(circuit, moved_to_representative(problem, start))
    return circuit


def step_hops(problem: PlacementProblem, here: Domino, there: Domino) -> int:
    """Hops of the two flows from one domino to the next."""
    return int(problem.hops[here[0], there[0]] + problem.hops[here[1], there[1]])


def jump_hops(problem: PlacementProblem, last: Domino, first: Domino) -> int:
    """Hops of the flow that closes the circuit."""
    return int(problem.hops[last[0], first[1]])


def add_arcs(circuit: DominoModel, weights: DominoWeights, below: int | None) -> None:
    """A step and a jump between any two dominoes that share no die and are not too dear."""
    problem = circuit.problem
    steps = problem.stages // 2 - 1
    # Every step has at least 2 hops and the jump at least 1.
    least = weights.step * 2 * steps + weights.jump + weights.pair
    for i, here in enumerate(circuit.dominoes):
        for j, there in enumerate(circuit.dominoes):
            if set(here) & set(there):
                continue
            hops = step_hops(problem, here, there)
            if below is None or least + weights.step * (hops - 2) <= below:
                circuit.step[i, j] = circuit.model.new_bool_var(f"step[{here},{there}]")
            hops = jump_hops(problem, here, there)
            if below is None or least + weights.jump * (hops - 1) <= below:
                circuit.jump[i, j] = circuit.model.new_bool_var(f"jump[{here},{there}]")


def one_circuit(circuit: DominoModel) -> None:
    """N/2 dominoes lie on one circuit of N/2 - 1 steps and one jump; the others are left out."""
    arcs: list[tuple[int, int, cp_model.LiteralT]] = [
        (i, j, literal) for (i, j), literal in (*circuit.step.items(), *circuit.jump.items())
    ]
    arcs += [(i, i, literal.negated()) for i, literal in enumerate(circuit.used)]
    circuit.model.add_circuit(arcs)
    circuit.model.add_exactly_one(circuit.jump.values())
    circuit.model.add(sum(circuit.used) == circuit.problem.stages // 2)


def placement_injective(circuit: DominoModel) -> None:
    """Every die is covered once at most, exactly once if there are as many stages as dies."""
    covers = defaultdict(list)
    for domino, literal in zip(circuit.dominoes, circuit.used, strict=True):
        for die in domino:
            covers[die].append(literal)
    for die in range(circuit.problem.dies):
        if circuit.problem.stages == circuit.problem.dies:
            circuit.model.add_exactly_one(covers[die])
        else:
            circuit.model.add_at_most_one(covers[die])


def strips_are_short(circuit: DominoModel) -> None:
    """Redundant: N/2 dominoes need at least ceil(N/2 / longest strip) strips, and one step fewer changes strip."""
    if circuit.problem.mesh_hops is None or circuit.problem.dies_rc is None:
        return
    longest = max(len({cell[axis] for cell in circuit.problem.dies_rc}) for axis in (0, 1))
    changes = -(-(circuit.problem.stages // 2) // longest) - 1
    if changes > 0:
        circuit.model.add(sum(literal for arc, literal in circuit.step.items() if _hops(circuit, arc) > 2) >= changes)


def break_symmetry(circuit: DominoModel) -> None:
    """Stage 0, the first die of the domino after the jump, lies on the first die of an orbit of the mesh."""
    first_dies = set(representatives(circuit.problem))
    for (_, j), literal in circuit.jump.items():
        if circuit.dominoes[j][0] not in first_dies:
            circuit.model.add(literal == 0)


def minimise_traffic(circuit: DominoModel, weights: DominoWeights, at_least: int) -> None:
    """Sum of weight*hops, in ticks, which is known to be `at_least` so much."""
    steps = sum(weights.step * _hops(circuit, arc) * literal for arc, literal in circuit.step.items())
    jumps = sum(
        weights.jump * jump_hops(circuit.problem, circuit.dominoes[i], circuit.dominoes[j]) * literal
        for (i, j), literal in circuit.jump.items()
    )
    circuit.model.add(steps + jumps + weights.pair >= at_least)
    circuit.model.minimize(steps + jumps + weights.pair)


def hint(circuit: DominoModel, start: Sequence[int]) -> None:
    """Hint a placement whose partners are adjacent and that keeps `break_symmetry`."""
    half = circuit.problem.stages // 2
    number = {domino: i for i, domino in enumerate(circuit.dominoes)}
    path = [number[start[k], start[k + half]] for k in range(half)]
    steps = set(pairwise(path))
    for i, literal in enumerate(circuit.used):
        circuit.model.add_hint(literal, i in path)
    for arc, literal in circuit.step.items():
        circuit.model.add_hint(literal, arc in steps)
    for arc, literal in circuit.jump.items():
        circuit.model.add_hint(literal, arc == (path[-1], path[0]))


def extract(circuit: DominoModel, outcome: EngineOutcome) -> list[int]:
    """Die of each stage."""
    after = {i: j for (i, j), literal in circuit.step.items() if outcome.value_of(literal) > 0.5}
    current = next(j for (_, j), literal in circuit.jump.items() if outcome.value_of(literal) > 0.5)
    path = [circuit.dominoes[current]]
    while current in after:
        current = after[current]
        path.append(circuit.dominoes[current])
    return [first for first, _ in path] + [second for _, second in path]


def _hops(circuit: DominoModel, arc: tuple[int, int]) -> int:
    return step_hops(circuit.problem, circuit.dominoes[arc[0]], circuit.dominoes[arc[1]])
