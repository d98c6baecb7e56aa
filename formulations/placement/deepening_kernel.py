"""The compiled part of `deepening`: places stages in a fixed order while the excess stays within a limit."""

from __future__ import annotations

from typing import NamedTuple

from formulations.placement import symmetry_kernel
from formulations.placement.assignment import Ints
from formulations.placement.compiled import entry, part
from formulations.placement.symmetry_kernel import Symmetry, break_symmetry, is_repeated, mend_symmetry

NOTHING = 1 << 52
"""Excess of what cannot be; sums of weight*hops stay far below it."""

# Places in `Path.scalars`.
POSITION, LIMIT, BEYOND, NODES, REACHED = range(5)


class Order(NamedTuple):
    """A problem laid out along an order of its stages: position p is the p-th. Excess: hops beyond the shortest."""

    excess: Ints
    """Shape (D, D)."""
    nearest: Ints
    """Shape (D, D - 1): the other dies by rising distance."""
    touching: Ints
    """Shape (D, k): dies without excess from each, -1 for none."""
    adjacent: Ints
    """Shape (D, D): 1 where partners may lie."""
    earlier_from: Ints
    """Shape (N + 1,): where the flows of each position to earlier ones begin in the next three."""
    earlier: Ints
    earlier_weight: Ints
    earlier_adjacent: Ints
    anchor: Ints
    """Shape (N,): the earlier position around which dies are tried; -1 for none."""
    anchor_weight: Ints
    open_from: Ints
    """Shape (N + 2,): where the open positions begin, those placed before p with flows to p or later, in the next."""
    open: Ints
    open_count: Ints
    open_weight: Ints
    """How many such flows, and the smallest weight among them."""
    least_weight: Ints
    """Shape (N + 1,): the smallest weight of a flow that is not settled before p."""
    missing_flows: Ints
    """Shape (N + 1,): how many flows the stages from p on have fewer than `most_flows` each."""
    most_flows: int
    full: bool
    """True if every die is needed."""
    colour: Ints
    """Shape (D,) for a chain on a chessboard where every die is needed, else empty."""


class Rungs(NamedTuple):
    """Structure of a ladder whose rungs are the positions 2k and 2k+1; no rungs for other problems."""

    number: int
    even: bool
    floor: Ints
    """See `ladder_floor.least_cost`."""
    weight: Ints
    beside: Ints
    """Shape (D, 4): dies at distance 1 of the structure, -1 for none; more than four: `straight` is False."""
    colour: Ints
    """Shape (D,): 0 or 1, on a chessboard."""
    structure: Ints
    """Shape (D, D): distances >= 1 that never exceed those of the problem."""
    straight: bool
    """True if a strip can go on in one way only."""
    island: Ints
    islands: int
    surplus: int
    crossing: Ints
    """See `seam.crossing_cost`."""


class Path(NamedTuple):
    """State of the search: dies of the positions placed, and where to go on at each."""

    die: Ints
    paid: Ints
    """Shape (N + 1,)."""
    pointer: Ints
    used: Ints
    free_on: Ints
    """Free dies by island."""
    best: Ints
    scalars: Ints


@entry(symmetry_kernel)
def advance(order: Order, rungs: Rungs, symmetry: Symmetry, path: Path, nodes: int) -> bool:
    """Search so many nodes further; True if nothing within the limit is left.

    A complete placement lowers the limit below its own excess. BEYOND becomes the least excess that was cut off.
    """
    scalars, images, broken_at = path.scalars, symmetry.images, symmetry.broken_at
    die_of, used, free_on, island = path.die, path.used, path.free_on, rungs.island
    last = scalars[NODES] + nodes
    stages = die_of.shape[0]
    while scalars[NODES] < last:
        position = scalars[POSITION]
        if position == stages:
            scalars[REACHED] = path.paid[stages]
            scalars[LIMIT] = scalars[REACHED] - 1
            path.best[:] = die_of
        elif _place_next(order, rungs, symmetry, path):
            break_symmetry(images, broken_at, die_of[position], position)
            scalars[POSITION] = position + 1
            if position + 1 < stages:
                path.pointer[position + 1] = 0
            continue
        if position == 0:
            return True
        scalars[POSITION] = position - 1
        _set_used(used, free_on, island, die_of[position - 1], 0)
        mend_symmetry(broken_at, position - 1)
    return False


