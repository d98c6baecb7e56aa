"""``waferplan models``: the catalogue, and the size of one model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from instances.catalogue import load_model, model_names
from instances.errors import InputError
from instances.huggingface import read_config
from instances.model import Model
from instances.numbers import UNKNOWN
from instances.parameters import summary
from solver.cli.errors import DONE, one_line
from solver.cli.options import about_option, whole
from solver.cli.tables import amount, pairs, table
from solver.cli.terminal import show, show_json

app = typer.Typer(add_completion=False)


@app.command("models", epilog="Example: waferplan models --show deepseek-v3")
def models_command(
    show_one: Annotated[
        str | None,
        typer.Option("--show", metavar="NAME|config.json", help="One model, or a Hugging Face config.json, in full."),
    ] = None,
    prediction_layers: Annotated[
        str, typer.Option(metavar="N", help="Count so many extra prediction layers of a config.json in.")
    ] = "0",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List the models of the catalogue; bytes are at each model's own widths."""
    if show_one is not None:
        extra = extra_layers(prediction_layers, show_one)
        with about_option("--show"):
            facts = summary(named_model(show_one, extra))
        if as_json:
            show_json(facts)
        else:
            show(pairs(_lines(facts)))
        return DONE
    models = [summary(load_model(name)) for name in model_names()]
    if as_json:
        show_json(models)
    else:
        columns = ("model", "layers", "parameters", "active", "weights", "KV/token", "KV kept")
        show(table(columns, (_row(facts) for facts in models), numbers=columns[1:]))
    return DONE


def is_file(name: str) -> bool:
    """Whether a model is meant as a file: catalogue names have no suffix and no folder."""
    return name.endswith(".json") or "/" in name or "\\" in name


def named_model(name: str, prediction_layers: int = 0) -> Model:
    """A model of the catalogue, or one read from a config.json, where it may have extra prediction layers."""
    return read_config(Path(name), prediction_layers=prediction_layers) if is_file(name) else load_model(name)


def extra_layers(text: str, name: str) -> int:
    """The prediction layers that are asked for; only a config.json has any."""
    number = whole("--prediction-layers", text, least=0)
    if number and not is_file(name):
        raise InputError("--prediction-layers", number, "0: models of the catalogue have none")
    return number


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    return (
        facts["name"],
        str(sum(facts["layers"].values())),
        amount(facts["parameters_total"], ""),
        amount(facts["parameters_active"], ""),
        amount(facts["weight_bytes"]),
        amount(facts["kv_bytes_per_token"]),
        amount(facts["kv_window_bytes"]),
    )


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in facts["layers"].items())
    per_layer = facts["kv_bytes_per_token_layer"]
    each = facts["weight_bytes"] / facts["parameters_total"]
    return [
        ("model", one_line(facts["name"])),
        ("layers", f"{sum(facts['layers'].values())}: {one_line(kinds)}"),
        ("parameters", f"{facts['parameters_total']} ({amount(facts['parameters_total'], '')})"),
        ("active a token", f"{facts['parameters_active']} ({amount(facts['parameters_active'], '')})"),
        ("weights", f"{amount(facts['weight_bytes'])}, {each:.4g} B a parameter"),
        ("KV a token", f"{facts['kv_bytes_per_token']} B, in full-attention and MLA layers"),
        ("KV a layer", one_line(", ".join(f"{kind} {size} B a token" for kind, size in per_layer.items()))),
        ("KV kept", f"{amount(facts['kv_window_bytes'])} at most a sequence, in sliding layers and states"),
        ("source", one_line(facts["source"] or UNKNOWN)),
    ]
