"""MOCAP's LBCP, stage 1: dynamic programming that keeps one (sum, max) pair for each state.

As the paper words it (arXiv 2606.22968, Alg. 1 lines 1-7): loops over the chunk index m, the position s and the size k;
the chunk's time t joins the suffix state (m+1, s+k) to t'_sum and t'_max; the candidate that minimises
t'_sum + (N-1)*t'_max is kept. One pair per state is a heuristic: a suffix with a larger score but a smaller sum can be
the better one once an earlier chunk sets the maximum. `exact.solve_chunks` is the exact counterpart.
"""

import numba
import numpy as np

from formulations.chunks.kernels import Floats, Ints
from formulations.chunks.result import ChunkResult, FloatTable, checked_table, checked_weights, chunk_value
from instances.errors import InputError


def single_label_chunks(t: FloatTable, max_weight: float, chunks: int) -> ChunkResult:
    """Cut into exactly `chunks` chunks by the single-label recurrence.

    Parameters
    ----------
    t
        Shape (n+1, n+1): compute time of the chunk of quanta p..e-1 at [p, e]; +inf forbids it.
    max_weight
        N - 1 for N stages.
    chunks
        M, 1 <= M <= n.

    Returns
    -------
    ChunkResult
        No bound; no cuts where the recurrence finds no admitted sequence. Ties go to the smaller chunk.
    """
    cost = checked_table("t", t)
    _, weight = checked_weights(1.0, max_weight)
    quanta = cost.shape[0] - 1
    if not 1 <= chunks <= quanta:
        raise InputError("chunks", chunks, f"between 1 and the number of quanta, {quanta}")
    size, total = suffix_table(cost, weight, chunks)
    if not np.isfinite(total):
        return ChunkResult([], None, None, False, chunks)
    cuts: list[int] = []
    for layer in range(chunks):
        start = cuts[-1] if cuts else 0
        cuts.append(start + int(size[layer, start]))
    return ChunkResult(cuts, chunk_value(cost, cost, 1.0, weight, cuts), None, False, chunks)


@numba.njit(cache=True)
def suffix_table(t: Floats, max_weight: float, chunks: int) -> tuple[Ints, float]:
    """Chosen chunk size per (chunk index, position), shape (chunks, n), and the score of the whole sequence.

    Layer m holds the suffix that starts with chunk m; chunk m starts no earlier than m and leaves a quantum for each
    chunk behind it.
    """
    n = t.shape[0] - 1
    size = np.zeros((chunks, n), dtype=np.int64)
    next_sum = np.full(n + 1, np.inf)
    next_max = np.zeros(n + 1)
    next_sum[n] = 0.0
    for m in range(chunks - 1, -1, -1):
        after = chunks - 1 - m
        layer_sum = np.full(n + 1, np.inf)
        layer_max = np.zeros(n + 1)
        for s in range(m, n - after):
            best = np.inf
            first = 1 if after else n - s
            for k in range(first, n - after - s + 1):
                chunk_s = t[s, s + k]
                candidate_sum = chunk_s + next_sum[s + k]
                candidate_max = max(chunk_s, next_max[s + k])
                score = candidate_sum + max_weight * candidate_max
                if score < best:
                    best = score
                    size[m, s] = k
                    layer_sum[s] = candidate_sum
                    layer_max[s] = candidate_max
        next_sum, next_max = layer_sum, layer_max
    return size, next_sum[0] + max_weight * next_max[0]
