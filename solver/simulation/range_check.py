"""Whether times and bytes of a program fit the 62 bits in which the replay counts picoseconds and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import NO_LIMIT_UNITS, Program

Cause = Literal["bytes", "compute", "arrivals", "links", "host links", "stalls", "latency"]


@dataclass(frozen=True)
class Excess:
    """What does not fit: the part that does most of it, and words for it."""

    cause: Cause
    says: str


def too_large(program: Program) -> Excess | None:
    """What does not fit 62 bits; None if all is well. For a program that is sound otherwise.

    No sum that the event loop forms exceeds these: all tasks and all transfers one after the other, each write fetched
    by every task of its stage and wave.
    """
    network = program.network
    hops = max(1, network.longest_route)
    chunks = np.bincount(program.group)
    at_host = program.slot_is_host[program.write_slot]
    group = np.repeat(np.arange(len(program.group_die)), np.diff(program.group_slot_ptr))[program.write_slot]
    moved = program.write_units * (1.0 + chunks[group])
    written = program.write_units.sum(dtype=np.float64)
    over_host, over_mesh = float(moved[at_host].sum()), float(moved[~at_host].sum())
    fetched = over_mesh - float(program.write_units[~at_host].sum(dtype=np.float64))
    over_mesh += program.send_units.sum(dtype=np.float64)
    taken = np.abs(program.take_units).sum(dtype=np.float64) + program.static_units.sum(dtype=np.float64)
    if max((over_mesh + over_host) * hops, taken + written) >= NO_LIMIT_UNITS:
        return Excess("bytes", f"bytes add up to too much in units of 1/{program.units_per_byte} byte")
    transfers = program.tasks + len(program.write_units) + int(np.diff(program.group_slot_ptr)[program.group].sum())
    mesh_ps, host_ps = (_ps_per_unit(program, host=host) for host in (False, True))
    parts: dict[Cause, float] = {
        "compute": float(program.duration_ps.sum(dtype=np.float64)),
        "arrivals": float(program.earliest_ps.max()),
        "links": over_mesh * mesh_ps * hops,
        "host links": over_host * host_ps,
        "stalls": fetched * mesh_ps * program.serve_fraction,
        "latency": float(network.hop_latency_ps) * hops * transfers,
    }
    if sum(parts.values()) >= NO_LIMIT_UNITS:
        worst = max(parts, key=lambda part: parts[part])
        return Excess(worst, "times add up to too many picoseconds (2e6 s are possible)")
    return None


def _ps_per_unit(program: Program, *, host: bool) -> float:
    """Picoseconds that a unit holds the slowest link; 0 without one."""
    network = program.network
    of_host = np.zeros(len(network.link_bytes_per_s), dtype=np.bool_)
    for links in (network.host_write_link, network.host_read_link):
        of_host[links[links >= 0]] = True
    speeds = network.link_bytes_per_s[of_host == host]
    return PICOSECONDS_PER_S / program.units_per_byte / float(speeds.min()) if len(speeds) else 0.0
