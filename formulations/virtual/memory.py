"""Which chunks memory admits in a V: necessary conditions for every placement, spill and timing."""

from __future__ import annotations

from formulations.admissible import admissible_chunk_tokens
from formulations.tables import fastest_die
from formulations.virtual.split import fixed_parts, ranges
from instances.instance import Instance
from instances.workload import Shape


class VirtualMemory:
    """What memory admits in the V-shaped plans of one instance."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._split = fixed_parts(instance)
        # What holds for every split into stages of at least one layer holds for the dies of a V too.
        self._any = instance.with_pipeline(layers="free")

    def chunk_tokens(self, size: int, shape: Shape) -> tuple[int, str | None]:
        """Most tokens that a chunk may have in any V that runs, for waves of ``size`` requests, and why none may.

        Where the parts are fixed, a die must hold the weights of both, one workspace, and the chunk's own KV of either.
        """
        instance, cost = self.instance, self.instance.stage_cost
        limit, reason = admissible_chunk_tokens(self._any, size, shape)
        if self._split is None or reason is not None:
            return limit, reason
        parts, room = ranges(self._split), fastest_die(instance).hbm_bytes
        least = min(shape[0] - shape[1], instance.pipeline.chunk_quantum)
        for die, pair in enumerate(zip(parts[: len(parts) // 2], reversed(parts), strict=False)):
            weights = cost.die_weight_bytes(pair, embedding=die == 0, head=die == 0)
            workspace = max(cost.workspace_bytes(*part, size, 1) for part in pair)
            per_token = workspace + max(size * cost.spillable_bytes_per_token(*part) for part in pair)
            need = weights + per_token * least
            if need > room * (1 + 1e-12):
                where = f"die {die} of the V, with {' and '.join(f'layers {a}..{b - 1}' for a, b in pair)}, needs"
                return 0, f"capacity_at_rest: {where} {need:.4g} bytes of {room:.4g} at batch {size}"
            if per_token:
                # A chunk that fits exactly must not be lost to the rounding of the division.
                limit = min(limit, max(least, int((room - weights) / per_token * (1 + 1e-12))))
        return limit, None
