"""Pipelines of any size for the benchmarks: layers of Llama-3-70B, five to a stage, on a mesh as square as may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from instances.instance import Instance
from instances.plan import Plan, SpillRow
from solver.simulation.lowering import Lowering
from solver.simulation.program import Program

CHUNK_TOKENS = 2048
LAYERS_PER_STAGE = 5
SPILL_TOKENS = 512
JITTER = 0.1


@dataclass(frozen=True)
class Size:
    """So many stages, chunks a wave, waves."""

    stages: int
    chunks: int
    waves: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """Read "16x64x16"."""
        stages, chunks, waves = (int(word) for word in text.split("x"))
        return cls(stages, chunks, waves)

    def __str__(self) -> str:
        return f"{self.stages}x{self.chunks}x{self.waves}"

    @property
    def tasks(self) -> int:
        """One for each chunk on each stage in each wave."""
        return self.stages * self.chunks * self.waves

    @property
    def transfers(self) -> int:
        """Activations, one write of every chunk but a wave's last, one fetch for every chunk but a wave's first."""
        return self.waves * ((self.stages - 1) * self.chunks + 2 * self.stages * (self.chunks - 1))


SMALL, YARDSTICK, LARGEST = Size(4, 6, 3), Size(16, 64, 16), Size(256, 256, 4)
LADDER = (Size(4, 4, 1), Size(8, 16, 4), Size(16, 16, 4), YARDSTICK, Size(64, 64, 16), Size(128, 128, 8), LARGEST)


def instance_of(size: Size) -> Instance:
    """Links of 100 GB/s, slow enough for transfers to wait for each other and for fetches to stall their creditors."""
    rows = isqrt(size.stages)
    while size.stages % rows:
        rows -= 1
    attention = {"kind": "full", "heads": 64, "kv_heads": 8, "head_dim": 128}
    layer = {"attention": attention, "feed_forward": {"kind": "dense", "width": 28672}}
    return Instance.read(
        {
            "name": f"pipeline-{size}",
            "hardware": {
                "rows": rows,
                "columns": size.stages // rows,
                "link_bytes_per_s": "100 GB/s",
                "hop_latency_s": "50 ns",
                "die": {"peak_flops": "4.5 PFLOP/s", "hbm_bytes": "180 GB", "hbm_bytes_per_s": "7.7 TB/s"},
            },
            "model": {
                "name": "llama3-70b-layers",
                "hidden": 8192,
                "vocab": 128256,
                "kinds": {"layer": layer},
                "layers": [{"pattern": ["layer"], "repeat": LAYERS_PER_STAGE * size.stages}],
                "weight_bytes": 1,
                "kv_bytes": 2,
                "activation_bytes": 2,
            },
            "workload": {"requests": size.waves, "tokens": size.chunks * CHUNK_TOKENS},
            "pipeline": {
                "stages": size.stages,
                "chunk_quantum": CHUNK_TOKENS,
                "max_chunks": size.chunks,
                "max_batch": 1,
            },
        }
    )


def plan_of(instance: Instance, size: Size) -> Plan:
    """Equal chunks along a snake; every stage keeps a quarter of each chunk but the last with the opposite stage."""
    columns = instance.hardware.columns
    cells = [divmod(number, columns) for number in range(size.stages)]
    half = size.stages // 2
    return Plan(
        instance=instance.fingerprint,
        batch=1,
        layers=(LAYERS_PER_STAGE,) * size.stages,
        placement=tuple((row, column if row % 2 == 0 else columns - 1 - column) for row, column in cells),
        chunks={str(size.chunks * CHUNK_TOKENS): (CHUNK_TOKENS,) * size.chunks},
        spill=tuple(
            SpillRow(stage=stage, chunk=chunk, creditor=(stage + half) % size.stages, tokens=SPILL_TOKENS)
            for stage in range(size.stages)
            for chunk in range(size.chunks - 1)
        ),
    )


def program_of(size: Size) -> Program:
    """The lowered plan with uneven times and sizes: up to a tenth is taken off each.

    Otherwise transfers of one size that wait for the same third one would end in the same picosecond, and so on: then
    the order of the events of an instant decides, which is not the same in every simulator.
    """
    instance = instance_of(size)
    program = Lowering(instance).program(plan_of(instance, size))
    rng = np.random.default_rng(size.tasks)

    def uneven(amounts: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.rint(amounts * rng.uniform(1 - JITTER, 1, len(amounts))).astype(np.int64)

    return replace(
        program,
        duration_ps=uneven(program.duration_ps),
        send_units=uneven(program.send_units),
        write_units=uneven(program.write_units),
    )
