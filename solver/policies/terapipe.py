"""TeraPipe (arXiv 2102.07988): token slices by dynamic programming over caps, beside the best uniform slices."""

from __future__ import annotations

from formulations.chunks.terapipe import terapipe_chunks
from instances.workload import Shape
from solver.policies.layout import heaviest_table, pipeline_layout
from solver.policies.uniform import uniform_plans
from solver.search import Search


def terapipe(search: Search) -> None:
    """TeraPipe: the DP of equations (5) to (8) for each batch, and uniform slices of the best count.

    The DP sees the compute time of the slowest stage and W waves; its plans and the uniform ones are replayed and the
    best kept. Knobs: ``slicing`` (``dp``, ``uniform`` or ``both``) and ``caps``, how many caps the DP tries at most:
    where the public program would try more, the step between two of them is widened.
    """
    layers, placement = pipeline_layout(search)
    slicing = search.knobs["slicing"]
    if slicing in ("dp", "both"):
        for batch in search.batches():
            sizes: dict[int, tuple[int, ...]] = {}
            for shape in search.instance.workload.shapes:
                if not search.may_tabulate(shape):
                    sizes = {}
                    break
                sizes[shape[0] - shape[1]] = _sliced(search, batch, shape)
            if sizes and all(sizes.values()):
                search.offer(search.plan(batch, sizes, layers, placement))
            if search.deadline.over:
                return
    if slicing in ("uniform", "both"):
        for plan in uniform_plans(search):
            search.offer(plan)
            if search.deadline.over:
                return


def _sliced(search: Search, batch: int, shape: Shape) -> tuple[int, ...]:
    same_shape = search.instance.workload.requests_of_shape[shape]
    waves = -(-same_shape // batch)
    table = heaviest_table(search, min(batch, same_shape), shape)
    # TeraPipe minimises the time until all is done; for latencies its sum counts once for each wave that waits for it.
    weight = waves if search.instance.objective == "makespan" else (waves + 1) / 2
    found = terapipe_chunks(
        table,
        table,
        A=weight,
        Z=search.stages - 1,
        max_chunks=search.chunks or search.instance.pipeline.max_chunks,
        min_chunks=search.chunks or 1,
        max_caps=search.knobs["caps"],
        over=lambda: search.deadline.over,
    )
    return search.tables.grid(shape).sizes(found.cuts) if found.cuts else ()
