"""Compiles what is compiled, before the clock starts: once after an installation, a moment afterwards."""

from __future__ import annotations

import numpy as np

from formulations.chunks.exact import solve_chunks
from formulations.chunks.single_label import single_label_chunks
from formulations.placement.warmup import warm_up as warm_up_placement
from solver.simulation.program_file import replay_document

_TINY = {
    "die_of": [[0, 0], [0, 1]],
    "compute_s": [[1, 1], [1, 1]],
    "activation_bytes": [1, 1],
    "kv_bytes": [[1, 1], [1, 1]],
    "arrivals_s": [0],
    "link_bytes_per_s": 1,
    "hop_latency_s": 0,
}


def warm_up() -> None:
    """Run every compiled kernel once on the smallest input: the event loop and the chunk searches.

    numba keeps the machine code beside the sources, so only the first call after an installation takes seconds.
    """
    replay_document(_TINY)
    table = np.array([[np.inf, 1.0, 2.5, 4.5], [np.inf, np.inf, 1.2, 2.7], [np.inf] * 3 + [1.3], [np.inf] * 4])
    for most in (2, 3):
        solve_chunks(table, table, 1.0, 1.0, most)
    single_label_chunks(table, 1.0, 2)
    warm_up_placement()
