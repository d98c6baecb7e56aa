"""Models and hardware that ship with the project, by name."""

from __future__ import annotations

import difflib
import json
from importlib import resources

from instances.errors import InputError
from instances.hardware import Hardware
from instances.model import Model


def model_names() -> tuple[str, ...]:
    """Names that `load_model` knows, sorted."""
    return _names("models")


def load_model(name: str) -> Model:
    """A model of the catalogue.

    Raises
    ------
    InputError
        For an unknown name, with the known ones, the closest first.
    """
    return Model.parse(_read("models", name, "model.name"))


def hardware_names() -> tuple[str, ...]:
    """Names that `load_hardware` knows, sorted."""
    return _names("hardware")


def load_hardware(name: str) -> Hardware:
    """A piece of hardware of the catalogue; errors as `load_model`."""
    return Hardware.parse(_read("hardware", name, "hardware.name"))


def _names(folder: str) -> tuple[str, ...]:
    entries = resources.files("instances").joinpath("data", folder).iterdir()
    return tuple(sorted(entry.name.removesuffix(".json") for entry in entries if entry.name.endswith(".json")))


def _read(folder: str, name: str, field: str) -> object:
    known = _names(folder)
    if name not in known:
        closest = difflib.get_close_matches(name.lower(), known, n=len(known), cutoff=0.0)
        raise InputError(field, name, f"one of {', '.join(closest)}")
    text = resources.files("instances").joinpath("data", folder, f"{name}.json").read_text(encoding="utf-8")
    data: object = json.loads(text)
    return data
