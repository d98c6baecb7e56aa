"""Random small instances with a plan that keeps every static rule by construction, on memory that is exactly full."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from instances.instance import Instance
from instances.plan import Plan

Cell = tuple[int, int]

HIDDEN, WIDTH, VOCAB = 8, 6, 20
ATTENTIONS: dict[str, dict[str, Any]] = {
    "global": {"kind": "full", "heads": 2, "kv_heads": 1, "head_dim": 4},
    "local": {"kind": "sliding", "heads": 2, "kv_heads": 2, "head_dim": 4, "window": 7},
}
# 2-byte weights: projections 8*4*(2*heads + 2*kv_heads), feed-forward 3*8*6 = 144, two norms of 8.
LAYER_BYTES = {"global": 2 * (32 * 6 + 144 + 16), "local": 2 * (32 * 8 + 144 + 16)}
TABLE_BYTES = 2 * VOCAB * HIDDEN
FINAL_NORM_BYTES = 2 * HIDDEN
# Two hidden widths and the feed-forward's, at 2 bytes.
WORKSPACE_BYTES_PER_TOKEN = 2 * (2 * HIDDEN + WIDTH)


@dataclass(frozen=True)
class Planted:
    """An instance, its plan, and what each die of the plan holds at rest, in bytes."""

    document: dict[str, Any]
    plan: dict[str, Any]
    need_bytes: tuple[int, ...]

    @property
    def instance(self) -> Instance:
        """The instance, read."""
        return Instance.read(self.document)

    def plan_for(self, instance: Instance) -> Plan:
        """The plan with the instance's fingerprint."""
        return Plan.parse({**self.plan, "instance": instance.fingerprint})


@st.composite
def planted(draw: st.DrawFn) -> Planted:
    """A grid with dead parts beside a connected region, random cuts, waves, chunks, placement and spill."""
    hardware, region = _grid(draw)
    stages = draw(st.integers(1, len(region)))
    placement = draw(st.permutations(region))[:stages]
    split = draw(st.lists(st.integers(1, 3), min_size=stages, max_size=stages))
    starts = [0, *accumulate(split)][:-1]
    kinds = draw(st.lists(st.sampled_from(sorted(ATTENTIONS)), min_size=sum(split), max_size=sum(split)))
    stage_kinds = [kinds[start : start + count] for start, count in zip(starts, split, strict=True)]
    quantum = draw(st.integers(1, 4))
    lists = _chunk_lists(draw, quantum)
    requests = _requests(draw, [sum(sizes) for sizes in lists])
    shapes = sorted({(request["tokens"], request["cached_tokens"]) for request in requests})
    counts = {tokens - cached for tokens, cached in shapes}
    chunks = {str(sum(sizes)): sizes for sizes in lists if sum(sizes) in counts}
    batch = draw(st.integers(1, 3))
    host = draw(st.booleans())
    largest = max(size * max(chunks[str(tokens - cached)]) for size, (tokens, cached) in _waves(requests, batch))
    need = [
        sum(LAYER_BYTES[kind] for kind in own)
        + (TABLE_BYTES if stage == 0 else 0)
        + (TABLE_BYTES + FINAL_NORM_BYTES if stage == stages - 1 else 0)
        + largest * WORKSPACE_BYTES_PER_TOKEN
        for stage, own in enumerate(stage_kinds)
    ]
    free_cuts = [layer for layer in range(1, sum(split)) if layer not in starts]
    document = {
        "name": "planted",
        "hardware": {
            **hardware,
            "dies": [{"at": die, "hbm_bytes": amount} for die, amount in zip(placement, need, strict=True)],
            "host": {"host_bytes": 1, "host_bytes_per_s": 1} if host else None,
        },
        "model": {
            "name": "planted",
            "hidden": HIDDEN,
            "vocab": VOCAB,
            "kinds": {
                name: {"attention": attention, "feed_forward": {"kind": "dense", "width": WIDTH}}
                for name, attention in ATTENTIONS.items()
            },
            "layers": [{"pattern": kinds}],
            **dict.fromkeys(("weight_bytes", "kv_bytes", "activation_bytes"), 2),
        },
        "workload": {"trace": requests},
        "pipeline": {
            "stages": stages,
            "chunk_quantum": quantum,
            "max_chunks": max(map(len, chunks.values())),
            "max_batch": batch + draw(st.integers(0, 1)),
            "layers": draw(st.sampled_from(["free", split])),
            "forbidden_cuts": draw(st.lists(st.sampled_from(free_cuts), unique=True)) if free_cuts else [],
        },
    }
    plan = {
        "batch": batch,
        "layers": split,
        "placement": placement,
        "chunks": chunks,
        "spill": _spill(draw, stage_kinds, chunks, shapes, host),
    }
    return Planted(document, plan, tuple(need))


