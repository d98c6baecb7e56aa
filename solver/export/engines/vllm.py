"""vLLM: layer partition and token budget, one script a node, or one for Ray with the device of each rank.

Names as in ``vllm/envs.py`` and ``vllm/engine/arg_utils.py`` of mid 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from solver.export.engines.engine import Target
from solver.export.engines.handover import Files, Handover, hand_over
from solver.export.engines.ranks import fills_nodes
from solver.export.engines.script import launch_script
from solver.export.engines.splits import vllm_split
from solver.export.source import Source

TARGET = Target(
    "vllm",
    predictor="",
    page=64,
    split=vllm_split,
    start="With one script a node run `MODEL=/path/to/model bash node-k.sh` on node k, with several nodes also "
    "`HEAD=host` of the node of stage 0. `ray.sh` is for ranks that jump between nodes, or unequal runs of them: start "
    "Ray with the partition set on every node, and run it in a placement group with one bundle a device in use, "
    "counted node by node.",
    notes=(
        "The partition is read at start; it has to be set on every node before workers are made.",
        "With asynchronous scheduling it can hold one chunk more in flight than replayed here.",
        "Every chunk has the same size: dynamic chunking is not in a release.",
    ),
    any_node=True,
)
PARTITION = "VLLM_PP_LAYER_PARTITION"

Flags = Sequence[tuple[str, ...]]


def write(source: Source, path: Path) -> str:
    """Write the folder; what was written, in a few words."""
    return hand_over(source, path, TARGET, _files)


def _files(made: Handover) -> Files:
    return node_scripts(made, "CUDA_VISIBLE_DEVICES", {PARTITION: made.partition}, (), page=TARGET.page)


def node_scripts(made: Handover, visible: str, exports: dict[str, str], extra: Flags, *, page: int) -> dict[str, str]:
    """One script a node, or ``ray.sh`` where nodes are not filled in order of ranks."""
    flags: list[tuple[str, ...]] = [
        ("--pipeline-parallel-size", str(len(made.ranks))),
        *([("-tp", str(made.degree))] if made.degree > 1 else []),
        ("--enable-chunked-prefill",),
        ("--max-num-batched-tokens", str(made.projection.knobs.base)),
        ("--block-size", str(page)),
        *extra,
    ]
    command = ["vllm", "serve", '"${MODEL:?path or name of the model}"']
    if not fills_nodes(made.ranks):
        exports = {**exports, "VLLM_RAY_BUNDLE_INDICES": ",".join(map(str, bundles_of(made)))}
        ray: Flags = [*flags, ("--distributed-executor-backend", "ray")]
        return {
            "ray.sh": launch_script("vLLM on Ray; bundles are the devices in use, node by node", exports, command, ray)
        }
    nodes, files = made.nodes, {}
    for node in nodes:
        here: list[tuple[str, ...]] = [*flags, ("--distributed-executor-backend", "mp")]
        if len(nodes) > 1:
            here += [
                ("--nnodes", str(len(nodes))),
                ("--node-rank", str(node.order)),
                ("--master-addr", "${HEAD:?host of the node of stage 0}"),
                ("--master-port", "${PORT:-29500}"),
                *([("--headless",)] if node.order else []),
            ]
        shown = {**exports, visible: node.visible}
        files[f"node-{node.number}.sh"] = launch_script(f"vLLM, {node.says}", shown, command, here)
    return files


def bundles_of(made: Handover) -> list[int]:
    """The bundle of each device in the order of ranks; bundles are the devices in use, counted node by node."""
    devices = [(rank.node, device) for rank in made.ranks for device in made.devices_of(rank)]
    number = {device: count for count, device in enumerate(sorted(devices))}
    return [number[device] for device in devices]