@part
def _place_next(order: Order, rungs: Rungs, symmetry: Symmetry, path: Path) -> bool:
    """Occupy the next free die for the position at hand with which the excess may stay within the limit."""
    # Fields are taken out of their tuples before the loop: each access costs more than the arithmetic.
    scalars, die_of, used, images, broken_at = path.scalars, path.die, path.used, symmetry.images, symmetry.broken_at
    excess, adjacent, nearest = order.excess, order.adjacent, order.nearest
    earlier, weights, must_touch = order.earlier, order.earlier_weight, order.earlier_adjacent
    floor, rung_weight, structure, even, ladder = rungs.floor, rungs.weight, rungs.structure, rungs.even, rungs.number
    position, limit = scalars[POSITION], scalars[LIMIT]
    first_flow, flows_end = order.earlier_from[position], order.earlier_from[position + 1]
    anchor, anchor_weight = order.anchor[position], order.anchor_weight[position]
    centre = die_of[anchor] if anchor >= 0 else 0
    before = path.paid[position]
    for here in range(path.pointer[position], excess.shape[0] if anchor < 0 else nearest.shape[1]):
        die = here if anchor < 0 else nearest[centre, here]
        if used[die]:
            continue
        scalars[NODES] += 1
        if anchor >= 0 and before + anchor_weight * excess[centre, die] > limit:
            scalars[BEYOND] = min(scalars[BEYOND], before + anchor_weight * excess[centre, die])
            return False  # all further dies are no nearer
        paid = before
        apart = False
        for flow in range(first_flow, flows_end):
            other = die_of[earlier[flow]]
            paid += weights[flow] * excess[other, die]
            apart |= must_touch[flow] > adjacent[other, die]
        if apart or is_repeated(images, broken_at, die):
            continue
        die_of[position] = die
        structural = _structure(floor, rung_weight, structure, even, ladder, die_of, position + 1)
        bound = paid + structural
        if bound <= limit:
            path.paid[position + 1] = paid
            bound = paid + _least_rest(order, rungs, path, structural)
            if bound <= limit:
                path.pointer[position] = here + 1
                return True
        scalars[BEYOND] = min(scalars[BEYOND], bound)
    return False


@part
def _structure(
    floor: Ints, rung_weight: Ints, structure: Ints, even: bool, ladder: int, die_of: Ints, placed: int
) -> int:
    """Excess still to come on a ladder by its structure alone; 0 for other problems."""
    if placed > 2 * ladder or placed < 2:
        return 0
    rung, longest = (placed - 1) // 2, floor.shape[2]
    if placed % 2:
        # The first end of a rung. The flow to the second one, and all that follows, is bounded by the kind of rung.
        weight = rung_weight[rung]
        straight, odd, even_kind = floor[rung, 0, longest - 1, 0], floor[rung, 1, 0, 0], floor[rung, 2, 0, 0]
        least: int = min(straight, weight + odd, 2 * weight + even_kind)
        return least
    kind = _kind(structure, even, die_of, placed)
    known: int = floor[rung, kind, longest - 1 if kind == 0 else 0, 0]
    return known


@part
def _kind(structure: Ints, even: bool, die_of: Ints, placed: int) -> int:
    """Kind of the rung that was placed last: no excess, odd (or any), even."""
    apart = structure[die_of[placed - 2], die_of[placed - 1]] - 1
    if apart == 0:
        return 0
    return 1 if apart % 2 or not even else 2


@part
def _least_rest(order: Order, rungs: Rungs, path: Path, structural: int) -> int:
    """Excess still to come, once the die of the position at hand is taken; it is left taken if that fits the limit."""
    placed = path.scalars[POSITION] + 1
    die, allowed = path.die[placed - 1], path.scalars[LIMIT] - path.paid[placed]
    _set_used(path.used, path.free_on, rungs.island, die, 1)
    least = _with_open_flows(order, rungs, path, placed, structural)
    if least <= allowed and order.full and (placed % 2 == 0 or placed > 2 * rungs.number):
        least = max(least, _crowding(order, path), _imbalance(order, path))
    if least > allowed:
        _set_used(path.used, path.free_on, rungs.island, die, 0)
    return least


@part
def _with_open_flows(order: Order, rungs: Rungs, path: Path, placed: int, structural: int) -> int:
    """Excess still to come by structure, free dies ahead and around, and seams; the last die counts as used."""
    if placed > 2 * rungs.number or placed < 2:
        return _open_flows(order, path, placed, placed)
    if placed % 2:
        return structural
    rung = placed // 2 - 1
    kind = _kind(rungs.structure, rungs.even, path.die, placed)
    odd = _odd_rungs(rungs, path.used)
    if kind == 0 or odd > 0:
        structural = rungs.floor[rung, kind, _strip_ahead(rungs, path, placed) if kind == 0 else 0, odd]
    return structural + max(_open_flows(order, path, placed, placed - 2), _crossing(rungs, path, rung))


@part
def _open_flows(order: Order, path: Path, placed: int, before: int) -> int:
    """Least excess of the flows from positions before `before` to those not placed: each goes to another free die."""
    total = 0
    for k in range(order.open_from[placed], order.open_from[placed + 1]):
        if order.open[k] >= before:
            continue
        here = path.die[order.open[k]]
        left = order.open_count[k]
        for near in range(order.nearest.shape[1]):
            other = order.nearest[here, near]
            if left == 0:
                break
            if not path.used[other]:
                total += order.open_weight[k] * order.excess[here, other]
                left -= 1
    return total


