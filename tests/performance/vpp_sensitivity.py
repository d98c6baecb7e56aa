"""What VPP gains over the plain pipeline, as tables: ``python -m tests.performance.vpp_sensitivity``.

Chunk size: one request of 512K tokens in chunks of a size, the last with the rest, as engines cut. Costs as the VPP
study reports them: 22 chunks of 24K take a die 252 s, 0.353 s of each chunk whatever its size (75 more chunks took
26.48 s more), and attention's share of a first chunk, a*B/b, is 0.28, with which dynamic chunking makes its 97 chunks.

Attention: layers of GLM-5.2, whose indexer picks ``top_k`` tokens of the prefix, on four dies. With few tokens picked
chunks stop growing, and then the plain pipeline is as good as it gets but for filling and draining.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from instances.catalogue import load_model
from instances.instance import Instance
from instances.numbers import share_text, time_text
from instances.plan import Plan, Schedule
from solver.evaluate import Evaluator
from tests.tiny import line

TOKENS = 512 * 1024
BASE, CHUNKS = 24 * 1024, 22
BUSY_S, OVERHEAD_S, SHARE = 252.0, 0.353, 0.28
SIZES = tuple(size * 1024 for size in (8, 12, 16, 20, 24, 28, 32, 40, 48))
TOP_K = (None, 65536, 16384, 2048)
SPARSE_TOKENS, SPARSE_CHUNK = 128 * 1024, 4096
KIND = "mla-index-moe"


@dataclass(frozen=True)
class Point:
    """Makespan and idle share of a plan on both schedules."""

    plain_s: float
    v_s: float
    plain_bubble: float
    v_bubble: float

    @property
    def gain(self) -> float:
        """Share of the plain makespan that the V saves."""
        return 1 - self.v_s / self.plain_s


def main() -> None:
    """Print both tables as Markdown."""
    for dies in (2, 4):
        sys.stdout.write(
            f"| chunks on {dies} dies | number, last | plain | bubble | V | bubble | gain |\n"
            "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        )
        for size in SIZES:
            count, last = -(-TOKENS // size), TOKENS - (TOKENS - 1) // size * size
            sys.stdout.write(f"| {size // 1024}K | {count}, {last // 1024}K{_cells(by_chunk_size(dies, size))}\n")
        sys.stdout.write("\n")
    sys.stdout.write("| tokens that attention meets | plain | bubble | V | bubble | gain |\n")
    sys.stdout.write("| ---: | ---: | ---: | ---: | ---: | ---: |\n")
    for top_k in TOP_K:
        sys.stdout.write(f"| {'all' if top_k is None else top_k}{_cells(by_attention(top_k))}\n")


def by_chunk_size(dies: int, size: int, *, equal: bool = False) -> Point:
    """The study's request in chunks of a size; ``equal``: as many as that makes, of equal size."""
    each_s = (BUSY_S - CHUNKS * OVERHEAD_S) / (TOKENS + SHARE * TOKENS**2 / BASE)
    per_die = {"chunk_s": OVERHEAD_S, "token_s": each_s, "pair_s": SHARE * each_s / BASE}
    count = -(-TOKENS // size)
    instance = line(
        [2] * dies,
        fitted={name: dies * seconds for name, seconds in per_die.items()},
        workload={"requests": 1, "tokens": TOKENS},
        pipeline={"layers": "balanced", "max_chunks": count},
    )
    sizes = [size] * (count - 1) + [TOKENS - (count - 1) * size]
    if equal:
        sizes = [TOKENS * (number + 1) // count - TOKENS * number // count for number in range(count)]
    return _point(instance, tuple(sizes))


def by_attention(top_k: int | None) -> Point:
    """64 layers of GLM-5.2 on four dies whose indexer picks so many tokens; None: attention meets all."""
    model: dict[str, Any] = load_model("glm-5.2").model_dump(mode="json")
    kind = model["kinds"][KIND]
    kind["attention"]["sparse"] = None if top_k is None else {**kind["attention"]["sparse"], "top_k": top_k}
    model |= {"kinds": {KIND: kind}, "layers": [{"pattern": [KIND], "repeat": 64}]}
    instance = Instance.read(
        {
            "schema_version": 1,
            "name": "sparse",
            "hardware": {
                "rows": 1,
                "columns": 4,
                "link_bytes_per_s": "5 TB/s",
                "die": {"peak_flops": "4.5 PFLOP/s", "hbm_bytes": "10 TB", "hbm_bytes_per_s": "7.7 TB/s"},
            },
            "model": model,
            "workload": {"requests": 1, "tokens": SPARSE_TOKENS},
            "pipeline": {"stages": 4, "chunk_quantum": SPARSE_CHUNK, "max_chunks": SPARSE_TOKENS // SPARSE_CHUNK},
        }
    )
    return _point(instance, (SPARSE_CHUNK,) * (SPARSE_TOKENS // SPARSE_CHUNK))


def _point(instance: Instance, sizes: tuple[int, ...]) -> Point:
    found = list(_measured(instance, sizes))
    return Point(*(makespan for makespan, _ in found), *(bubble for _, bubble in found))


def _measured(instance: Instance, sizes: tuple[int, ...]) -> Iterator[tuple[float, float]]:
    dies = tuple((0, column) for column in range(instance.pipeline.stages))
    schedules: tuple[Schedule, ...] = ("chunked", "vpp-async")
    for schedule in schedules:
        placement = dies if schedule == "chunked" else dies + dies[::-1]
        plan = Plan(
            instance=instance.fingerprint,
            batch=1,
            layers=(instance.model.layer_count // len(placement),) * len(placement),
            placement=placement,
            chunks={str(sum(sizes)): sizes},
            schedule=schedule,
        )
        metrics = Evaluator(instance).full(plan).metrics
        assert metrics is not None
        yield metrics.makespan_s, metrics.bubble.makespan


def _cells(point: Point) -> str:
    shown = (
        time_text(point.plain_s),
        share_text(point.plain_bubble),
        time_text(point.v_s),
        share_text(point.v_bubble),
        share_text(point.gain),
    )
    return "".join(f" | {cell}" for cell in shown) + " |"


if __name__ == "__main__":
    main()
