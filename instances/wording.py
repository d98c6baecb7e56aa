"""pydantic's report on a document as one readable InputError: which field, what it holds, what is allowed."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from instances.errors import MISSING, InputError

_WORDING = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number greater than {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_type": "a whole number",
    "json_invalid": "valid JSON ({error})",
    "less_than": "a number less than {lt}",
    "less_than_equal": "a number of at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "an object",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "string_unicode": "a text of valid Unicode",
    "too_long": "a list of at most {max_length} entries",
    "too_short": "a list of at least {min_length} entries",
    "tuple_type": "a list",
}


def describe(kind: type[BaseModel], error: ValidationError, file: str | None, data: Any) -> InputError:
    """The first problem of a report.

    Parameters
    ----------
    kind
        The document's class.
    data
        What was read, to tell the keys of the document from pydantic's own marks; None where Python built it.
    """
    alternatives = [_translate(kind, problem, data) for problem in _first_problems(error, data)]
    # Of a value that may have several forms, the form that fits furthest says most.
    depth = max(len(path) for path, _ in alternatives)
    best = [problem for path, problem in alternatives if len(path) == depth]
    allowed = " or ".join(dict.fromkeys(problem.allowed for problem in best))
    return InputError(best[0].field, best[0].value, allowed, file=file)


def _first_problems(error: ValidationError, data: Any) -> list[ErrorDetails]:
    """The first problem; where a value fits none of several forms, the first problem with each form."""
    problems = error.errors(include_url=False)
    location = problems[0]["loc"]
    marks = [place for place, is_key in enumerate(_keys(problems[0], data)) if not is_key]
    if not marks:
        return problems[:1]
    fork = location[: marks[0]]
    forms: dict[int | str, ErrorDetails] = {}
    for problem in problems:
        if problem["loc"][: len(fork)] == fork and len(problem["loc"]) > len(fork):
            forms.setdefault(problem["loc"][len(fork)], problem)
    return list(forms.values())


def _translate(kind: type[BaseModel], problem: ErrorDetails, data: Any) -> tuple[tuple[int | str, ...], InputError]:
    """Path in the document, and the error."""
    location, context = problem["loc"], {key: _neat(value) for key, value in problem.get("ctx", {}).items()}
    path = tuple(part for part, is_key in zip(location, _keys(problem, data), strict=True) if is_key)
    field, value = ".".join(map(str, path)), problem["input"]
    cause = context.get("error")
    if isinstance(cause, InputError):
        field = ".".join(part for part in (field, cause.field) if part)
        return path, InputError(field, cause.value, cause.allowed)
    match problem["type"]:
        case "extra_forbidden":
            known = ", ".join(_fields(kind, location[:-1]))
            allowed = f"one of the keys {known} (unknown key)" if known else "a known key"
        case "missing" if isinstance(location[-1], int):
            # A list too short: name the list, not the entry that is not there.
            path, needed = path[:-1], _length(kind, location[:-1])
            field, value = ".".join(map(str, path)), problem["input"]
            allowed = f"a list of {needed} entries" if needed else "a longer list"
        case "missing":
            value, allowed = MISSING, "a value: this key is required"
        case "union_tag_not_found":
            tag = str(context["discriminator"]).strip("'")
            path = (*path, tag)
            field, value, allowed = ".".join(map(str, path)), MISSING, "a value: this key is required"
        case "union_tag_invalid":
            tag = str(context["discriminator"]).strip("'")
            value = value.get(tag) if isinstance(value, Mapping) else value
            field, allowed = f"{field}.{tag}".lstrip("."), f"one of {context['expected_tags']}"
        case "value_error":
            allowed = str(cause)
        case known_type:
            wording = _WORDING.get(known_type)
            allowed = wording.format(**context) if wording else problem["msg"].removeprefix("Input should be ")
    return path, InputError(field, value, allowed)


def _keys(problem: ErrorDetails, data: Any) -> list[bool]:
    """Which parts of a location are keys of the document; the others are marks of the form that was tried."""
    location = problem["loc"]
    if data is None:
        return [not (isinstance(part, str) and ("[" in part or "-" in part)) for part in location]
    known, here = [], data
    for part in location:
        inside = part in here if isinstance(here, Mapping) else _is_entry(here, part)
        known.append(inside)
        here = here[part] if inside else here
    if problem["type"] == "missing":
        known[-1] = True
    return known


def _neat(value: Any) -> Any:
    """Limits as people write them: 0, not 0.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_entry(here: Any, part: int | str) -> bool:
    return isinstance(here, list) and isinstance(part, int) and part < len(here)


def _fields(kind: type[BaseModel], location: Sequence[int | str]) -> tuple[str, ...]:
    """Keys of the document class that a location leads to; empty where that is not clear."""
    found = [form for form in _forms_at(kind, location) if _is_document(form)]
    return tuple(found[0].model_fields) if len(found) == 1 else ()


def _length(kind: type[BaseModel], location: Sequence[int | str]) -> int:
    """Entries of the list that a location leads to, 0 where any number will do."""
    lengths = [len(get_args(form)) for form in _forms_at(kind, location) if get_origin(form) is tuple]
    return lengths[0] if len(lengths) == 1 else 0


def _forms_at(kind: type[BaseModel], location: Sequence[int | str]) -> list[Any]:
    forms: list[Any] = [kind]
    for part in location:
        deeper = [inner for form in forms for inner in _step(form, part)]
        forms = deeper or forms
    return forms


def _step(form: Any, part: int | str) -> Iterator[Any]:
    """Forms of what is found under a key or index; a form itself where the part is only the mark that names it."""
    arguments = get_args(form)
    if _is_document(form):
        if part in form.model_fields:
            yield from _forms(form.model_fields[part].annotation)
        elif part == form.__name__ or ("kind" in form.model_fields and part == form.model_fields["kind"].default):
            yield form
    elif get_origin(form) is dict:
        yield from _forms(arguments[1])
    elif get_origin(form) is tuple and isinstance(part, int):
        yield from _forms(arguments[0] if arguments[-1] is ... else arguments[min(part, len(arguments) - 1)])


def _forms(annotation: Any) -> Iterator[Any]:
    """The alternatives of an annotation, without what is wrapped around them."""
    if get_origin(annotation) is Annotated:
        yield from _forms(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _forms(member)
    else:
        yield annotation


def _is_document(form: Any) -> bool:
    return isinstance(form, type) and issubclass(form, BaseModel)
