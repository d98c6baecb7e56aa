"""Compiles the searches before a clock starts: once after an installation, a moment afterwards."""

from __future__ import annotations

import numpy as np

from formulations.placement.annealing import Annealing
from formulations.placement.branch import BranchAndBound
from formulations.placement.deepening import Deepening
from formulations.placement.distances import hop_table
from formulations.placement.gilmore_lawler import gilmore_lawler_bound
from formulations.placement.link_load import spread_out
from formulations.placement.local_search import KickSearch
from formulations.placement.problem import stated
from formulations.placement.tabu import TabuSearch
from instances.mesh import Mesh


def warm_up() -> None:
    """Run every search a few steps on a square of dies; numba keeps the machine code beside the sources."""
    hops = np.array([[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]])
    flows = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (0, 2, 1.0), (1, 3, 1.0)]
    problem = stated(hops, flows, 4, [(0, 0), (0, 1), (1, 0), (1, 1)], [(0, 2), (1, 3)])
    rng = np.random.default_rng(0)
    gilmore_lawler_bound(problem)
    Deepening(problem, None).run(100)
    branching = BranchAndBound(problem, None)
    for nodes in (1, 100):
        branching.run(nodes)
        assert branching.bound is not None
    TabuSearch(problem, [0, 1, 2, 3], rng).run(10)
    Annealing(problem, [0, 1, 2, 3], rng).run(10)
    KickSearch(problem, [0, 1, 2, 3], rng).run(1)
    hop_table(Mesh(2, 2, disabled_dies=frozenset({(0, 0)})), [(0, 1), (1, 1)])
    square = Mesh(2, 2)
    spread_out(problem, square, square.live_dies, [0, 1, 2, 3], lambda link: 1, rng)
