"""Pooled spill of equal chunks in lockstep: what the linear program's plans reach under the replay."""

from __future__ import annotations

import pytest

from instances.instance import Instance
from instances.plan import Plan
from solver.exact.pool import Unlimited, pooled_plan, unlimited_run
from tests.searches import bare_search
from tests.tiny import line

CHUNK_TOKENS = 10**7
CHUNK_BYTES = 2 * CHUNK_TOKENS
"""KV of a chunk of one layer of ``tests.tiny.line``; its program counts in gigabytes."""
SQUARE = (
    *((0, 0), (0, 1), (0, 2), (0, 3), (2, 3), (2, 2), (2, 1), (2, 0)),
    *((1, 0), (1, 1), (1, 2), (1, 3), (3, 3), (3, 2), (3, 1), (3, 0)),
)
"""Stages on a 4x4 mesh with fewest hops: 17 between neighbours in the pipeline, partners i and i + 8 side by side."""


def _instance(
    stages: int, chunks: int, waves: int, memory_chunks: float, *, mesh: tuple[int, int], link: float
) -> Instance:
    """Chunks of a second a stage; weights and workspace beside memory for so many chunks; activations are small."""
    activation_bytes = 1 / 128
    static = 30 + 5 * activation_bytes * CHUNK_TOKENS
    return line(
        [1] * stages,
        fitted={"token_s": stages / CHUNK_TOKENS},
        model={"activation_bytes": activation_bytes},
        hardware={
            "rows": mesh[0],
            "columns": mesh[1],
            "link_bytes_per_s": link,
            "die": {"hbm_bytes": static + memory_chunks * CHUNK_BYTES},
        },
        workload={"requests": waves, "tokens": chunks * CHUNK_TOKENS},
        pipeline={"chunk_quantum": CHUNK_TOKENS, "max_chunks": chunks},
    )


def _pooled(instance: Instance, placement: tuple[tuple[int, int], ...]) -> tuple[Unlimited, float | None]:
    """The run without memory limits, and the value of the best pooled plan that was offered."""
    search = bare_search(instance)
    layers = instance.fixed_layers
    assert layers is not None
    tokens = instance.workload.uncached_counts[0]
    chunks = {str(tokens): (CHUNK_TOKENS,) * (tokens // CHUNK_TOKENS)}
    plan = Plan(instance=instance.fingerprint, batch=1, layers=layers, placement=placement, chunks=chunks)
    unlimited = unlimited_run(search, plan)
    assert unlimited is not None
    pooled_plan(search, plan, unlimited)
    return unlimited, search.incumbent.value


def _row(stages: int, memory_chunks: float) -> tuple[Unlimited, float | None]:
    """Three waves of four chunks on a row of dies whose links take no time."""
    instance = _instance(stages, 4, 3, memory_chunks, mesh=(1, stages), link=1e15)
    return _pooled(instance, tuple((0, stage) for stage in range(stages)))


def test_a_pair_shares_seven_chunks() -> None:
    # Two stages, four chunks, offset 1: the pair's peak is 2*4 - 1 = 7 chunks. Three waves take 3*4 + 1 = 13 s.
    unlimited, value = _row(2, 3.6)
    assert unlimited.value == pytest.approx(13.0, abs=1e-6)
    assert value == pytest.approx(13.0, abs=1e-4)
    assert _row(2, 3.4)[1] is None


@pytest.mark.parametrize("memory_chunks", [3.4, 3.0, 2.6])
def test_four_stages_share_ten_chunks(memory_chunks: float) -> None:
    # In lockstep four stages hold 1 + 2 + 3 + 4 = 10 chunks at any time, 2.5 a die. Three waves take 3*4 + 3 = 15 s.
    unlimited, value = _row(4, memory_chunks)
    assert unlimited.value == pytest.approx(15.0, abs=1e-6)
    assert value == pytest.approx(15.0, abs=1e-4)


def test_less_than_the_chunks_of_a_slot() -> None:
    assert _row(4, 2.4)[1] is None


@pytest.mark.parametrize(
    ("memory_chunks", "most_s"),
    [
        # What an earlier experiment reached, plus half a percent: 79.87, 80.23, 80.65, 81.00, 81.40.
        (12, 80.3),
        (11, 80.6),
        (10, 81.0),
        (9.5, 81.4),
        (9, 81.8),
    ],
)
def test_sixteen_stages_in_a_pool(memory_chunks: float, most_s: float) -> None:
    # Sixteen chunks, four waves: 4*16 + 15 = 79 s without a limit. A chunk's KV takes 0.01 s over a link.
    instance = _instance(16, 16, 4, memory_chunks, mesh=(4, 4), link=CHUNK_BYTES / 0.01)
    unlimited, value = _pooled(instance, SQUARE)
    assert unlimited.value == pytest.approx(79.0, abs=0.01)
    assert value is not None
    assert unlimited.value <= value <= most_s
