"""A creditor's compute stands still while it serves a fetch (rule 7)."""

from __future__ import annotations

from typing import Any

from tests.solver.simulation.documents import line, run_document, spill, times_s


def _served(creditor_s: list[float], **changes: Any) -> dict[str, Any]:
    """Stage 0 keeps 2 bytes of chunk 0 (computed until 2) at stage 1: written 2 to 4, fetched 4 to 6 by chunk 1."""
    return line([[2, 5], creditor_s], kv_bytes=[[2, 0], [0, 0]], spill=[spill(0, 0, 1, 2)], **changes)


def test_a_running_task_ends_later() -> None:
    # Stage 1 computes chunk 0 from 2; it stands still from 4 to 6: 2 + 9 + 2. The reader ends at max(2 + 5, 6).
    _, end = times_s(_served([9, 1]))
    assert end[0, 1, 0] == 13
    assert end[0, 0, 1] == 7


def test_serve_fraction_scales_the_stall() -> None:
    assert times_s(_served([9, 1], serve_fraction=0.5))[1][0, 1, 0] == 12
    assert times_s(_served([9, 1], serve_fraction=0))[1][0, 1, 0] == 11


def test_an_idle_die_starts_later() -> None:
    # Stage 1 is idle from 3. Twice the service time blocks it from 4 to 8, though chunk 1 arrives at 7.
    start, _ = times_s(_served([1, 1], serve_fraction=2))
    assert start[0, 1, 1] == 8
    # From 4 to 6, the stall is over before the chunk arrives.
    start, _ = times_s(_served([1, 1]))
    assert start[0, 1, 1] == 7


def test_a_stall_at_the_end_of_a_task_falls_on_an_idle_die() -> None:
    # Chunk 0 of stage 1 ends at 4, when the stall begins: the end comes first, and keeps its time.
    _, end = times_s(_served([2, 1]))
    assert end[0, 1, 0] == 4


def test_stalls_add_up() -> None:
    # Stage 2, between stages 0 and 1, keeps 2 bytes for each. Its chunk 0 starts at 3. Stage 0 fetches at 4 (chunk 1)
    # and at 7 (chunk 2), stage 1 at 7 (chunk 1) and at 12 (chunk 2), each for 2 s: 3 + 20 + 4 * 2 = 31.
    document = line(
        [[2, 5, 5], [1, 1, 1], [20, 1, 1]],
        die_of=[[0, 0], [0, 2], [0, 1]],
        kv_bytes=[[2, 0, 0], [2, 0, 0], [0, 0, 0]],
        spill=[spill(0, 0, 2, 2), spill(1, 0, 2, 2)],
    )
    _, outcome = run_document(document, traced=True)
    assert outcome.events is not None
    assert outcome.events.stalls.tolist() == [[2, at * 10**12, 2 * 10**12] for at in (4, 7, 7, 12)]
    assert outcome.stall_ps.tolist() == [0, 0, 8 * 10**12]
    assert times_s(document)[1][0, 2, 0] == 31


def test_a_pending_fetch_may_hide_a_stall() -> None:
    # Stage 1 writes 3 bytes of chunk 0 to its host from 2 to 5; its chunk 1 starts at 5 and fetches them until 8.
    # Stage 0's chunk 2 fetches 2 bytes from it at 5: compute that would be over at 6 is over at 8, with the fetch.
    def end_of_chunk_1(compute_s: float, *, overlap: bool = True) -> float:
        document = line(
            [[1, 1, 5], [1, compute_s, 1]],
            kv_bytes=[[2, 0, 0], [3, 0, 0]],
            spill=[spill(0, 0, 1, 2), spill(1, 0, "host", 3)],
            host={"host_bytes": 3, "host_bytes_per_s": 1},
            overlap=overlap,
        )
        return times_s(document)[1][0, 1, 1]

    assert end_of_chunk_1(1) == 8
    # Over at 5 + 2 + 2 = 9, hidden in part.
    assert end_of_chunk_1(2) == 9
    # Without overlap stage 0's chunk 1 ends at 6, so all this is 1 s later, and the stall adds in full: 9 + 1 + 2.
    assert end_of_chunk_1(1, overlap=False) == 12
