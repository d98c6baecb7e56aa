"""The links of a grid of dies as one table, for those who walk over many of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from instances.mesh import Mesh

Ints = npt.NDArray[np.int64]

STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0))
"""Row and column of one hop east, west, south, north."""


def neighbour_table(mesh: Mesh) -> Ints:
    """Number of the enabled die that an enabled link joins to each position, or -1; positions are counted row by row.

    Shape (positions, 4), in the order of ``STEPS``. For a mesh or a torus; a switch has no neighbours.
    """
    index = np.arange(mesh.rows * mesh.columns).reshape(mesh.rows, mesh.columns)
    live = np.ones_like(index, dtype=np.bool_)
    for die in mesh.disabled_dies:
        live[die] = False
    found = np.full((mesh.rows, mesh.columns, 4), -1, dtype=np.int64)
    for side, (row, column) in enumerate(STEPS):
        beside = np.roll(index, (-row, -column), axis=(0, 1))
        joined = live & live.ravel()[beside] & (beside != index)
        if mesh.topology == "mesh":
            edge = (slice(None), -1 if column > 0 else 0) if column else (-1 if row > 0 else 0, slice(None))
            joined[edge] = False
        found[..., side] = np.where(joined, beside, -1)
    for a, b in mesh.disabled_links:
        for here, there in ((a, b), (b, a)):
            found[here][found[here] == index[there]] = -1
    return found.reshape(-1, 4)
