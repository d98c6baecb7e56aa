"""What every JSON document of the project shares: strict fields, and errors that name the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from instances.errors import InputError


class Document(BaseModel):
    """Immutable, no unknown keys, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def parse(cls, data: Any, *, file: str | None = None) -> Self:
        """Validate plain data; the first problem becomes one InputError."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise first_problem(cls, error, file) from error


def first_problem(kind: type[BaseModel], error: ValidationError, file: str | None) -> InputError:
    """Translate pydantic's report into the project's one-message form."""
    problem = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in problem["loc"] if not str(part).startswith("function-"))
    if problem["type"] == "extra_forbidden":
        known = _known_keys(kind, problem["loc"])
        allowed = f"one of the keys {known}" if known else "a known key"
        return InputError(field, problem["input"], f"{allowed} (unknown key)", file=file)
    if problem["type"] == "missing":
        return InputError(field, None, "a value: this key is required", file=file)
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return InputError(
            ".".join(part for part in (field, cause.field) if part), cause.value, cause.allowed, file=file
        )
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return InputError(field, problem["input"], message, file=file)


def _known_keys(kind: type[BaseModel], path: tuple[int | str, ...]) -> str:
    """Keys of the model that the path's last element was looked up in, where plain nesting leads to it."""
    current: Any = kind
    for part in path[:-1]:
        field = getattr(current, "model_fields", {}).get(part) if isinstance(part, str) else None
        annotation = field.annotation if field is not None else None
        current = next(
            (a for a in (annotation, *getattr(annotation, "__args__", ())) if hasattr(a, "model_fields")), None
        )
        if current is None:
            return ""
    return ", ".join(current.model_fields)


def read_json(path: str | Path) -> Any:
    """Read a JSON file; a missing, unreadable, truncated or non-UTF-8 file is an InputError."""
    name = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("", name, "the path of an existing file", file=name) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("", name, f"a readable UTF-8 file ({error})", file=name) from None
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError("", text[-40:], f"complete, valid JSON ({error.msg} at {where})", file=name) from None
    except ValueError as error:
        raise InputError("", str(error), "JSON without NaN or Infinity", file=name) from None
    except RecursionError:
        raise InputError("", text[:40], "JSON nested less deeply", file=name) from None


def _no_constant(name: str) -> Any:
    raise ValueError(name)
