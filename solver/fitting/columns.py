"""The columns of a file of measured chunk times, by the names in its header; units are part of a name."""

from __future__ import annotations

from dataclasses import dataclass

from instances.costs.profile import CHUNK_NAMES, PREFIX_NAMES, UNITS_PER_SECOND, column_name
from instances.errors import InputError

_PROMPT = ("tokens", "prompt", "prompt_tokens")
_BATCH = ("batch", "batch_size", "sequences")
_LAYER = ("layer", "layer_index")
_OPERATOR = ("operator", "op", "kernel")
_PER_LAYER = "_per_layer"
_TIME_WORDS = ("time", "latency", "duration", "t")
_NO_DURATION = frozenset(
    {"per", "tokens", "tok", "request", "requests", "throughput", "rate", "start", "end", "timestamp"}
)
"""Words of columns that end with a unit of time and hold a rate, a share of a chunk's time, or a point in time."""
HEADER = (
    "columns chunk and prefix (or prompt_tokens, whole prompts), a time with its unit such as seconds, time_ms or "
    "us_per_layer, and if wanted batch, layer and operator"
)


@dataclass(frozen=True)
class Columns:
    """Positions of the columns, None where there is none, and how many units of the time column are a second."""

    count: int
    chunk: int
    prefix: int | None
    batch: int | None
    layer: int | None
    operator: int | None
    time: int
    units_per_second: float
    per_layer: bool


def read_header(header: list[str], file: str) -> Columns:
    """Find the columns.

    Raises
    ------
    InputError
        For an unknown column or unit, a column that is missing, and one that is there twice.
    """
    places: dict[str, int] = {}
    units, per_layer = 1.0, False
    for place, title in enumerate(header):
        name = column_name(title)
        role = _role(name)
        if role is None:
            units, per_layer = _time_unit(name, title, file)
            role = "time"
        if role in places:
            raise InputError(title, ",".join(header), f"one column of each kind; this is a second {role}", file=file)
        places[role] = place
    if "prompt" in places and {"chunk", "prefix"} & places.keys():
        raise InputError(header[places["prompt"]], ",".join(header), "either chunk and prefix or prompts", file=file)
    needed = ("prompt", "time") if "prompt" in places else ("chunk", "prefix", "time")
    for role in needed:
        if role not in places:
            raise InputError(role, ",".join(header), f"a column of this kind: {HEADER}", file=file)
    return Columns(
        count=len(header),
        chunk=places.get("chunk", places.get("prompt", 0)),
        prefix=places.get("prefix"),
        batch=places.get("batch"),
        layer=places.get("layer"),
        operator=places.get("operator"),
        time=places["time"],
        units_per_second=units,
        per_layer=per_layer,
    )


def _role(name: str) -> str | None:
    roles = (
        ("chunk", CHUNK_NAMES),
        ("prompt", _PROMPT),
        ("prefix", PREFIX_NAMES),
        ("batch", _BATCH),
        ("layer", _LAYER),
        ("operator", _OPERATOR),
    )
    return next((role for role, names in roles if name in names), None)


def _time_unit(name: str, title: str, file: str) -> tuple[float, bool]:
    """Units of a time column in a second, and whether its times are those of one layer."""
    per_layer = name.endswith(_PER_LAYER)
    *words, unit = name.removesuffix(_PER_LAYER).split("_")
    if unit in UNITS_PER_SECOND and not _NO_DURATION.intersection(words):
        return UNITS_PER_SECOND[unit], per_layer
    if (words or [unit])[0] in _TIME_WORDS and unit not in UNITS_PER_SECOND:
        units = ", ".join(UNITS_PER_SECOND)
        raise InputError(title, title, f"a time with its unit at the end of the name, one of {units}", file=file)
    raise InputError(title, title, HEADER, file=file)
