"""The heuristics and published systems, by name, with their knobs."""

from __future__ import annotations

from solver.method import Knob, Method
from solver.policies.mocap import mocap
from solver.policies.terapipe import terapipe
from solver.policies.uniform import cpp, gpipe

POLICIES = (
    Method(
        "mocap",
        "MBKR + LBCP as the MOCAP paper words them: cross-half pairs, thresholds, annealed boundaries",
        mocap,
        {
            "iterations": Knob(400, "annealing iterations, one moved boundary each", least=0),
            "temperature": Knob(0.01, "first temperature, relative to the latency after stage 1", least=0),
            "cooling": Knob(0.99, "factor on the temperature after each iteration", least=0, most=1),
            "batch": Knob("largest", "largest batch that runs (the paper), or best under replay", ("largest", "best")),
        },
    ),
    Method(
        "terapipe",
        "TeraPipe's slices: its DP over caps, and uniform slices of the best count",
        terapipe,
        {"slicing": Knob("both", "which slices", ("dp", "uniform", "both"))},
    ),
    Method("gpipe", "GPipe: whole requests in micro-batches of the best size", gpipe),
    Method("cpp", "chunked pipeline with equal chunks of a given or the best number", cpp),
)
