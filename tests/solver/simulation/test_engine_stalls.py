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
    # Stage 0 and stage 2 keep 2 bytes each at stage 1, between them. Stage 1 starts chunk 0 at 2, would end it at 22.
    # Stage 0's fetch runs 4 to 6. Stage 2 starts chunk 0 only when stage 1 ends it at 22 + 2 = 24, ends at 25, writes
    # 25 to 27, starts its chunk 1 when stage 1 ends chunk 1. That one runs from 24 to 34, so stage 2's chunk 1 starts
    # at 34 and fetches 34 to 36; stage 1 is idle, its stall counts all the same.
    document = line(
        [[2, 5], [20, 10], [1, 1]],
        kv_bytes=[[2, 0], [0, 0], [2, 0]],
        spill=[spill(0, 0, 1, 2), spill(2, 0, 1, 2)],
    )
    _, end = times_s(document)
    assert (end[0, 1, 0], end[0, 1, 1], end[0, 2, 1]) == (24, 34, 36)
    _, outcome = run_document(document)
    assert outcome.stall_ps.tolist() == [0, 4 * 10**12, 0]


def test_a_stall_is_hidden_by_a_pending_fetch_of_the_die_itself() -> None:
    # Each stage keeps 4 bytes at the other. Stage 1: chunk 0 from 1 to 3, written 3 to 7; chunk 1 starts at 3 and
    # fetches 7 to 11, its compute would be over at 4. Stage 0: chunk 0 to 1, written 1 to 5; chunk 1 from 1, fetched 5
    # to 9, which stalls stage 1 from 5 for 4: compute end 4 + 4 = 8, still before its fetch at 11.
    document = line(
        [[1, 2], [2, 1]],
        kv_bytes=[[4, 0], [4, 0]],
        spill=[spill(0, 0, 1, 4), spill(1, 0, 0, 4)],
    )
    start, end = times_s(document)
    # Activation of chunk 1: stage 0's own fetch comes over the other link, but the write 1 to 5 is on the way.
    assert start[0, 1, 1] == end[0, 0, 1] == 9
    assert end[0, 0, 1] == max(1 + 2, 9)
