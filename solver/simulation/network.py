"""Links between the dies in use, as arrays (spec section 3, rule ``link_fifo``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from instances.mesh import SWITCH, Die, Link, Mesh, Routing
from solver.simulation.routes import all_routes

PICOSECONDS_PER_S = 10**12
PICOSECONDS_PER_NS = 1000
HOST = -1
"""Row and column that ``link_ends`` shows for the host side of a host link."""


@dataclass(frozen=True, eq=False)
class Network:
    """Routes among D dies over L directed links; the last links are host links, two for each die that has a host.

    Parameters
    ----------
    dies
        (row, column) of each die. Shape [D, 2].
    route_ptr, route_links
        Links from die a to die b in travel order: entries route_ptr[a * D + b] to route_ptr[a * D + b + 1].
    hops, bottleneck_bytes_per_s
        Hops of the route, by way of a switch one, else its number of links; smallest bandwidth on it (inf within a
        die). Shape [D, D].
    link_bytes_per_s, link_ends
        Bandwidth of each link, and (row, column, row, column) of its ends; host ends are -1, -1, a switch is -2, -2.
        [L], [L, 4]
    host_bytes_per_s, host_write_link, host_read_link
        Bandwidth of the host link of each die, one each way (0 and -1 where there is no host). [D]
    hop_latency_ps
        Added per hop after the links are free again.
    store_and_forward, one_send_per_die, integer_ns
        Options of rule 9.
    """

    dies: NDArray[np.int32]
    route_ptr: NDArray[np.int64]
    route_links: NDArray[np.int32]
    hops: NDArray[np.int32]
    bottleneck_bytes_per_s: NDArray[np.float64]
    link_bytes_per_s: NDArray[np.float64]
    link_ends: NDArray[np.int32]
    host_bytes_per_s: NDArray[np.float64]
    host_write_link: NDArray[np.int32]
    host_read_link: NDArray[np.int32]
    hop_latency_ps: int
    store_and_forward: bool = False
    one_send_per_die: bool = False
    integer_ns: bool = False

    @property
    def longest_route(self) -> int:
        """Most links that a route between two dies has."""
        return int(np.diff(self.route_ptr).max(initial=0))

    def route(self, a: int, b: int) -> list[int]:
        """Indices of the links from die a to die b, in travel order."""
        pair = a * len(self.dies) + b
        return [int(link) for link in self.route_links[self.route_ptr[pair] : self.route_ptr[pair + 1]]]

    def link_name(self, link: int) -> str:
        """Readable name of a link, e.g. ``(0,0)->(0,1)``, ``(0,0)->host`` or ``switch->(0,1)``."""
        ends = [int(end) for end in self.link_ends[link]]
        names = {HOST: "host", SWITCH[0]: "switch"}
        source, target = (names.get(row, f"({row},{column})") for row, column in (ends[:2], ends[2:]))
        return f"{source}->{target}"


def whole_ps(seconds: float, *, integer_ns: bool = False) -> int:
    """A duration in picoseconds: to nearest, or up to the next whole nanosecond."""
    ps = round(seconds * PICOSECONDS_PER_S)
    return -(-ps // PICOSECONDS_PER_NS) * PICOSECONDS_PER_NS if integer_ns else ps


def build_network(
    mesh: Mesh,
    dies: Sequence[Die],
    *,
    link_bytes_per_s: float,
    wafer_link_bytes_per_s: float | None = None,
    hop_latency_s: float = 0.0,
    host_bytes_per_s: float | None = None,
    routing: Routing = "xy",
    store_and_forward: bool = False,
    one_send_per_die: bool = False,
    integer_ns: bool = False,
) -> Network:
    """Routes between every two of ``dies``, and only the links that these use.

    Parameters
    ----------
    dies
        Distinct enabled dies; a program's die index counts them in this order.
    wafer_link_bytes_per_s
        Bandwidth of links that cross a wafer edge; as the others unless given.
    host_bytes_per_s
        Bandwidth of each die's host link, per direction; None where there is no host.

    Raises
    ------
    ValueError
        If a die is named twice, is outside the mesh or disabled, or two dies are not connected.
    """
    count = len(dies)
    if len(set(dies)) < count:
        raise ValueError(f"a die is named twice among {list(dies)}")
    route_ptr, route_links, used = _routes(mesh, dies, routing)
    seam_bytes_per_s = link_bytes_per_s if wafer_link_bytes_per_s is None else wafer_link_bytes_per_s
    speeds = [seam_bytes_per_s if mesh.crosses_wafers(link) else link_bytes_per_s for link in used]
    ends = [(*a, *b) for a, b in used]
    lengths = np.diff(route_ptr)
    hops = np.minimum(lengths, 1) if mesh.topology == "switch" else lengths
    # reduceat needs non-empty runs; a route within a die has none and no bottleneck.
    bottleneck = np.full(count * count, np.inf)
    if used:
        starts = route_ptr[:-1][lengths > 0]
        bottleneck[lengths > 0] = np.minimum.reduceat(np.array(speeds)[route_links], starts)
    write_link, read_link = [-1] * count, [-1] * count
    if host_bytes_per_s is not None:
        for die, position in enumerate(dies):
            write_link[die], read_link[die] = len(speeds), len(speeds) + 1
            speeds += [host_bytes_per_s, host_bytes_per_s]
            ends += [(*position, HOST, HOST), (HOST, HOST, *position)]
    return Network(
        dies=np.array(dies, dtype=np.int32).reshape(count, 2),
        route_ptr=route_ptr,
        route_links=route_links.astype(np.int32),
        hops=hops.astype(np.int32).reshape(count, count),
        bottleneck_bytes_per_s=bottleneck.reshape(count, count),
        link_bytes_per_s=np.array(speeds, dtype=np.float64),
        link_ends=np.array(ends, dtype=np.int32).reshape(len(speeds), 4),
        host_bytes_per_s=np.full(count, host_bytes_per_s or 0.0),
        host_write_link=np.array(write_link, dtype=np.int32),
        host_read_link=np.array(read_link, dtype=np.int32),
        hop_latency_ps=whole_ps(hop_latency_s, integer_ns=integer_ns),
        store_and_forward=store_and_forward,
        one_send_per_die=one_send_per_die,
        integer_ns=integer_ns,
    )


def _routes(
    mesh: Mesh, dies: Sequence[Die], routing: Routing
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Link]]:
    """Pointers, links in travel order, and which links these numbers stand for, in the order of their first use."""
    if mesh.topology == "switch":
        index: dict[Link, int] = {}
        routes = [mesh.route(a, b, routing) for a in dies for b in dies]
        links = [index.setdefault(link, len(index)) for route in routes for link in route]
        return np.cumsum([0, *map(len, routes)]), np.array(links, dtype=np.int64), list(index)
    pointers, keys = all_routes(mesh, dies, routing)
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    by_use = np.argsort(first)
    rank = np.empty_like(by_use)
    rank[by_use] = np.arange(len(by_use))
    ends = [
        divmod(int(end), mesh.columns) for key in keys[first[by_use]] for end in divmod(key, mesh.rows * mesh.columns)
    ]
    return pointers, rank[number.reshape(-1)], list(zip(ends[::2], ends[1::2], strict=True))
