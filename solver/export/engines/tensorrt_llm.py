"""TensorRT-LLM: a YAML file of LlmArgs, and the order of devices.

Names as in ``tensorrt_llm/llmapi/llm_args.py`` of mid 2026.
"""

from __future__ import annotations

import json
from pathlib import Path

from solver.export.engines.engine import Target
from solver.export.engines.handover import Files, Handover, hand_over
from solver.export.engines.splits import tensorrt_split
from solver.export.source import Source

TARGET = Target(
    "tensorrt-llm",
    predictor="",
    page=64,
    split=tensorrt_split,
    start="Hand `llm_args.yaml` to `trtllm-serve` as its file of LLM API options, or load it and pass it to `LLM(...)`."
    " `devices.json` has what CUDA_VISIBLE_DEVICES has to be on each node, nodes in the order of MPI ranks.",
    notes=(
        "Every chunk has the same size: max_num_tokens.",
        "MPI ranks are counted stage by stage; start them node by node in the order of `devices.json`.",
    ),
)


def write(source: Source, path: Path) -> str:
    """Write the folder; what was written, in a few words."""
    return hand_over(source, path, TARGET, _files)


def _files(made: Handover) -> Files:
    # YAML contains JSON, so that a value in JSON is one in YAML.
    options = {
        "pipeline_parallel_size": len(made.ranks),
        "tensor_parallel_size": made.degree,
        "pp_partition": list(made.plan.layers),
        "enable_chunked_prefill": True,
        "max_num_tokens": made.projection.knobs.base,
        "scheduler_config": {
            "capacity_scheduler_policy": "GUARANTEED_NO_EVICT",
            "context_chunking_policy": "FIRST_COME_FIRST_SERVED",
        },
        "kv_cache_config": {"tokens_per_block": TARGET.page},
    }
    lines = [f"{name}: {json.dumps(value)}" for name, value in options.items()]
    devices = [{"node": node.number, "cuda_visible_devices": node.devices} for node in made.nodes]
    return {"llm_args.yaml": "\n".join([*lines, ""]), "devices.json": json.dumps(devices, indent=1) + "\n"}
