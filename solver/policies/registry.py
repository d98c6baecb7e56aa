"""The heuristics and published systems, by name, with their knobs."""

from __future__ import annotations

from functools import partial

from formulations.scope import V_SHAPED
from solver.method import Knob, Method
from solver.policies.dcpp.policy import ascend, sglang
from solver.policies.mbkr import head_to_tail, nobody
from solver.policies.mocap import Variant, mocap
from solver.policies.rematch import rematch
from solver.policies.terapipe import terapipe
from solver.policies.uniform import cpp, gpipe
from solver.policies.vpp import vpp

_V = {
    "batch": Knob("best", "best batch under replay, or the largest that runs", ("best", "largest")),
    "chunk": Knob(0, "tokens of a chunk, the last one takes the rest; 0: equal chunks of the best number", least=0),
    "order": Knob(
        "rank_local",
        "each die has the schedule's order, or all have one, as its public engine issues visits (a program)",
        ("rank_local", "single_fifo"),
    ),
    "heads": Knob(0, "with single_fifo: first visits before the first second one; 0: one more than dies", least=0),
    "handoff": Knob(
        "async", "a die goes on while it sends, or waits for the arrival (a program)", ("async", "blocking")
    ),
}

_BATCH = {"batch": Knob("largest", "largest batch that runs (the paper), or best under replay", ("largest", "best"))}
_LBCP = {
    "iterations": Knob(400, "annealing iterations, one moved boundary each", least=0),
    "temperature": Knob(0.01, "first temperature, relative to the latency after stage 1", least=0),
    "cooling": Knob(0.99, "factor on the temperature after each iteration", least=0, most=1),
    **_BATCH,
}

_DCPP = {
    "base": Knob(0, "tokens of a first chunk; 0: the best under replay", least=0),
    "cost": Knob("fit", "sizes from the engine's fit to first chunks, or from the true times", ("fit", "true")),
}

POLICIES = (
    Method(
        "mocap",
        "MOCAP (arXiv 2606.22968): MBKR + LBCP as it words them: cross-half pairs, thresholds, annealed boundaries",
        mocap,
        _LBCP,
    ),
    Method(
        "mbkr-only",
        "MOCAP without LBCP: cross-half pairs and thresholds on equal chunks",
        partial(mocap, variant=Variant(boundaries=False)),
        _BATCH,
    ),
    Method(
        "lbcp-only",
        "MOCAP without MBKR: annealed boundaries, every stage keeps its own KV",
        partial(mocap, variant=Variant(nobody)),
        _LBCP,
    ),
    Method(
        "head-to-tail",
        "MOCAP with BPipe's pairs (ICML 2023) in place of its own: stage s and N-1-s lend each other memory",
        partial(mocap, variant=Variant(head_to_tail)),
        _LBCP,
    ),
    Method(
        "terapipe",
        "TeraPipe (arXiv 2102.07988): slices of its DP over caps, and uniform ones of the best count",
        terapipe,
        {
            "slicing": Knob("both", "which slices", ("dp", "uniform", "both")),
            "caps": Knob(
                300, "caps on the slowest slice that the DP tries at most; the public program has no limit", least=1
            ),
        },
    ),
    Method("gpipe", "GPipe (arXiv 1811.06965): whole requests in micro-batches of the best size", gpipe),
    Method("cpp", "CPP (Mooncake, arXiv 2407.00079; vLLM, SGLang): equal chunks of a given or the best number", cpp),
    Method(
        "dcpp-sglang",
        "DCPP of SGLang (scheduler_pp_mixin.py): chunks that take as long as the first one, by a fit to first chunks",
        sglang,
        {
            **_DCPP,
            "smoothing": Knob(0.75, "share of the way from the base to the predicted size", least=0, most=1),
            "page": Knob(64, "tokens of a page; chunks are rounded down to it", least=1),
            "most": Knob(16384, "max_prefill_tokens, or the base where that is larger; 0: no limit", least=0),
        },
    ),
    Method(
        "dcpp-ascend",
        "DCPP of vLLM-Ascend (profiling_chunk_predictor.py): fitted on the last stage, rounded up, at most the base",
        ascend,
        {
            **_DCPP,
            "smoothing": Knob(1.0, "share of the way from the base to the predicted size", least=0, most=1),
            "page": Knob(128, "tokens of a block; chunks are rounded up to it", least=1),
            "least": Knob(4096, "min_chunk", least=1),
        },
    ),
    Method(
        "vpp",
        "VPP (Shi et al.; vllm-ascend #11976): equal chunks in a V, two parts a die, second visits before first ones",
        partial(vpp, schedule="vpp"),
        _V,
        V_SHAPED,
    ),
    Method(
        "vpp-async",
        "VPP-Async: as vpp with the two visits of a period swapped, so that transfers overlap with work",
        partial(vpp, schedule="vpp-async"),
        _V,
        V_SHAPED,
    ),
    Method(
        "vpp-packed",
        "VPP-Async with pipelined packing: the next wave's chunks enter while the last wave's leave",
        partial(vpp, schedule="vpp-packed"),
        _V,
        V_SHAPED,
    ),
)

PROGRAMS = (
    Method(
        "rematch",
        "creditors by load, matched anew every few chunks; what is lent moves (MOCAP's Fig. 5 b), then a program",
        rematch,
        {"span": Knob(0, "chunks for which a stage keeps its partner; 0: powers of two, the fastest", least=0)},
        serves=True,
    ),
)
"""Policies that answer with a program in place of a plan."""
