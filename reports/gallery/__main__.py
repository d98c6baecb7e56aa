"""Draws the gallery anew: ``python -m reports.gallery``, from a checkout."""

from __future__ import annotations

import json

from reports.drawing import png_bytes, svg_text
from reports.gallery import FOLDER, SAMPLES, SPECS, definition_hash, figures_of


def main() -> None:
    """Replace all pictures and the hashes of their definitions."""
    for old in FOLDER.glob("*.png"):
        old.unlink()
    hashes = {}
    for sample in SAMPLES:
        for name, figure in figures_of(sample):
            hashes[name] = definition_hash(figure)
            (FOLDER / f"{name}.png").write_bytes(png_bytes(svg_text(figure), 1.0))
    SPECS.write_text(json.dumps(hashes, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