@part
def _odd_rungs(rungs: Rungs, used: Ints) -> int:
    """How many rungs to come must be odd, at most as many as the table knows; see `ladder_floor.odd_rungs`."""
    most = rungs.floor.shape[3] - 1
    if most == 0:
        return 0
    more: int = 0
    for die in range(used.shape[0]):
        if not used[die]:
            more += 2 * rungs.colour[die] - 1
    spare = used.shape[0] - 2 * rungs.number
    odd: int = min(most, max(0, (abs(more) - spare + 1) // 2))
    return odd


@part
def _strip_ahead(rungs: Rungs, path: Path, placed: int) -> int:
    """How many squares without excess can follow the rung that was placed last, its ends being one hop apart."""
    most: int = rungs.floor.shape[2] - 1
    if not rungs.straight:
        return most
    first, second = path.die[placed - 2], path.die[placed - 1]
    best = 0
    for a in rungs.beside[first]:
        if a < 0 or path.used[a]:
            continue
        for b in rungs.beside[second]:
            if b >= 0 and b != a and not path.used[b] and rungs.structure[a, b] == 1:
                best = max(best, _strip_length(rungs, path, first, second, a, b, most))
    return best


@part
def _strip_length(rungs: Rungs, path: Path, first: int, second: int, a: int, b: int, most: int) -> int:
    """Free dominoes in a line that begins with (a, b) beside (first, second)."""
    length = 1
    going = True
    while going and length < most:
        going = False
        for c in rungs.beside[a]:
            if c < 0 or c in (first, b) or path.used[c]:
                continue
            for d in rungs.beside[b]:
                if d >= 0 and d != second and d != a and not path.used[d] and rungs.structure[c, d] == 1 and not going:
                    first, second, a, b = a, b, c, d
                    length += 1
                    going = True
            if going:
                break
    return length


@part
def _crossing(rungs: Rungs, path: Path, rung: int) -> int:
    """Least surplus of the flows that must still cross between islands."""
    if rungs.islands < 2 or rung == rungs.number - 1:  # the closing flow is paid with the last rung
        return 0
    first, second = rungs.island[path.die[2 * rung]], rungs.island[path.die[2 * rung + 1]]
    home = rungs.island[path.die[1]]
    left = 2 * (rungs.number - 1 - rung)
    all_free = path.free_on.sum()
    total = 0
    # With two islands each sees all crossings; with more, a crossing is seen by two of them.
    for island in range(1 if rungs.islands == 2 else rungs.islands):
        free = path.free_on[island]
        row = rungs.crossing[rung, int(first == island), int(second == island), int(home == island)]
        total += row[max(0, left - (all_free - free)) : min(left, free) + 1].min()
    if total >= NOTHING:
        return NOTHING
    return rungs.surplus * (total if rungs.islands == 2 else -(-total // 2))


@part
def _crowding(order: Order, path: Path) -> int:
    """Least excess because free dies have too few useful neighbours, where every die is needed.

    A stage with f flows on a die with n neighbours that are free, or hold a stage with flows to come, has at least
    f - n flows with excess. Each such flow is counted twice at most.
    """
    placed = path.scalars[POSITION] + 1
    useful = path.used == 0
    for k in range(order.open_from[placed], order.open_from[placed + 1]):
        useful[path.die[order.open[k]]] = True
    short = -order.missing_flows[placed]
    touching = order.touching
    used = path.used
    for die in range(useful.shape[0]):
        if used[die]:
            continue
        near = 0
        for k in range(touching.shape[1]):
            other = touching[die, k]
            if other >= 0 and useful[other]:
                near += 1
        short += max(0, order.most_flows - near)
    least: int = order.least_weight[placed] * max(0, (short + 1) // 2)
    return least


@part
def _imbalance(order: Order, path: Path) -> int:
    """Least excess of a chain that must cover more free dies of one colour of the chessboard than of the other.

    Steps without excess change the colour; a step that keeps it has at least one hop of excess.
    """
    if order.colour.shape[0] == 0:
        return 0
    placed = path.scalars[POSITION] + 1
    here = order.colour[path.die[placed - 1]]
    same = 0
    other = 0
    for die in range(order.colour.shape[0]):
        if not path.used[die]:
            if order.colour[die] == here:
                same += 1
            else:
                other += 1
    least: int = order.least_weight[placed] * max(0, same - other, other - same - 1)
    return least


@part
def _set_used(used: Ints, free_on: Ints, island: Ints, die: int, now: int) -> None:
    used[die] = now
    free_on[island[die]] += 1 - 2 * now
