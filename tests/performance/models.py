"""Sizes of real configs beside the published ones, as in the README: ``python -m tests.performance.models FOLDER``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from instances.errors import InputError
from instances.huggingface import read_config
from instances.parameters import summary
from tests.instances.published import PUBLISHED, Published
from tests.shared_data import REPOSITORY

HEADER = (
    "model",
    "total (B)",
    "published",
    "active (B)",
    "with embedding",
    "published",
    "KV bytes a token",
    "published",
    "in windows and states",
    "weights (GB)",
    "sources: sizes / KV",
)


def main() -> None:
    """Print one Markdown row for each config of the folder; a config that is refused has its reason as its row."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", nargs="?", type=Path, default=REPOSITORY.parent / "shared/data/hf_configs")
    folder: Path = arguments.parse_args().folder
    sys.stdout.write(f"| {' | '.join(HEADER)} |\n| --- |{' ---: |' * (len(HEADER) - 2)} --- |\n")
    for path in sorted(folder.glob("*.json"), key=lambda file: file.name.lower()):
        sys.stdout.write(f"| {' | '.join(row(path))} |\n")


def row(path: Path) -> list[str]:
    """One config: the model's figures beside the published ones, or why it is refused."""
    name = path.stem.replace("--", "/")
    try:
        model = read_config(path)
    except InputError as error:
        key = f"refused: {error.field} is {error.value}, which is not known"
        return [name, key, *[""] * (len(HEADER) - 2)]
    facts, known = summary(model), PUBLISHED.get(path.stem)
    active, embedding = facts["parameters_active"], model.vocab * model.hidden
    dense = known is not None and known.active_billions is None
    return [
        name,
        _billions(facts["parameters_total"]),
        "" if known is None else f"{known.total / 1e9:.6g}",
        _billions(active),
        "dense" if dense else _billions(active + embedding),
        _active(known),
        str(facts["kv_bytes_per_token"]),
        "" if known is None else str(known.kv_bytes_per_token),
        str(facts["kv_window_bytes"]),
        f"{facts['weight_bytes'] / 1e9:.1f}",
        "" if known is None else f"{known.sizes} / {known.kv}",
    ]


def _billions(count: int) -> str:
    return f"{count / 1e9:.2f}"


def _active(known: Published | None) -> str:
    return "" if known is None else known.active_billions or "dense"


if __name__ == "__main__":
    main()
