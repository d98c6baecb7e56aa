"""Exact search for small placement problems of any kind: branch and bound with the Gilmore-Lawler bound.

At each node the assignment problem behind the bound also says by how much the bound rises at least if a stage goes to a
die (its reduced cost). The search branches on the stage, or where every die is needed on the die, that leaves the
fewest children below the best value, and skips children that a symmetry of the distances or of the flows, one that
keeps all choices so far, moves to others (Clausen and Perregaard 1997; symmetry as in Mautor and Roucairol 1994).
"""

from __future__ import annotations

import numpy as np

from formulations.placement.automorphisms import automorphisms
from formulations.placement.branch_kernel import NODES, REACHED, advance, new_tree, proved
from formulations.placement.gilmore_lawler import FORBIDDEN, matrices
from formulations.placement.problem import PlacementProblem, filled
from formulations.placement.symmetry_kernel import NEVER, Symmetry

MOST_EMPTY = 2
WORK_PER_SECOND = 8e8
"""Entries of cost matrices times their length that a usual core fills in a second."""


class BranchAndBound:
    """A search that goes on from where it stopped.

    Parameters
    ----------
    problem
        `gilmore_lawler.fits` must hold.
    reached
        Value in ticks of a placement that is known; only better ones are looked for.
    """

    def __init__(self, problem: PlacementProblem, reached: int | None) -> None:
        partnered = {stage for pair in problem.pairs for stage in pair}
        flowing = {stage for s, t, _ in problem.flows for stage in (s, t)}
        self._problem = problem
        # Stages without flows fit anywhere; they are placed at the end. But if few dies are left over, empty stages
        # on them make it possible to branch on dies.
        self._stages = sorted(partnered | flowing)
        empty = problem.dies - len(self._stages)
        self._data = matrices(problem, self._stages, empty if empty <= MOST_EMPTY else 0)
        self._tree = new_tree(self._data, FORBIDDEN if reached is None else reached * self._data.copies)
        self._of_dies = _symmetry(problem.symmetries)
        partner_mark = 2 * int(self._data.weights.max()) + 1
        self._of_stages = _symmetry(automorphisms(self._data.weights + partner_mark * self._data.partners))
        self.finished = False

    def run(self, nodes: int) -> None:
        """Search so many nodes further, or to the end."""
        if not self.finished:
            self.finished = advance(self._data, self._tree, self._of_dies, self._of_stages, nodes)

    def tell(self, reached: int) -> None:
        """Another search knows a placement of this value; only better ones are looked for."""
        scalars = self._tree.scalars
        scalars[REACHED] = min(scalars[REACHED], reached * self._data.copies)

    @property
    def nodes_per_second(self) -> int:
        """A rough rate that depends on the size alone."""
        stages, dies = len(self._stages), self._problem.dies
        return max(1, int(WORK_PER_SECOND / (stages * dies * (stages + 10))))

    @property
    def nodes(self) -> int:
        """Nodes so far."""
        return int(self._tree.scalars[NODES])

    @property
    def bound(self) -> int | None:
        """No placement has a smaller value, in ticks; None if the search has shown that there is none."""
        if self.nodes == 0:
            return 0
        least = int(self._tree.scalars[REACHED] if self.finished else proved(self._data, self._tree))
        if least >= FORBIDDEN:
            return None if self.finished else 0
        return -(-least // self._data.copies)

    @property
    def placement(self) -> list[int] | None:
        """The best placement that the search found itself."""
        if not self._stages or self._tree.best[0] < 0:
            return None
        placement = [-1] * self._problem.stages
        for stage, die in zip(self._stages, self._tree.best, strict=False):
            placement[stage] = int(die)
        return filled(placement, self._problem.dies)


def _symmetry(permutations: list[list[int]]) -> Symmetry:
    images = np.array(permutations[1:], dtype=np.int64).reshape(-1, len(permutations[0]))
    return Symmetry(images, np.full(len(images), NEVER, dtype=np.int64))
