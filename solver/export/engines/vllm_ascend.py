"""vLLM-Ascend: as vLLM, with dynamic chunks (profiling_chunk_config), V-shaped schedules and an HCCL rank table.

Names as in ``vllm_ascend/ascend_config.py`` of mid 2026; virtual stages as in the open pull requests 14945 and 16618.
"""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path

from solver.export.engines.engine import Target
from solver.export.engines.handover import Files, Handover, hand_over
from solver.export.engines.splits import vllm_split
from solver.export.engines.vllm import PARTITION, node_scripts
from solver.export.source import Source

TARGET = Target(
    "vllm-ascend",
    predictor="ascend",
    page=128,
    split=vllm_split,
    start="Run `MODEL=/path/to/model bash node-k.sh` on node k, with several nodes also `HEAD=host` of the node of "
    "stage 0. `rank_table.json` gives HCCL the order of devices: fill in the addresses, and set RANK_TABLE_FILE.",
    notes=(
        "In a prefill-decode split the partition belongs to the prefill side: name it in kv_connector_extra_config on "
        "both sides and do not export it on the decode side.",
    ),
    dynamic_notes=(
        "Dynamic chunking takes the scheduler's profile at start. need_timing is off: with it the engine fits another "
        "model to its first steps, and chunks are no longer those given here.",
    ),
    v_notes=(
        "Virtual stages are in open pull requests, not in a release.",
        "The engine drives all ranks from one queue, as replayed here: with more than two ranks its order is not the "
        "plan's, and bubbles grow; embedding and head are both on rank 0.",
    ),
    v_shaped=True,
)


def write(source: Source, path: Path) -> str:
    """Write the folder; what was written, in a few words."""
    return hand_over(source, path, TARGET, _files)


def _files(made: Handover) -> Files:
    plan, knobs = made.plan, made.projection.knobs
    config: dict[str, object] = {}
    exports: dict[str, str] = {}
    if plan.v_shaped:
        exports["ENABLE_VPP"] = "true"
        config |= {"virtual_pipeline_parallel_size": 2, "vpp_layer_ranges": v_ranges(plan.layers)}
    else:
        exports[PARTITION] = made.partition
    if knobs.smoothing is not None:
        profiling = {"enabled": True, "smooth_factor": knobs.smoothing, "min_chunk": knobs.least, "need_timing": False}
        config["scheduler_config"] = {"profiling_chunk_config": profiling}
    extra: list[tuple[str, ...]] = [("--no-async-scheduling",)]
    extra += [("--enforce-eager",)] if plan.v_shaped else []
    extra += [("--additional-config", json.dumps(config))] if config else []
    scripts = node_scripts(made, "ASCEND_RT_VISIBLE_DEVICES", exports, extra, page=TARGET.page)
    return {**scripts, "rank_table.json": json.dumps(_rank_table(made), indent=1) + "\n"}


def v_ranges(layers: tuple[int, ...]) -> list[list[list[int]]]:
    """For each rank r its two runs of layers as [start, end): those of virtual stages r and 2N-1-r."""
    ends = accumulate(layers)
    spans = [[end - count, end] for end, count in zip(ends, layers, strict=True)]
    return [[spans[rank], spans[-1 - rank]] for rank in range(len(layers) // 2)]


def _rank_table(made: Handover) -> dict[str, object]:
    """Ranks by server, in the layout of MindCluster's rank table; addresses are the reader's to fill in."""
    servers: dict[int, list[dict[str, str]]] = {}
    number = 0
    for rank in made.ranks:
        for device in made.devices_of(rank):
            entry = {"device_id": str(device), "device_ip": "", "rank_id": str(number)}
            servers.setdefault(rank.node, []).append(entry)
            number += 1
    return {
        "version": "1.0",
        "status": "completed",
        "server_count": str(len(servers)),
        "server_list": [{"server_id": f"node-{node}", "device": devices} for node, devices in servers.items()],
    }
