"""Trace events for Perfetto (ui.perfetto.dev) and chrome://tracing, with where they come from."""

from __future__ import annotations

import json
from pathlib import Path

from solver.export.source import Source
from solver.simulation.trace import trace_events


def write(source: Source, path: Path) -> str:
    """Write one JSON file; the layout is that of ``solver.simulation.trace``."""
    # ``otherData`` is the format's place for metadata: viewers show it and ignore what they do not know.
    document = {**trace_events(source.program, source.run), "otherData": source.origin}
    path.write_text(json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n", encoding="utf-8")
    return f"{len(document['traceEvents'])} trace events"
