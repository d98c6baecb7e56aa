"""Nothing depends on how the dies and links of a program are numbered."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from solver.simulation.engine import Events, Run, run
from solver.simulation.network import Network
from solver.simulation.program import Int64s, Program
from solver.simulation.program_check import check_program
from solver.simulation.program_file import read_program
from tests.strategies import random_program

BATCHES, PROGRAMS_PER_BATCH = 4, 50


@dataclass(frozen=True, eq=False)
class Numbering:
    """New numbers of dies (and of their hosts) and of the links between dies; host links keep theirs.

    ``die[d]`` and ``link[l]`` are the new numbers of the old die d and link l.
    """

    die: NDArray[np.int64]
    link: NDArray[np.int64]

    @classmethod
    def drawn(cls, program: Program, rng: np.random.Generator) -> Numbering:
        """A random numbering, of dies other than the old one."""
        meshed = int(_joins_dies(program.network).sum())
        links = len(program.network.link_ends)
        die = rng.permutation(program.dies)
        if (die == np.arange(program.dies)).all():
            die = np.roll(die, 1)
        return cls(die, np.concatenate((rng.permutation(meshed), np.arange(meshed, links))))


def _joins_dies(network: Network) -> NDArray[np.bool_]:
    """Which links join two dies; the others, which come last, join a die and its host."""
    return np.asarray(network.link_ends.min(axis=1) >= 0)


def _uneven(program: Program, rng: np.random.Generator) -> Program:
    """The program with links of different speeds and hosts of different sizes, which documents do not have."""
    network, dies = program.network, program.dies
    factors = rng.choice((0.5, 1.0, 2.0), len(network.link_bytes_per_s))
    speeds = network.link_bytes_per_s * np.where(_joins_dies(network), factors, 1.0)
    slowest = [min((speeds[link] for link in network.route(a, b)), default=np.inf) for a, b in np.ndindex(dies, dies)]
    uneven = replace(network, link_bytes_per_s=speeds, bottleneck_bytes_per_s=np.reshape(slowest, (dies, dies)))
    hosts = program.host_capacity_units * rng.integers(1, 4, dies) // 2
    return replace(program, host_capacity_units=hosts, network=uneven)


def _renumbered_network(network: Network, new: Numbering) -> Network:
    """The same network; row k of a table of dies is what the die had whose new number is k."""
    old_die, old_link = np.argsort(new.die), np.argsort(new.link)
    routes = [network.route(a, b) for a in old_die for b in old_die]
    return replace(
        network,
        dies=network.dies[old_die],
        route_ptr=np.concatenate(([0], np.cumsum([len(route) for route in routes]))).astype(np.int64),
        route_links=new.link[[link for route in routes for link in route]].astype(np.int32),
        hops=network.hops[np.ix_(old_die, old_die)],
        bottleneck_bytes_per_s=network.bottleneck_bytes_per_s[np.ix_(old_die, old_die)],
        link_bytes_per_s=network.link_bytes_per_s[old_link],
        link_ends=network.link_ends[old_link],
        host_bytes_per_s=network.host_bytes_per_s[old_die],
        host_write_link=network.host_write_link[old_die],
        host_read_link=network.host_read_link[old_die],
    )


def _renumbered(program: Program, new: Numbering) -> Program:
    """The same program, in new numbers."""
    old_die = np.argsort(new.die)
    runs = [program.die_tasks[program.die_ptr[die] : program.die_ptr[die + 1]] for die in old_die]
    return replace(
        program,
        die=new.die[program.die].astype(np.int32),
        die_ptr=np.concatenate(([0], np.cumsum([len(tasks) for tasks in runs]))).astype(np.int64),
        die_tasks=np.concatenate(runs),
        slot_die=new.die[program.slot_die].astype(np.int32),
        group_die=new.die[program.group_die].astype(np.int32),
        capacity_units=program.capacity_units[old_die],
        static_units=program.static_units[old_die],
        host_capacity_units=program.host_capacity_units[old_die],
        network=_renumbered_network(program.network, new),
    )


def _in_old_numbers(outcome: Run, new: Numbering) -> Run:
    """What a run of the renumbered program found, in the numbers of the original."""
    assert outcome.events is not None
    old_die, old_link = np.argsort(new.die), np.argsort(new.link)
    # Memories: dies, then their hosts, and -1 for none.
    old_memory = np.concatenate((old_die, old_die + len(old_die), [-1]))
    return replace(
        outcome,
        stall_ps=outcome.stall_ps[new.die],
        peak_units=outcome.peak_units[new.die],
        host_peak_units=outcome.host_peak_units[new.die],
        link_units=outcome.link_units[new.link],
        link_busy_ps=outcome.link_busy_ps[new.link],
        waiting=tuple(
            replace(waiting, die=int(old_die[waiting.die]), write_memory=int(old_memory[waiting.write_memory]))
            for waiting in outcome.waiting
        ),
        events=_events_in_old_numbers(outcome.events, old_die, old_link),
    )


def _events_in_old_numbers(events: Events, old_die: Int64s, old_link: Int64s) -> Events:
    transfers, holds, memory, stalls = (
        rows.copy() for rows in (events.transfers, events.holds, events.memory, events.stalls)
    )
    # A host is -1 as the end of a transfer, and its die's number plus D among the memories.
    old_end = np.append(old_die, -1)
    transfers[:, 1], transfers[:, 2] = old_end[transfers[:, 1]], old_end[transfers[:, 2]]
    holds[:, 1] = old_link[holds[:, 1]]
    memory[:, 1] = np.concatenate((old_die, old_die + len(old_die)))[memory[:, 1]]
    stalls[:, 0] = old_die[stalls[:, 0]]
    # The first rows are what each die holds at the start, die by die.
    first = memory[: len(old_die)]
    memory[: len(old_die)] = first[np.argsort(first[:, 1])]
    return Events(transfers, holds, memory, stalls)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_totals_do_not_depend_on_the_numbers_of_dies(batch: int) -> None:
    for number in range(PROGRAMS_PER_BATCH):
        rng = np.random.default_rng((3, batch, number))
        document = random_program(rng)
        program = _uneven(read_program(document), rng)
        new = Numbering.drawn(program, rng)
        other = _renumbered(program, new)
        check_program(other)
        expected, found = run(program, traced=True), _in_old_numbers(run(other, traced=True), new)
        assert found.events is not None and expected.events is not None
        pairs = {**vars(expected), **vars(expected.events)}, {**vars(found), **vars(found.events)}
        names = [name for name in pairs[0] if name != "events"]
        assert [name for name in names if not np.array_equal(pairs[0][name], pairs[1][name])] == [], document
