"""``waferplan new``: write an instance from a model, a mesh and a workload."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from instances.base import read_json
from instances.catalogue import load_hardware
from instances.errors import InputError
from instances.groups import check_heads, tensor_parallel
from instances.hardware import Hardware
from instances.instance import Instance
from instances.units import BYTES, BYTES_PER_S, FLOPS_PER_S, SECONDS, parse_quantity
from solver.cli import options
from solver.cli.errors import DONE
from solver.cli.files import output_file, write_file
from solver.cli.models import extra_layers, is_file, named_model
from solver.cli.terminal import show_text

app = typer.Typer(add_completion=False)

_OPTIONS = {
    "name": "--name",
    "hardware.rows": "--mesh",
    "hardware.columns": "--mesh",
    "hardware.wafers": "--wafers",
    "model": "--model",
    "model.name": "--model",
    "model.huggingface": "--model",
    "model.weight_bytes": "--weight-bytes",
    "model.kv_bytes": "--kv-bytes",
    "model.activation_bytes": "--activation-bytes",
    "workload.tokens": "--tokens",
    "workload.requests": "--requests",
    "pipeline.stages": "--stages",
    "pipeline.layers": "--layers",
    "pipeline.chunk_quantum": "--quantum",
    "pipeline.max_chunks": "--max-chunks",
    "pipeline.max_batch": "--batch",
    "costs": "--costs",
    "objective": "--objective",
}
"""Options behind the fields that an error names."""

_UNITS = {
    "_flops": (FLOPS_PER_S, ("PFLOP/s", "TFLOP/s", "GFLOP/s")),
    "_bytes_per_s": (BYTES_PER_S, ("TB/s", "GB/s", "MB/s")),
    "_bytes": (BYTES, ("TB", "GB", "MB")),
    "_s": (SECONDS, ("s", "ms", "us", "ns")),
}


@app.command(
    "new", epilog="Example: waferplan new --model llama3-70b --mesh 4x4 --tokens 128k --weight-bytes 1 --out I.json"
)
def new_command(
    model: Annotated[
        str,
        typer.Option(metavar="NAME|config.json", help="Of the catalogue, or a Hugging Face config."),
    ],
    tokens: Annotated[str, typer.Option(metavar="T", help="Tokens of a request; 128k = 131072.")],
    mesh: Annotated[
        str | None,
        typer.Option(
            metavar="RxC", help="Rows and columns of dies of a wafer, or of a node. (default: as the hardware)"
        ),
    ] = None,
    requests: Annotated[str, typer.Option(metavar="R", help="Equal requests at time 0.")] = "16",
    stages: Annotated[
        str | None, typer.Option(metavar="N", help="Pipeline stages. (default: all dies, at most the layers)")
    ] = None,
    hardware: Annotated[str, typer.Option(metavar="NAME", help="Hardware whose die and links to take.")] = "mocap-4x4",
    wafers: Annotated[
        str | None, typer.Option(metavar="RxC", help="Wafers, or nodes. (default: as the hardware)")
    ] = None,
    tp: Annotated[
        str, typer.Option(metavar="N", help="N dies of a row work as one, in tensor parallel; --mesh counts groups.")
    ] = "1",
    peak_flops: Annotated[
        str | None, typer.Option(metavar="RATE", help='Of a single die, as "296 TFLOP/s" for fp8. (default: bf16)')
    ] = None,
    batch: Annotated[str, typer.Option(metavar="B", help="Largest batch.")] = "8",
    max_chunks: Annotated[str, typer.Option(metavar="M", help="Most chunks of a request.")] = "64",
    quantum: Annotated[str, typer.Option(metavar="Q", help="Chunks are multiples of so many tokens.")] = "1024",
    weight_bytes: Annotated[
        str | None, typer.Option(metavar="W", help="Bytes a weight. (default: as the model)")
    ] = None,
    kv_bytes: Annotated[str | None, typer.Option(metavar="W", help="Bytes a KV element, likewise.")] = None,
    activation_bytes: Annotated[str | None, typer.Option(metavar="W", help="Bytes an activation, likewise.")] = None,
    prediction_layers: Annotated[
        str, typer.Option(metavar="N", help="Extra prediction layers of a config, at the end of the last stage.")
    ] = "0",
    layers: Annotated[
        str, typer.Option(metavar="SPLIT", help="balanced, free, or layers per stage as 20,20,40.")
    ] = "balanced",
    costs: Annotated[
        Path | None, typer.Option(metavar="COSTS.json", help="A costs section, as `fit` writes it. (default: roofline)")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            metavar="O", help="mean_latency, makespan or p95_latency; or max_tokens, which `solve` cannot solve for."
        ),
    ] = "mean_latency",
    name: Annotated[str | None, typer.Option(metavar="NAME", help="(default: from model, mesh and tokens)")] = None,
    out: Annotated[Path | None, typer.Option(metavar="I.json", help="Write here. (default: standard output)")] = None,
) -> int:
    """Write an instance, checked as a whole."""
    target = None if out is None else output_file("--out", out)
    base_dir = Path() if target is None else target.parent
    length = options.tokens("--tokens", tokens)
    with options.about_option("--hardware"):
        base = load_hardware(hardware)
    degree = options.whole("--tp", tp, least=1)
    base = _grouped(base, degree, peak_flops, given=mesh is not None)
    rows, columns = (base.rows, base.columns) if mesh is None else options.grid("--mesh", mesh)
    wafer_grid = base.wafers if wafers is None else options.grid("--wafers", wafers)
    described = {"rows": rows, "columns": columns, "wafers": list(wafer_grid), **hardware_data(base)}
    extra = extra_layers(prediction_layers, model)
    with options.about_option("--model"):
        sized = named_model(model, extra)
    with options.about_option("--tp"):
        check_heads(sized, degree, kv_stated=kv_bytes is not None)
    reference: dict[str, Any] = {"huggingface": _relative(model, base_dir)} if is_file(model) else {"name": model}
    for key, option, text in (
        ("weight_bytes", "--weight-bytes", weight_bytes),
        ("kv_bytes", "--kv-bytes", kv_bytes),
        ("activation_bytes", "--activation-bytes", activation_bytes),
    ):
        if text is not None:
            reference[key] = _short(options.positive(option, text, most=16))
    if extra:
        reference["prediction_layers"] = extra
    dies = rows * columns * wafer_grid[0] * wafer_grid[1] - len(described.get("disabled_dies", ()))
    document: dict[str, Any] = {
        "schema_version": 1,
        "name": name if name is not None else f"{sized.name}-{_grid_text((rows, columns), wafer_grid, mesh)}-{tokens}",
        "hardware": described,
        "model": reference,
        "workload": {"requests": options.whole("--requests", requests, least=1), "tokens": length},
        "pipeline": {
            "stages": min(dies, sized.layer_count) if stages is None else options.whole("--stages", stages, least=1),
            "chunk_quantum": options.tokens("--quantum", quantum),
            "max_chunks": options.whole("--max-chunks", max_chunks, least=1),
            "max_batch": options.whole("--batch", batch, least=1),
            "layers": _split(layers),
        },
        "objective": objective,
    }
    if extra:
        # They follow the layers whose outcome they read, on the same die.
        document["pipeline"]["forbidden_cuts"] = list(range(sized.layer_count - extra, sized.layer_count))
    if costs is not None:
        document["costs"] = _costs(costs, base_dir)
    text = json.dumps(document, indent=1)
    _validate(text, base_dir, costs)
    if target is None:
        show_text(text)
    else:
        write_file("--out", target, text + "\n")
    return DONE


def _grouped(base: Hardware, degree: int, peak_flops: str | None, *, given: bool) -> Hardware:
    """The hardware at the rate that is asked for, in groups of ``degree`` dies."""
    if peak_flops is not None:
        with options.about_option("--peak-flops"):
            base = Hardware.parse(
                {**base.model_dump(mode="json"), "die": {**base.die.model_dump(), "peak_flops": peak_flops}}
            )
    if given:
        # The grid of the file does not matter, so it need not divide into groups either.
        base = base.model_copy(update={"rows": 1, "columns": degree})
    with options.about_option("--tp"):
        return tensor_parallel(base, degree)


def _grid_text(grid: tuple[int, int], wafers: tuple[int, int], given: str | None) -> str:
    """The mesh as it was given, else with the wafers multiplied in."""
    return given if given is not None else f"{grid[0] * wafers[0]}x{grid[1] * wafers[1]}"


def hardware_data(hardware: Hardware) -> dict[str, Any]:
    """What hardware has besides its grid, in the published form: quantities with units, nothing at its default."""
    grid = {"name", "rows", "columns", "wafers"}
    plain = hardware.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude=grid)
    return {key: _with_units(value, key) for key, value in plain.items()}


def _with_units(data: Any, key: str = "") -> Any:
    if isinstance(data, dict):
        return {name: _with_units(value, name) for name, value in data.items()}
    if isinstance(data, list):
        return [_with_units(value) for value in data]
    if isinstance(data, float):
        for ending, (units, choices) in _UNITS.items():
            if key.endswith(ending):
                return quantity(data, units, choices)
    return data


def quantity(value: float, units: dict[str, float], choices: tuple[str, ...]) -> str | float:
    """A number with the largest unit that leaves at least 1, if reading it gives the number again."""
    for unit in choices:
        if value >= units[unit]:
            text = f"{value / units[unit]:.12g} {unit}"
            if parse_quantity(text, units) == value:
                return text
    return value


def _relative(path: str, base_dir: Path) -> str:
    """The path as seen from the instance file; an absolute one stays so."""
    return path if os.path.isabs(path) else Path(os.path.relpath(path, base_dir)).as_posix()


def _costs(path: Path, base_dir: Path) -> Any:
    """A costs section; the path of its table starts at its own file and is made to start at the instance file."""
    data = read_json(path)
    if isinstance(data, dict) and isinstance(data.get("path"), str):
        data = {**data, "path": _relative(str(path.parent / data["path"]), base_dir)}
    return data


def _split(text: str) -> str | list[int]:
    if "," not in text and not text.strip().isdecimal():
        return text
    return [options.whole("--layers", part, least=1) for part in text.split(",")]


def _short(number: float) -> int | float:
    return int(number) if number == int(number) else number


def _validate(text: str, base_dir: Path, costs: Path | None) -> None:
    """Read the document as it will be read from the file; errors name the option or the file behind a field."""
    try:
        _ = Instance.read(json.loads(text), base_dir=base_dir).stage_cost
    except InputError as error:
        if costs is not None and not error.file and error.field.startswith("costs."):
            raise InputError(error.field.removeprefix("costs."), error.value, error.allowed, file=str(costs)) from error
        if error.file or error.field not in _OPTIONS:
            raise
        raise InputError(_OPTIONS[error.field], error.value, error.allowed) from error