def _grid(draw: st.DrawFn) -> tuple[dict[str, Any], list[Cell]]:
    """Hardware, and cells that are joined whatever is dead: each was reached from one before by a link that lives."""
    rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    region, links = [draw(st.sampled_from(cells))], set()
    for _ in range(draw(st.integers(0, 4))):
        steps = [(one, other) for one in region for other in cells if other not in region and _adjacent(one, other)]
        if not steps:
            break
        step = draw(st.sampled_from(steps))
        links.add(frozenset(step))
        region.append(step[1])
    others = [cell for cell in cells if cell not in region]
    unused = [
        (one, other)
        for one in cells
        for other in cells
        if one < other and _adjacent(one, other) and frozenset((one, other)) not in links
    ]
    hardware = {
        "rows": rows,
        "columns": columns,
        "link_bytes_per_s": 1,
        "die": {"peak_flops": 1, "hbm_bytes": 1, "hbm_bytes_per_s": 1},
        "disabled_dies": draw(st.lists(st.sampled_from(others), unique=True)) if others else [],
        "disabled_links": draw(st.lists(st.sampled_from(unused), unique=True)) if unused else [],
    }
    return hardware, region


def _adjacent(one: Cell, other: Cell) -> bool:
    return abs(one[0] - other[0]) + abs(one[1] - other[1]) == 1


def _chunk_lists(draw: st.DrawFn, quantum: int) -> list[list[int]]:
    """Lists with different sums: multiples of the quantum, and a last chunk of any size."""
    found: dict[int, list[int]] = {}
    for _ in range(draw(st.integers(1, 2))):
        multiples = draw(st.lists(st.integers(1, 3), max_size=3))
        sizes = [quantum * multiple for multiple in multiples] + [draw(st.integers(1, 9))]
        found.setdefault(sum(sizes), sizes)
    return list(found.values())


def _requests(draw: st.DrawFn, counts: list[int]) -> list[dict[str, Any]]:
    def one() -> dict[str, Any]:
        cached = draw(st.integers(0, 2))
        return {
            "tokens": draw(st.sampled_from(counts)) + cached,
            "cached_tokens": cached,
            "arrival_s": draw(st.integers(0, 2)),
        }

    return [one() for _ in range(draw(st.integers(1, 5)))]


def _waves(requests: list[dict[str, Any]], batch: int) -> list[tuple[int, Cell]]:
    """Sizes and shapes of waves, counted apart from the code under test: runs of one shape, cut every ``batch``."""
    ordered = sorted(requests, key=lambda request: request["arrival_s"])
    waves: list[tuple[int, Cell]] = []
    for request in ordered:
        shape = (request["tokens"], request["cached_tokens"])
        if waves and waves[-1][1] == shape and waves[-1][0] < batch:
            waves[-1] = (waves[-1][0] + 1, shape)
        else:
            waves.append((1, shape))
    return waves


def _spill(
    draw: st.DrawFn,
    stage_kinds: list[list[str]],
    chunks: dict[str, list[int]],
    shapes: list[Cell],
    host: bool,
) -> list[dict[str, Any]]:
    """At most all tokens of a chunk that is not the last, of a stage that keeps full-attention KV."""
    rows = []
    for tokens, cached in shapes:
        for stage, kinds in enumerate(stage_kinds):
            creditors: list[int | str] = [other for other in range(len(stage_kinds)) if other != stage]
            creditors += ["host"] if host else []
            for chunk, size in enumerate(chunks[str(tokens - cached)][:-1]):
                left = size
                if "global" not in kinds or not draw(st.booleans()):
                    continue
                for creditor in creditors:
                    amount = draw(st.integers(0, left))
                    left -= amount
                    row = {"stage": stage, "chunk": chunk, "creditor": creditor, "tokens": amount}
                    named = len(shapes) > 1 or draw(st.booleans())
                    rows.append({**row, "shape": [tokens, cached]} if named else row)
    return rows
