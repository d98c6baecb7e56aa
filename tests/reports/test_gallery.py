"""The pictures of the README are those that the present code draws."""

from __future__ import annotations

import json

import pytest

from reports.gallery import FOLDER, INPUTS, SAMPLES, SPECS, definition_hash, figures_of

PAGE_BYTES = 8_000_000


@pytest.mark.parametrize("sample", SAMPLES)
def test_pictures_are_current(sample: str) -> None:
    kept: dict[str, str] = json.loads(SPECS.read_text(encoding="utf-8"))
    now = {name: definition_hash(figure) for name, figure in figures_of(sample)}
    assert len(now) == len(SAMPLES[sample][1])
    old = {name: value for name, value in kept.items() if name.startswith(f"{sample}-")}
    assert now == old, "the gallery is out of date: python -m reports.gallery"


def test_nothing_is_left_over() -> None:
    kept = json.loads(SPECS.read_text(encoding="utf-8"))
    assert {path.stem for path in FOLDER.glob("*.png")} == set(kept)
    assert all(path.read_bytes().startswith(b"\x89PNG\r\n") for path in FOLDER.glob("*.png"))
    used = {name for inputs, _ in SAMPLES.values() for name in inputs}
    assert {path.name for path in INPUTS.iterdir()} == used
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < PAGE_BYTES
