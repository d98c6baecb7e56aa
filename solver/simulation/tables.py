"""The tables of a replay: a program and its network packed row by row for the compiled event loop.

One row holds all that belongs to one task, die, memory and so on, what is given as well as what changes, so that an
event touches few cache lines and compiled functions pass few arrays. ``columns.py`` names the columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.simulation import columns as c
from solver.simulation.network import PICOSECONDS_PER_NS, Network
from solver.simulation.program import Int64s, Program

_HOSTS_LAST = np.iinfo(np.int64).max


class Tables(NamedTuple):
    """The tables, in the order in which the event loop takes them.

    Memories are the D dies, then their hosts. Paths are the D x D pairs of dies, then each die's way to its host, then
    each die's way from its host.
    """

    tasks: Int64s
    order: Int64s
    groups: Int64s
    slots: Int64s
    writes: Int64s
    dies: Int64s
    pools: Int64s
    paths: Int64s
    route: Int64s
    speeds: NDArray[np.float64]
    links: Int64s
    link_speeds: NDArray[np.float64]
    settings: Int64s


def pack(program: Program) -> Tables:
    """Fresh tables for one run."""
    network = program.network
    paths, route, speeds = _paths(network)
    return Tables(
        tasks=_tasks(program),
        order=program.die_tasks.astype(np.int64),
        groups=_groups(program),
        slots=_slots(program),
        writes=_writes(program),
        dies=_dies(program),
        pools=_pools(program),
        paths=paths,
        route=route,
        speeds=speeds,
        links=np.zeros((len(network.link_bytes_per_s), c.LINK_COLUMNS), dtype=np.int64),
        link_speeds=network.link_bytes_per_s,
        settings=_settings(program),
    )


def _tasks(program: Program) -> Int64s:
    tasks = np.empty((program.tasks, c.TASK_COLUMNS), dtype=np.int64)
    tasks[:, c.DIE] = program.die
    tasks[:, c.DURATION_PS] = program.duration_ps
    if program.network.integer_ns:
        tasks[:, c.DURATION_PS] = -(-program.duration_ps // PICOSECONDS_PER_NS) * PICOSECONDS_PER_NS
    tasks[:, c.EARLIEST_PS] = program.earliest_ps
    tasks[:, c.SUCCESSOR] = program.successor
    target = program.die[program.successor]
    tasks[:, c.SEND_PATH] = np.where(target == program.die, -1, program.die * program.dies + target)
    tasks[:, c.SEND_UNITS] = program.send_units
    tasks[:, c.TAKE_UNITS] = program.take_units
    tasks[:, c.GROUP] = program.group
    tasks[:, c.CLOSES] = program.closes_group
    tasks[:, c.ENTERS] = program.enters_window
    tasks[:, c.LEAVES] = program.leaves_window
    tasks[:, c.FIRST_WRITE] = program.write_ptr[:-1]
    tasks[:, c.STOP_WRITE] = program.write_ptr[1:]
    tasks[:, c.INPUTS] = program.inputs
    tasks[:, c.START_PS : c.COMPUTE_PS + 1] = -1
    return tasks


def _groups(program: Program) -> Int64s:
    groups = np.zeros((len(program.group_die), c.GROUP_COLUMNS), dtype=np.int64)
    groups[:, c.HOME] = program.group_die
    if len(program.slot_die):
        groups[:, c.HOME_STAGE] = program.first_stage_of_die()[program.group_die]
    groups[:, c.FIRST_SLOT] = program.group_slot_ptr[:-1]
    groups[:, c.STOP_SLOT] = program.group_slot_ptr[1:]
    return groups


def _slots(program: Program) -> Int64s:
    dies, host, at = program.dies, program.slot_is_host, program.slot_die
    slots = np.zeros((len(at), c.SLOT_COLUMNS), dtype=np.int64)
    if not len(at):
        return slots
    home = np.repeat(program.group_die, np.diff(program.group_slot_ptr))
    slots[:, c.POOL] = np.where(host, dies + at, at)
    slots[:, c.STAGE] = program.slot_stage
    slots[host, c.STAGE] = _HOSTS_LAST
    slots[:, c.WRITE_PATH] = np.where(host, dies * dies + at, home * dies + at)
    slots[:, c.READ_PATH] = np.where(host, dies * dies + dies + at, at * dies + home)
    return slots


def _writes(program: Program) -> Int64s:
    writes = np.empty((len(program.write_units), c.WRITE_COLUMNS), dtype=np.int64)
    if len(writes):
        writes[:, c.SLOT] = program.write_slot
        writes[:, c.UNITS] = program.write_units
        writes[:, c.WRITER] = np.repeat(np.arange(program.tasks), np.diff(program.write_ptr))
    return writes


def _dies(program: Program) -> Int64s:
    dies = np.zeros((program.dies, c.DIE_COLUMNS), dtype=np.int64)
    dies[:, c.NEXT] = program.die_ptr[:-1]
    dies[:, c.STOP] = program.die_ptr[1:]
    dies[:, (c.RUNNING, c.TRY_PS)] = -1
    return dies


def _pools(program: Program) -> Int64s:
    dies = program.dies
    pools = np.zeros((2 * dies, c.POOL_COLUMNS), dtype=np.int64)
    pools[:dies, c.USED] = program.static_units
    pools[:dies, c.PEAK] = program.static_units
    pools[:dies, c.CAPACITY] = program.capacity_units
    pools[dies:, c.CAPACITY] = program.host_capacity_units
    pools[:, (c.FIRST, c.LAST)] = -1
    return pools


def _settings(program: Program) -> Int64s:
    network = program.network
    settings = np.zeros(c.SETTINGS, dtype=np.int64)
    settings[c.UNITS_PER_BYTE] = program.units_per_byte
    settings[c.HOP_LATENCY_PS] = network.hop_latency_ps
    settings[c.STORE_AND_FORWARD] = network.store_and_forward
    settings[c.ONE_SEND_PER_DIE] = network.one_send_per_die
    settings[c.INTEGER_NS] = network.integer_ns
    settings[c.OVERLAP] = program.overlap
    settings[c.WINDOW] = program.max_in_flight
    # One event asks for an activation, writes, a release at home and one for each creditor, or fetches.
    most_slots, most_writes = (int(np.diff(ptr).max(initial=0)) for ptr in (program.group_slot_ptr, program.write_ptr))
    settings[c.MOST_ITEMS] = most_slots + most_writes + 2
    return settings


def _paths(network: Network) -> tuple[Int64s, Int64s, NDArray[np.float64]]:
    """Paths, the links that they run over, and the smallest bandwidth on each."""
    dies = len(network.dies)
    pairs, meshed = dies * dies, len(network.route_links)
    paths = np.zeros((pairs + 2 * dies, c.PATH_COLUMNS), dtype=np.int64)
    paths[:pairs, c.FIRST_LINK] = network.route_ptr[:-1]
    paths[:pairs, c.STOP_LINK] = network.route_ptr[1:]
    paths[:pairs, c.SOURCE] = np.repeat(np.arange(dies), dies)
    paths[:pairs, c.TARGET] = np.tile(np.arange(dies), dies)
    paths[:pairs, c.HOPS] = network.hops.reshape(pairs)
    paths[pairs:, c.FIRST_LINK] = np.arange(meshed, meshed + 2 * dies)
    paths[pairs:, c.STOP_LINK] = paths[pairs:, c.FIRST_LINK] + 1
    paths[pairs : pairs + dies, c.SOURCE] = np.arange(dies)
    paths[pairs : pairs + dies, c.TARGET] = -1
    paths[pairs + dies :, c.SOURCE] = -1
    paths[pairs + dies :, c.TARGET] = np.arange(dies)
    route = np.concatenate((network.route_links, network.host_write_link, network.host_read_link), dtype=np.int64)
    hosts = network.host_bytes_per_s
    speeds = np.concatenate((network.bottleneck_bytes_per_s.reshape(pairs), hosts, hosts))
    return paths, route, speeds
