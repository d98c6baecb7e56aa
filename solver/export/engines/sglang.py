"""SGLang: layer partition, chunked prefill and its smoothing, async depth, one script a node.

Names as in ``python/sglang/srt/server_args.py`` and ``environ.py`` of mid 2026.
"""

from __future__ import annotations

from pathlib import Path

from solver.export.engines.engine import Target
from solver.export.engines.handover import Files, Handover, hand_over
from solver.export.engines.knobs import most_tokens
from solver.export.engines.script import launch_script
from solver.export.engines.splits import sglang_split
from solver.export.source import Source

TARGET = Target(
    "sglang",
    predictor="sglang",
    page=64,
    split=sglang_split,
    start="On node k run `MODEL=/path/to/model bash node-k.sh`, with several nodes also `HEAD=host:port` of the node "
    "of stage 0. Further arguments are passed on.",
    dynamic_notes=(
        "Dynamic chunking times its own profile at start; with noisy times the chunks differ from those fitted here.",
        "The first chunk of a request always has the full size, and the last one is what remains.",
    ),
    deepens=True,
)


def write(source: Source, path: Path) -> str:
    """Write the folder; what was written, in a few words."""
    return hand_over(source, path, TARGET, _files)


def _files(made: Handover) -> Files:
    found, nodes = made.projection, made.nodes
    knobs, depth = found.knobs, found.window - len(made.ranks)
    files = {}
    for node in nodes:
        exports = {"SGLANG_PP_LAYER_PARTITION": made.partition, "CUDA_VISIBLE_DEVICES": node.visible}
        flags: list[tuple[str, ...]] = [
            ("--model-path", "${MODEL:?path or name of the model}"),
            ("--pp-size", str(len(made.ranks))),
            ("--chunked-prefill-size", str(knobs.base)),
            ("--max-prefill-tokens", str(most_tokens(knobs))),
            ("--page-size", str(TARGET.page)),
        ]
        if made.degree > 1:
            flags.append(("--tp-size", str(made.degree)))
        if knobs.smoothing is not None:
            exports["SGLANG_DYNAMIC_CHUNKING_SMOOTH_FACTOR"] = f"{knobs.smoothing:g}"
            flags.append(("--enable-dynamic-chunking",))
        if depth > 0:
            flags.append(("--pp-async-batch-depth", str(depth)))
        if len(nodes) > 1:
            flags += [
                ("--nnodes", str(len(nodes))),
                ("--node-rank", str(node.order)),
                ("--dist-init-addr", "${HEAD:?host:port of the node of stage 0}"),
            ]
        command = ["python", "-m", "sglang.launch_server"]
        files[f"node-{node.number}.sh"] = launch_script(f"SGLang, {node.says}", exports, command, flags)
    return files
