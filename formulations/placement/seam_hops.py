"""Distances on several wafers, where the links between wafers are slow: a hop over a seam counts as several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.placement.distances import hop_table
from formulations.placement.problem import Hops
from instances.mesh import Die, Mesh

APART = 1 << 40


def seam_hops(mesh: Mesh, dies: Sequence[Die], seam: int, inner: int = 1) -> Hops:
    """Shortest distances between dies, shape (D, D), if a link between two wafers counts as `seam`, others as `inner`.

    With links of `link_bytes_per_s` within wafers and `wafer_link_bytes_per_s` between them, their quotient.

    Raises
    ------
    ValueError
        If no path joins two of the dies, or for a seam shorter than other links.
    """
    if seam < inner:
        raise ValueError(f"a hop over a seam counts as at least {inner}, got {seam}")
    if seam == inner:
        return inner * hop_table(mesh, dies)
    if mesh.disabled_dies or mesh.disabled_links or mesh.topology != "mesh":
        return _shortest(mesh, dies, seam, inner)
    # Straight ways cross no more seams than they must.
    cells = np.array(dies, dtype=np.int64)
    wafers = cells // (mesh.wafer_rows or mesh.rows, mesh.wafer_columns or mesh.columns)
    crossed: Hops = np.abs(wafers[:, None] - wafers).sum(axis=2)
    return inner * hop_table(mesh, dies) + (seam - inner) * crossed


def _shortest(mesh: Mesh, dies: Sequence[Die], seam: int, inner: int) -> Hops:
    """Distances over all live dies (Floyd 1962, Warshall 1962), then those asked for."""
    number = {die: i for i, die in enumerate(mesh.live_dies)}
    hops = np.full((len(number), len(number)), APART, dtype=np.int64)
    np.fill_diagonal(hops, 0)
    for die in number:
        for other in mesh.neighbours(die):
            hops[number[die], number[other]] = seam if mesh.crosses_wafers((die, other)) else inner
    for middle in range(len(number)):
        np.minimum(hops, hops[:, middle, None] + hops[middle], out=hops)
    wanted = [number[die] for die in dies]
    found: Hops = hops[np.ix_(wanted, wanted)]
    if (found >= APART).any():
        first, second = np.argwhere(found >= APART)[0].tolist()
        raise ValueError(f"no path from die {dies[first]} to die {dies[second]} around the disabled dies and links")
    return found
