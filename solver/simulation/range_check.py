"""Whether times and bytes of a program fit the 62 bits in which the replay counts picoseconds and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import NO_LIMIT_UNITS, Program

Cause = Literal["bytes", "compute", "arrivals", "links", "host links", "stalls", "latency"]


@dataclass(frozen=True)
class Excess:
    """What does not fit: the part that does most of it, and words for it."""

    cause: Cause
    says: str


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over a program, or bounds on those of all programs of one form.

    Attributes
    ----------
    duration_ps, sent_units, taken_units
        Over all tasks; memory taken with what dies hold for good.
    write_units
        Of each spill write. Shape [E].
    """

    duration_ps: float
    sent_units: float
    taken_units: float
    write_units: NDArray[np.float64]


def totals_of(program: Program) -> Totals:
    """The sums of one program."""
    taken = np.abs(program.take_units).sum(dtype=np.float64) + program.static_units.sum(dtype=np.float64)
    return Totals(
        duration_ps=float(program.duration_ps.sum(dtype=np.float64)),
        sent_units=float(program.send_units.sum(dtype=np.float64)),
        taken_units=float(taken),
        write_units=program.write_units.astype(np.float64),
    )


def too_large(program: Program, totals: Totals | None = None) -> Excess | None:
    """What does not fit 62 bits; None if all is well. For a program that is sound otherwise.

    No sum that the event loop forms exceeds these: all tasks and all transfers one after the other, each write fetched
    by every task of its stage and wave.
    """
    network, totals = program.network, totals or totals_of(program)
    hops = max(1, network.longest_route)
    chunks = np.bincount(program.group)
    at_host = program.slot_is_host[program.write_slot]
    group = np.repeat(np.arange(len(program.group_die)), np.diff(program.group_slot_ptr))[program.write_slot]
    written = totals.write_units
    moved = written * (1.0 + chunks[group])
    over_host, over_mesh = float(moved[at_host].sum()), float(moved[~at_host].sum()) + totals.sent_units
    fetched = float((moved - written)[~at_host].sum())
    if max((over_mesh + over_host) * hops, totals.taken_units + float(written.sum())) >= NO_LIMIT_UNITS:
        return Excess("bytes", f"bytes add up to too much in units of 1/{program.units_per_byte} byte")
    transfers = program.tasks + len(written) + int(np.diff(program.group_slot_ptr)[program.group].sum())
    mesh_ps, host_ps = (_ps_per_unit(program, host=host) for host in (False, True))
    parts: dict[Cause, float] = {
        "compute": totals.duration_ps,
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
