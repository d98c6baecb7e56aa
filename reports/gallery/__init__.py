"""Sample pictures for the README, and the results, tables and records that they are drawn from.

``python -m reports.gallery`` draws them anew. ``specs.json`` keeps a hash of each picture's definition: a test draws
nothing, but compares these, so that a change of pictures comes with the pictures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from reports.api import page_of
from reports.drawing import VEGA_LITE
from reports.figure import FULL_WIDTH, Figure
from reports.palette import chart_config

FOLDER = Path(__file__).parent
INPUTS = FOLDER / "inputs"
SPECS = FOLDER / "specs.json"
SAMPLES = {
    "memory-binds": (("llama3-405b-1536k.json",), ("mesh", "timeline", "memory", "progress")),
    "exact-and-mocap": (("llama3-70b-128k.json", "llama3-70b-128k-mocap.json"), ("chunk-sizes-1",)),
    "two-wafers": (("llama3-405b-two-wafers-dead-dies.json",), ("mesh",)),
    "256-stages": (("synthetic-256-16x16-512k.json",), ("mesh", "timeline")),
    "capacity": (("capacity-llama3-70b-16-chunks.json",), ("frontier",)),
    "serving": (("qwen3-30b-a3b-stream-sarathi.json",), ("timeline", "iteration-times", "requests")),
    "benchmark": (("mocap-latency-and-slow-links.jsonl",), ("profile", "losses", "paper")),
}
"""Samples by name: what they are drawn from, and which of their pictures are kept."""


def figures_of(sample: str) -> Iterator[tuple[str, Figure]]:
    """Pictures of a sample with the names of their files."""
    inputs, kept = SAMPLES[sample]
    page = page_of([INPUTS / name for name in inputs])
    for figure in page.figures:
        if figure.name in kept:
            yield f"{sample}-{figure.name}", figure


def definition_hash(figure: Figure) -> str:
    """Hash of all that decides how a picture looks, but for the version of the library that draws it."""
    definition = [figure.spec(FULL_WIDTH), chart_config(), VEGA_LITE]
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:16]
