"""As much of a JSON schema validator as the published schemas need; unknown keywords fail, so that none is skipped."""

from __future__ import annotations

import re
from typing import Any

TYPES: dict[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "string": str,
}
NOTES = {"$schema", "$defs", "title", "description", "default", "discriminator"}


def problems(data: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "") -> list[str]:
    """What is wrong with the data, as paths with the keyword that they break."""
    found: list[str] = []
    for keyword, value in schema.items():
        found += _broken(keyword, value, data, schema, root, path)
    return found


def _broken(keyword: str, value: Any, data: Any, schema: dict[str, Any], root: dict[str, Any], path: str) -> list[str]:
    number = isinstance(data, int | float) and not isinstance(data, bool)
    match keyword:
        case "$ref":
            return problems(data, root["$defs"][value.removeprefix("#/$defs/")], root, path)
        case "anyOf" | "oneOf":
            fitting = sum(not problems(data, form, root, path) for form in value)
            ok = fitting == 1 if keyword == "oneOf" else fitting > 0
        case "type":
            if value == "integer":
                ok = number and data == int(data)
            else:
                ok = number if value == "number" else isinstance(data, TYPES[value])
        case "const":
            ok = data == value
        case "enum":
            ok = data in value
        case "minimum":
            ok = not number or data >= value
        case "exclusiveMinimum":
            ok = not number or data > value
        case "maximum":
            ok = not number or data <= value
        case "minLength":
            ok = not isinstance(data, str) or len(data) >= value
        case "pattern":
            ok = not isinstance(data, str) or re.search(value, data) is not None
        case "minItems":
            ok = not isinstance(data, list) or len(data) >= value
        case "maxItems":
            ok = not isinstance(data, list) or len(data) <= value
        case "required":
            ok = not isinstance(data, dict) or set(value) <= set(data)
        case "properties":
            inner = [(key, form) for key, form in value.items() if isinstance(data, dict) and key in data]
            return [text for key, form in inner for text in problems(data[key], form, root, f"{path}/{key}")]
        case "additionalProperties":
            extra = set(data) - set(schema.get("properties", {})) if isinstance(data, dict) else set()
            if isinstance(value, dict):
                return [text for key in sorted(extra) for text in problems(data[key], value, root, f"{path}/{key}")]
            ok = value or not extra
        case "items" | "prefixItems":
            entries = data if isinstance(data, list) else []
            forms = value if isinstance(value, list) else [value] * len(entries)
            pairs = enumerate(zip(entries, forms, strict=False))
            return [text for place, (entry, form) in pairs for text in problems(entry, form, root, f"{path}/{place}")]
        case _:
            assert keyword in NOTES, keyword
            ok = True
    return [] if ok else [f"{path or '/'}: {keyword}"]
