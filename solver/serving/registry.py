"""Serving systems as methods, by name, with their knobs."""

from __future__ import annotations

from solver.method import Knob, Method
from solver.serving.gllm import gllm
from solver.serving.kv_tier_method import kv_tier
from solver.serving.layered import GROUPS, layered
from solver.serving.sarathi import sarathi
from solver.serving.wavepp.method import wavepp

_OUTPUT = Knob(128, "output tokens of requests whose output_tokens is not given", least=1)
_RUNNING = Knob(128, "requests that run at a time (max_num_seqs)", least=1)

SERVING = (
    Method(
        "sarathi",
        "Sarathi-Serve (its sarathi_scheduler.py): decodes first, prompts in chunks up to a token budget; a program",
        sarathi,
        {
            "budget": Knob(
                512, "tokens of an iteration (chunk_size); 0: sweep, the largest that keeps the target", least=0
            ),
            "target_tbt_ms": Knob(20.0, "p99 time between tokens that the sweep is to keep", least=0),
            "output": _OUTPUT,
            "running": _RUNNING,
            "chunks": Knob(
                "waiting",
                "a prompt's next chunk waits for its last, or follows it as in vLLM",
                ("waiting", "overlapped"),
            ),
        },
        serves=True,
    ),
    Method(
        "layered",
        "layered prefill (arXiv 2510.08055): a group of layers an iteration, experts are read once a cohort; a program",
        layered,
        {
            "largest": Knob(8192, "tokens of a cohort (max-num-batched-tokens)", least=1),
            "groups": Knob("16", "groups of the largest cohorts (num-stages); smaller ones have fewer", tuple(GROUPS)),
            "chunk": Knob(512, "tokens of the chunked prefill to compare with; 0: no comparison", least=0),
            "output": _OUTPUT,
            "running": _RUNNING,
        },
        serves=True,
    ),
    Method(
        "gllm",
        "gLLM (its scheduler.py): prompts throttled by what waits and what memory is free, decodes in parts; a program",
        gllm,
        {
            "maxp": Knob(8192, "prompt tokens of an iteration at most", least=1),
            "minp": Knob(32, "prompt tokens that waiting alone never throttles below", least=1),
            "iterp": Knob(8, "iterations over which waiting tokens are spread", least=1),
            "maxd": Knob(512, "decodes of an iteration at most", least=1),
            "kvthresh": Knob(0.05, "share of the KV memory that prompts leave free", least=0, most=0.99),
            "output": _OUTPUT,
            "running": _RUNNING,
        },
        serves=True,
    ),
    Method(
        "kv-tier",
        "KV tiering (offload of vLLM, TensorRT-LLM): stored prefixes are loaded or computed anew, or active KV spills",
        kv_tier,
        {
            "mode": Knob(
                "reuse_only",
                "the host serves reuse alone (engines today; a program), or active requests spill to it (a plan)",
                ("reuse_only", "active_spill"),
            ),
            "decide": Knob(
                "each", "each block by its time, or all of a prefix the same way", ("each", "load", "compute")
            ),
            "block": Knob(256, "tokens of a block", least=1),
            "chunk": Knob(8192, "tokens of a chunk", least=1),
        },
        serves=True,
    ),
    Method(
        "wavepp",
        "WavePP (arXiv 2609.35263): prefixes all stages have, room reserved, waves that fill the pipeline; a program",
        wavepp,
        {
            "admission": Knob("overlapped", "beside execution, or before each wave", ("overlapped", "blocking")),
            "protection": Knob("leases", "leases and capacity escrow, or neither", ("leases", "none")),
            "stall": Knob(
                "deadlock", "without escrow, where all stall: stay, or preempt the last", ("deadlock", "preempt")
            ),
            "waves": Knob(
                "mpu",
                "budget of a wave: maximum pipeline utilisation, by predicted time, or static",
                ("mpu", "time", "static"),
            ),
            "packing": Knob(
                "first", "the first ready request all of a wave it can use, or all equally", ("first", "equal")
            ),
            "largest": Knob(8192, "tokens of a wave at most", least=1),
            "smallest": Knob(1024, "tokens that the budget is not halved below", least=1),
            "target": Knob(0, "waves that fill the pipeline; 0: as many as stages", least=0),
            "deadline_ms": Knob(
                5.0, "how long a wave that is not full waits for requests on their way in", least=0, most=1e9
            ),
            "held": Knob(0, "requests that hold cache state at a time (lease limit); 0: twice the stages", least=0),
            "headroom": Knob(1 << 20, "tokens to compute of those requests at most", least=1),
            "block": Knob(64, "tokens of a block", least=1),
            "snapshot": Knob(4096, "tokens between snapshots of recurrent states", least=1),
            "walk_us": Knob(100.0, "time of a stage's walk through its cache", least=0, most=1e9),
            "hop_us": Knob(50.0, "control latency between neighbouring stages, one way", least=0, most=1e9),
            "block_us": Knob(1.0, "time to prepare a block on a stage", least=0, most=1e9),
            "hint_age_ms": Knob(2.35, "how often the index of hints is renewed", least=0, most=1e9),
            "ablation": Knob("no", "run the rows of the ablation too, see details", ("no", "yes")),
        },
        serves=True,
    ),
)
