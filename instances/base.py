"""What every JSON document of the project shares: strict fields, and errors that name the field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from instances.errors import InputError
from instances.wording import describe


class Document(BaseModel):
    """Immutable, no unknown keys, no NaN."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def parse(cls, data: Any, *, file: str | None = None) -> Self:
        """Validate plain data; the first problem becomes one InputError.

        Read as JSON, so strictly: lists serve as tuples, but ``true`` is no number, 1 no Boolean and "1" no number.
        """
        try:
            text = json.dumps(data, default=_plain)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError("", type(data).__name__, f"plain JSON data ({error})", file=file) from None
        try:
            return cls.model_validate_json(text, strict=True)
        except ValidationError as error:
            raise describe(cls, error, file, json.loads(text)) from error

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, as in pydantic; what was derived from the fields and cached is derived anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in copied.__dict__.keys() - type(self).model_fields.keys():
            del copied.__dict__[name]
        return copied


def first_problem(kind: type[BaseModel], error: ValidationError, file: str | None) -> InputError:
    """One InputError for what pydantic found wrong with a document that Python code built."""
    return describe(kind, error, file, None)


def read_json(path: str | Path) -> Any:
    """Read a JSON file; a missing, unreadable, truncated or non-UTF-8 file is an InputError."""
    name = str(path)
    try:
        return parse_json(read_text(Path(path)), file=name)
    except InputError as error:
        raise error.in_file(name) from None


def read_text(path: Path, field: str = "") -> str:
    """Text of a UTF-8 file, with or without a byte order mark; InputError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(field, str(path), "the path of an existing file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(field, str(path), f"a readable UTF-8 file ({reason})") from None


def parse_json(text: str, *, field: str = "", file: str | None = None) -> Any:
    """Data of a JSON text.

    Raises
    ------
    InputError
        For anything incomplete or malformed, for NaN and Infinity, a key given twice in one object, a whole number of
        thousands of digits, and nesting too deep to read.
    """
    constants: list[_Constant] = []

    def noted(name: str) -> _Constant:
        constants.append(_Constant(name))
        return constants[-1]

    try:
        data = json.loads(text, parse_constant=noted, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        where = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        says = error.msg.removesuffix(" at")  # some of the reader's messages end with it
        raise InputError(field, near, f"complete, valid JSON ({says} at {where})", file=file) from None
    except InputError as error:
        where = ": ".join(part for part in (field, error.field) if part)
        raise InputError(where, error.value, error.allowed, file=file) from None
    except ValueError:
        raise InputError(field, text[:40], "JSON with whole numbers of at most 4300 digits", file=file) from None
    except RecursionError:
        raise InputError(field, text[:40], "JSON nested less deeply", file=file) from None
    if constants:
        where = ": ".join(part for part in (field, _path_to(constants[0], data)) if part)
        allowed = "JSON without NaN or Infinity; write null for an unknown number"
        raise InputError(where, constants[0].name, allowed, file=file)
    return data


@dataclass(frozen=True, eq=False)
class _Constant:
    """NaN or Infinity in a text, which Python's reader admits and JSON does not."""

    name: str


def _path_to(constant: _Constant, data: Any) -> str:
    """Dotted path of the field that holds it; without recursion, which deep nesting would exhaust."""
    left: list[tuple[str, Any]] = [("", data)]
    while left:
        path, here = left.pop()
        if here is constant:
            return path
        if isinstance(here, dict | list):
            inside = here.items() if isinstance(here, dict) else enumerate(here)
            left += [(f"{path}.{key}" if path else str(key), value) for key, value in inside]
    return ""


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(twice, twice, "each key once in an object, and this one is there twice")
    return data


def _plain(value: object) -> Any:
    """Documents inside plain data, as JSON."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} is no JSON type")


def _whole(value: object) -> object:
    if isinstance(value, bool | float):  # both compare equal to 1
        raise ValueError("1")
    return value


SchemaVersion = Annotated[Literal[1], BeforeValidator(_whole)]
"""Version of a published form; true and 1.0 are no versions."""
