"""``waferplan fit``: coefficients of the fitted cost model from measured chunk times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from instances.errors import MISSING, InputError
from instances.numbers import share_text, time_text
from instances.units import MOST_TOKENS
from solver.cli import options
from solver.cli.errors import DONE, one_line
from solver.cli.files import output_file, write_file
from solver.cli.tables import pairs, table
from solver.cli.terminal import show, show_json
from solver.fitting import Diagnosis, Fit, Samples, diagnose, read_samples
from solver.fitting.robust import NAMES

app = typer.Typer(add_completion=False)

_MEANINGS = {
    "chunk_s": "once a chunk: the floor",
    "prefix_s": "a token before the chunk",
    "token_s": "a token of the chunk",
    "pair_s": "a unit of 2*p*c + c*c",
}
_MOST_LAYERS = 100_000


@app.command(
    "fit",
    epilog="Example: waferplan fit profile.csv --out costs.json; waferplan new ... --costs costs.json --out I.json",
)
def fit_command(
    profile: Annotated[
        Path,
        typer.Argument(
            metavar="PROFILE.csv",
            help="Columns chunk, prefix (or prompt_tokens) and a time with its unit (seconds, time_ms, us_per_layer); "
            "if wanted batch, layer, operator, whose rows are added up.",
        ),
    ],
    layers: Annotated[
        str | None, typer.Option(metavar="N", help="Layers of the model, where the times are those of some layers.")
    ] = None,
    min_chunk: Annotated[
        str | None,
        typer.Option(metavar="T", help="Fit chunks of at least T tokens. (default: 256 if enough rows have them)"),
    ] = None,
    extrapolate_to: Annotated[
        str | None, typer.Option(metavar="T", help="Say what the rows support at a context of T tokens; 128k = 131072.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="COSTS.json", help="Write what belongs under `costs` of an instance.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Fit t = chunk_s + prefix_s*p + token_s*c + pair_s*(2*p*c + c*c), and say how far the rows support it.

    p is the prefix, c the chunk. Coefficients are at least 0; rows that are far off, such as a slow first one, do not
    count.
    """
    target = None if out is None else output_file("--out", out)
    if target is not None and target == profile.resolve():
        raise InputError("--out", str(out), "another file than the profile, which would be lost")
    samples = _of_model(read_samples(profile), profile, layers)
    if target is not None and samples.layers is not None:
        raise InputError(
            "--layers", MISSING, f"the layers of the model: the times are those of {samples.layers}, and costs of all"
        )
    least = None if min_chunk is None else options.tokens("--min-chunk", min_chunk)
    reach = None if extrapolate_to is None else options.tokens("--extrapolate-to", extrapolate_to)
    if reach is not None and reach > MOST_TOKENS:
        raise InputError("--extrapolate-to", extrapolate_to, f"at most {MOST_TOKENS} tokens")
    with options.about_option("--min-chunk"):
        found = diagnose(samples, reach, least)
    if target is not None:
        write_file("--out", target, json.dumps(found.fit.spec.model_dump(mode="json"), indent=1) + "\n")
    if as_json:
        show_json(found.plain())
    else:
        show(_coefficients(found), "", pairs(_facts(found)), *(f"warning: {one_line(line)}" for line in found.warnings))
    return DONE


def _of_model(samples: Samples, profile: Path, layers: str | None) -> Samples:
    if layers is None:
        return samples
    number = options.whole("--layers", layers, least=1, most=_MOST_LAYERS)
    if samples.layers is None:
        allowed = f"left out: {profile} has the times of whole models, neither a column layer nor a time per layer"
        raise InputError("--layers", number, allowed)
    if number < samples.layers:
        raise InputError("--layers", number, f"at least the {samples.layers} layers that were measured")
    return samples.of_model(number)


def _coefficients(found: Diagnosis) -> Table:
    fit = found.fit
    rows = [
        (name, time_text(float(value)), time_text(deviation), _MEANINGS[name])
        for name, value, deviation in zip(NAMES, fit.coefficients, fit.known_deviations, strict=True)
    ]
    return table(("coefficient", "value", "deviation", "for"), rows, numbers=("value", "deviation"))


def _facts(found: Diagnosis) -> list[tuple[str, str]]:
    samples = found.samples
    left_out = int((~found.fit.kept).sum())
    facts = [
        ("rows", f"{len(samples.seconds) - left_out} fitted, {left_out} left out as far from the others"),
        ("chunks", f"{samples.chunk.min():.0f} to {samples.chunk.max():.0f} tokens"),
        ("prefixes", f"{samples.prefix.min():.0f} to {samples.prefix.max():.0f} tokens"),
        ("errors", _errors(found.fit, samples)),
        ("as a rectangle", f"{_errors(found.rectangle, samples)}; {_verdict(found)}"),
    ]
    if samples.layers is not None:
        facts.append(("times of", f"{samples.layers} layer{'s' if samples.layers > 1 else ''} only (--layers scales)"))
    if found.shorter_error is not None:
        text = f"{found.shorter_rows} rows below {found.min_chunk} tokens not fitted, median error"
        facts.append(("short chunks", f"{text} {share_text(found.shorter_error)}"))
    if found.held_out is not None:
        held = found.held_out
        errors = f"median {share_text(held.median_error)}, p95 {share_text(held.p95_error)}"
        facts.append(("longer contexts", f"fitted up to {held.fitted_to_tokens}, errors beyond: {errors}"))
    if found.extrapolation is not None:
        far = found.extrapolation
        where = f"the last {far.chunk} of {far.tokens} tokens"
        facts.append(("extrapolated", f"{where} take {time_text(far.seconds)}, deviation {time_text(far.deviation_s)}"))
    return facts


def _verdict(found: Diagnosis) -> str:
    if found.samples.prefix.max() == 0:
        return "without prefixes the same"
    return f"{found.better_shape} fits better"


def _errors(fit: Fit, samples: Samples) -> str:
    shares = (share_text(value) for value in (fit.median_error, fit.p95_error, fit.total_error(samples)))
    return "median {}, p95 {}, of all time {}".format(*shares)
