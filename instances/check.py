"""The static checker: every rule that can be decided without running the plan.

Written from the specification alone and shares no code with the simulator. A violated rule is reported with the
amount by which it is violated, in its unit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import accumulate

import networkx as nx

from instances.errors import InputError
from instances.instance import Instance
from instances.pipeline import balanced_layers
from instances.plan import Plan, SpillRow
from instances.rules import STATIC_RULES, Finding
from instances.workload import Shape, form_waves

Violation = tuple[float, str]
"""Amount in the unit of the rule, and where."""


def check(instance: Instance, plan: Plan) -> list[Finding]:
    """Check a plan against every static rule.

    Returns
    -------
    list of Finding
        One finding a violation, and one with ``ok`` for each rule that holds, in the order of ``STATIC_RULES``.

    Raises
    ------
    InputError
        If the plan was made for another instance.
    """
    if plan.instance != instance.fingerprint:
        allowed = f"the fingerprint of this instance ({instance.fingerprint}): the plan was made for another one"
        raise InputError("instance", plan.instance, allowed)
    findings: list[Finding] = []
    for name, rule in STATIC_RULES.items():
        violations = list(_CHECKS[name](instance, plan))
        findings += [
            Finding(rule=name, ok=False, amount=amount, unit=rule.unit, where=where) for amount, where in violations
        ]
        if not violations:
            findings.append(Finding(rule=name, ok=True, amount=0.0, unit=rule.unit, where=""))
    return findings


def _stages(instance: Instance, plan: Plan) -> int:
    """Stages that a plan has to have: in a V-shaped schedule each die holds two."""
    return instance.pipeline.stages * (2 if plan.v_shaped else 1)


def _fold(instance: Instance, plan: Plan, stage: int) -> int:
    """Which die of the pipeline holds a stage: in a V stage 2N-1-r comes back to the die of stage r."""
    return min(stage, _stages(instance, plan) - 1 - stage) if plan.v_shaped else stage


def _stage_count(instance: Instance, plan: Plan) -> Iterator[Violation]:
    stages = _stages(instance, plan)
    for field, length in (("placement", len(plan.placement)), ("layers", len(plan.layers))):
        if length != stages:
            yield abs(length - stages), f"{field} has {length} entries for {stages} stages"


def _placement_live(instance: Instance, plan: Plan) -> Iterator[Violation]:
    live = set(instance.hardware.live_dies)
    for stage, die in enumerate(plan.placement):
        if die not in live:
            yield 1, f"stage {stage} on die {list(die)}, which is disabled or outside the grid"


def _placement_injective(instance: Instance, plan: Plan) -> Iterator[Violation]:
    held: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for stage, die in enumerate(plan.placement):
        held[die].append(stage)
    for die, stages in held.items():
        at_most = max(Counter(_fold(instance, plan, stage) for stage in stages).values())
        if len(stages) > at_most:
            yield len(stages) - at_most, f"die {list(die)} holds stages {stages}"


def _v_fold(instance: Instance, plan: Plan) -> Iterator[Violation]:
    stages = _stages(instance, plan)
    if not plan.v_shaped or len(plan.placement) != stages:
        return  # the number is reported by stage_count
    for stage in range(stages // 2):
        back = stages - 1 - stage
        there, here = plan.placement[stage], plan.placement[back]
        if there != here:
            yield 1, f"stage {stage} on die {list(there)}, stage {back} on die {list(here)}"


def _placement_connected(instance: Instance, plan: Plan) -> Iterator[Violation]:
    live = set(instance.hardware.live_dies)
    used = [die for die in plan.placement if die in live]
    if not used:
        return
    hardware = instance.hardware
    if hardware.topology == "switch":
        return  # every enabled die has its links to the switch
    grid: nx.Graph[tuple[int, int]] = nx.grid_2d_graph(
        hardware.total_rows, hardware.total_columns, periodic=hardware.topology == "torus"
    )
    grid.remove_nodes_from(hardware.disabled_dies)
    grid.remove_edges_from(hardware.disabled_links)
    reached = nx.node_connected_component(grid, used[0])
    for die in sorted(set(used) - reached):
        yield 1, f"die {list(die)} cannot be reached from die {list(used[0])}"


def _stage_nonempty(instance: Instance, plan: Plan) -> Iterator[Violation]:
    for stage, layers in enumerate(plan.layers):
        if layers < 1:
            yield 1 - layers, f"stage {stage} has {layers} layers"


def _layers_cover(instance: Instance, plan: Plan) -> Iterator[Violation]:
    difference = sum(plan.layers) - len(instance.model.layer_kinds)
    if difference:
        yield abs(difference), f"the stages hold {sum(plan.layers)} of {len(instance.model.layer_kinds)} layers"


def _layers_given(instance: Instance, plan: Plan) -> Iterator[Violation]:
    fixed = instance.fixed_layers
    if fixed is None:
        return
    if plan.v_shaped:
        if instance.pipeline.layers != "balanced":
            beyond = sum(abs(layers) for layers in plan.layers[len(fixed) :])
            yield max(beyond, 1), f"the instance gives {len(fixed)} stages their layers, a V has twice so many"
            return
        fixed = balanced_layers(len(instance.model.layer_kinds), _stages(instance, plan))
    for stage, (given, planned) in enumerate(zip(fixed, plan.layers, strict=False)):
        if given != planned:
            yield abs(given - planned), f"stage {stage} has {planned} layers instead of {given}"


def _forbidden_cuts(instance: Instance, plan: Plan) -> Iterator[Violation]:
    forbidden = set(instance.pipeline.forbidden_cuts)
    for stage, start in enumerate(plan.layer_starts):
        if start in forbidden:
            yield 1, f"stage {stage} starts at layer {start}"


def _batch_range(instance: Instance, plan: Plan) -> Iterator[Violation]:
    limit = instance.pipeline.max_batch
    if plan.batch > limit:
        yield plan.batch - limit, f"batch {plan.batch}, at most {limit}"


def _chunk_lists(instance: Instance, plan: Plan) -> Iterator[Violation]:
    needed = {str(count) for count in instance.workload.uncached_counts}
    for key in sorted(needed - set(plan.chunks), key=int):
        yield 1, f"no chunk list for {key} uncached tokens"
    for key in sorted(set(plan.chunks) - needed, key=int):
        yield 1, f"a chunk list for {key} uncached tokens, which no request has"


def _chunks_cover(instance: Instance, plan: Plan) -> Iterator[Violation]:
    for key, sizes in plan.chunks.items():
        difference = sum(sizes) - int(key)
        if difference:
            yield abs(difference), f"the chunks of list {key} add up to {sum(sizes)}"


def _chunk_quantum(instance: Instance, plan: Plan) -> Iterator[Violation]:
    quantum = instance.pipeline.chunk_quantum
    for key, sizes in plan.chunks.items():
        for chunk, size in enumerate(sizes):
            if size < 1:
                yield 1 - size, f"chunk {chunk} of list {key} has {size} tokens"
            elif chunk < len(sizes) - 1 and size % quantum:
                off = min(size % quantum, quantum - size % quantum)
                yield off, f"chunk {chunk} of list {key} has {size} tokens, not a multiple of {quantum}"


def _chunk_count(instance: Instance, plan: Plan) -> Iterator[Violation]:
    limit = instance.pipeline.max_chunks
    for key, sizes in plan.chunks.items():
        if len(sizes) > limit:
            yield len(sizes) - limit, f"list {key} has {len(sizes)} chunks, at most {limit}"


def _v_window(instance: Instance, plan: Plan) -> Iterator[Violation]:
    window, stages = instance.pipeline.max_in_flight, _stages(instance, plan)
    if window is None or not plan.v_shaped:
        return
    # The first die starts so many chunks before the tail of the first one, with which that leaves.
    ahead = stages - 2 if plan.schedule == "vpp" else stages - 1
    if plan.schedule == "vpp-packed":
        waves = form_waves(instance.workload.all_requests(), plan.batch)
        chunks = sum(len(_chunks_of(plan, wave.shape)) for wave in waves)
    else:
        chunks = max(len(_chunks_of(plan, shape)) for shape in instance.workload.shapes)
    inside = min(ahead, chunks)
    if inside > window:
        yield inside - window, f"{inside} chunks start before the first leaves, at most {window} may be in flight"


def _shapes_of(instance: Instance, row: SpillRow) -> list[Shape]:
    """Request shapes that a row concerns: the one it names, or the only one."""
    shapes = instance.workload.shapes
    if row.shape is None:
        return shapes if len(shapes) == 1 else []
    return [row.shape] if row.shape in shapes else []


def _chunks_of(plan: Plan, shape: Shape) -> tuple[int, ...]:
    return plan.chunks.get(str(shape[0] - shape[1]), ())


def _spill_stage(instance: Instance, plan: Plan) -> Iterator[Violation]:
    for number, row in enumerate(plan.spill):
        if row.stage >= _stages(instance, plan):
            yield 1, f"spill row {number}: stage {row.stage} of {_stages(instance, plan)}"
        shapes = _shapes_of(instance, row)
        if not shapes:
            yield 1, f"spill row {number}: shape {row.shape}, requests have the shapes {instance.workload.shapes}"
        elif row.chunk >= len(_chunks_of(plan, shapes[0])):
            yield 1, f"spill row {number}: chunk {row.chunk} of {len(_chunks_of(plan, shapes[0]))}"


def _spill_last_chunk(instance: Instance, plan: Plan) -> Iterator[Violation]:
    for number, row in enumerate(plan.spill):
        for shape in _shapes_of(instance, row):
            if row.chunk == len(_chunks_of(plan, shape)) - 1:
                yield max(row.tokens, 1), f"spill row {number}: chunk {row.chunk} is the last one"


def _spill_creditor(instance: Instance, plan: Plan) -> Iterator[Violation]:
    placement = plan.placement
    for number, row in enumerate(plan.spill):
        if row.creditor == "host":
            if instance.hardware.host is None:
                yield max(row.tokens, 1), f"spill row {number}: the hardware has no host tier"
            continue
        if row.creditor >= _stages(instance, plan):
            yield max(row.tokens, 1), f"spill row {number}: creditor {row.creditor} of {_stages(instance, plan)}"
        elif row.creditor == row.stage:
            yield max(row.tokens, 1), f"spill row {number}: stage {row.stage} is its own creditor"
        elif max(row.creditor, row.stage) < len(placement) and placement[row.creditor] == placement[row.stage]:
            yield max(row.tokens, 1), f"spill row {number}: the creditor sits on the stage's own die"


def _spill_once(instance: Instance, plan: Plan) -> Iterator[Violation]:
    shapes = instance.workload.shapes
    only = shapes[0] if len(shapes) == 1 else None
    rows = Counter(
        (
            row.stage,
            row.chunk,
            row.creditor if row.creditor == "host" else _fold(instance, plan, row.creditor),
            row.shape or only,
        )
        for row in plan.spill
    )
    for (stage, chunk, creditor, _), count in rows.items():
        if count > 1:
            yield count - 1, f"stage {stage}, chunk {chunk}, creditor {creditor} has {count} rows"


def _spill_within_chunk(instance: Instance, plan: Plan) -> Iterator[Violation]:
    spilled: Counter[tuple[int, int, Shape]] = Counter()
    for row in plan.spill:
        for shape in _shapes_of(instance, row):
            spilled[row.stage, row.chunk, shape] += row.tokens
    for (stage, chunk, shape), tokens in sorted(spilled.items()):
        sizes = _chunks_of(plan, shape)
        if chunk < len(sizes) and tokens > sizes[chunk]:
            yield tokens - sizes[chunk], f"stage {stage} spills {tokens} of the {sizes[chunk]} tokens of chunk {chunk}"


def _spill_kind(instance: Instance, plan: Plan) -> Iterator[Violation]:
    if sum(plan.layers) != len(instance.model.layer_kinds) or min(plan.layers, default=0) < 1:
        return
    starts = plan.layer_starts
    for number, row in enumerate(plan.spill):
        if row.tokens and row.stage < len(starts):
            start = starts[row.stage]
            if not instance.stage_cost.spillable_bytes_per_token(start, start + plan.layers[row.stage]):
                yield row.tokens, f"spill row {number}: stage {row.stage} keeps no full-attention KV"


def _capacity_at_rest(instance: Instance, plan: Plan) -> Iterator[Violation]:
    live = set(instance.hardware.live_dies)
    sizes = list(plan.layers)
    if len(sizes) != len(plan.placement) or sum(sizes) != len(instance.model.layer_kinds) or min(sizes) < 1:
        return  # reported by stage_count, layers_cover or stage_nonempty
    cost = instance.stage_cost
    ends = list(accumulate(sizes))
    waves = form_waves(instance.workload.all_requests(), plan.batch)
    largest_of = {(wave.size, max(_chunks_of(plan, wave.shape), default=0)) for wave in waves}
    parts: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    workspace: defaultdict[tuple[int, int], float] = defaultdict(float)
    for stage, (die, stop) in enumerate(zip(plan.placement, ends, strict=True)):
        start = stop - sizes[stage]
        parts[die].append((start, stop))
        for size, largest in largest_of:
            workspace[die] = max(workspace[die], cost.workspace_bytes(start, stop, size, largest))
    for die, held in parts.items():
        # A die with both tables, the embedding's and the head's, keeps tied ones once.
        weights = cost.die_weight_bytes(held, embedding=die == plan.placement[0], head=die == plan.placement[-1])
        total = weights + workspace[die]
        if die in live and total > instance.hardware.die_at(die).hbm_bytes:
            excess = total - instance.hardware.die_at(die).hbm_bytes
            where = f"die {list(die)}: weights {weights:.4g} and workspace {workspace[die]:.4g} bytes"
            yield excess, where


_CHECKS: dict[str, Callable[[Instance, Plan], Iterator[Violation]]] = {
    "stage_count": _stage_count,
    "placement_live": _placement_live,
    "placement_injective": _placement_injective,
    "v_fold": _v_fold,
    "placement_connected": _placement_connected,
    "stage_nonempty": _stage_nonempty,
    "layers_cover": _layers_cover,
    "layers_given": _layers_given,
    "forbidden_cuts": _forbidden_cuts,
    "batch_range": _batch_range,
    "chunk_lists": _chunk_lists,
    "chunks_cover": _chunks_cover,
    "chunk_quantum": _chunk_quantum,
    "chunk_count": _chunk_count,
    "v_window": _v_window,
    "spill_stage": _spill_stage,
    "spill_last_chunk": _spill_last_chunk,
    "spill_creditor": _spill_creditor,
    "spill_once": _spill_once,
    "spill_within_chunk": _spill_within_chunk,
    "spill_kind": _spill_kind,
    "capacity_at_rest": _capacity_at_rest,
}
