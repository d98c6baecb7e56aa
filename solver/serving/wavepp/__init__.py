"""WavePP: a prefix that all stages can reuse, room for the rest, and waves that keep the pipeline full."""
