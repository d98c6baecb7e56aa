"""The order in which each die runs its tasks: the plain schedule, the V-shaped ones, or as given (spec section 3)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.reference.program import Die, Program, Task


def die_programs(program: Program, chunks_of_wave: Sequence[int] | None = None) -> dict[Die, list[Task]]:
    """Per die, its tasks in program order; all waves have as many chunks unless other numbers are given."""
    counts = [program.chunks] * program.waves if chunks_of_wave is None else list(chunks_of_wave)
    if program.order is not None:
        return dict(zip(dict.fromkeys(program.die_of), program.order, strict=True))
    if program.schedule == "chunked":
        return {
            die: [Task(wave, chunk, stage) for wave, count in enumerate(counts) for chunk in range(count)]
            for stage, die in enumerate(program.die_of)
        }
    return {program.die_of[r]: _v_shaped(program, r, counts) for r in range(program.stages // 2)}


def _v_shaped(program: Program, r: int, counts: list[int]) -> list[Task]:
    """Die r holds virtual stages r (head) and 2N-1-r (tail); period k runs H(k+d) and T(k-d), d = N-1-r."""
    dies = program.stages // 2
    distance = dies - 1 - r
    head_stage, tail_stage = r, 2 * dies - 1 - r
    every_chunk = [(wave, chunk) for wave, count in enumerate(counts) for chunk in range(count)]
    if program.schedule == "vpp-packed":
        groups = [every_chunk]
    else:
        groups = [[pair for pair in every_chunk if pair[0] == wave] for wave in range(len(counts))]
    # On the fold die (distance 0) the tail needs the head of the same period, so it is always [H, T].
    tail_first = program.schedule == "vpp" and distance > 0
    order: list[Task] = []
    for group in groups:
        for k in range(-distance, len(group) + distance):
            head = [Task(*group[k + distance], head_stage)] if 0 <= k + distance < len(group) else []
            tail = [Task(*group[k - distance], tail_stage)] if 0 <= k - distance < len(group) else []
            order += tail + head if tail_first else head + tail
    return order
