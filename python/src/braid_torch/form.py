"""Checks JSON values against the published schemas, as far as these use JSON Schema. Another keyword is an error."""

from __future__ import annotations

import re
from typing import Any

KNOWN = {
    "$defs", "$ref", "$schema", "additionalItems", "additionalProperties", "anyOf", "const", "enum", "items", "maximum", "minItems",
    "minimum", "oneOf", "pattern", "properties", "propertyNames", "required", "type",
}  # fmt: skip


class Mismatch(Exception):
    """`path` leads to the value, with dots; `found` and `expected` are texts."""

    def __init__(self, path: tuple[str, ...], found: str, expected: str) -> None:
        super().__init__(path, found, expected)
        self.path, self.found, self.expected = path, found, expected


def check(value: Any, schema: Any, root: Any, path: tuple[str, ...] = ()) -> None:
    """Raises Mismatch at the first difference."""
    unknown = schema.keys() - KNOWN
    if unknown:
        raise AssertionError(f"the schema has {', '.join(sorted(unknown))}")
    if "$ref" in schema:
        check(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "type" in schema and not _has_type(value, schema["type"]):
        raise Mismatch(path, _shown(value), schema["type"])
    if "const" in schema and not _same(value, schema["const"]):
        raise Mismatch(path, _shown(value), _shown(schema["const"]))
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        raise Mismatch(path, _shown(value), " | ".join(map(_shown, schema["enum"])))
    # Python's $ also stands before a line end at the end of the text.
    if "pattern" in schema and not re.search(schema["pattern"].replace("$", r"\Z"), value):
        raise Mismatch(path, _shown(value), schema["pattern"])
    if _is_number(value):
        if "minimum" in schema and value < schema["minimum"]:
            raise Mismatch(path, _shown(value), f">={schema['minimum']}")
        if "maximum" in schema and value > schema["maximum"]:
            raise Mismatch(path, _shown(value), f"<={schema['maximum']}")
    if isinstance(value, dict):
        _check_members(value, schema, root, path)
    if isinstance(value, list):
        _check_items(value, schema, root, path)
    for choices in (schema.get("anyOf"), schema.get("oneOf")):
        if choices is not None:
            _check_choices(value, choices, root, path)


def _check_members(value: dict[str, Any], schema: Any, root: Any, path: tuple[str, ...]) -> None:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise Mismatch((*path, name), "nothing", "a value")
    for name, member in value.items():
        check(name, schema.get("propertyNames", {}), root, (*path, name))
        if name in properties:
            check(member, properties[name], root, (*path, name))
        elif isinstance(schema.get("additionalProperties"), dict):
            check(member, schema["additionalProperties"], root, (*path, name))


def _check_items(value: list[Any], schema: Any, root: Any, path: tuple[str, ...]) -> None:
    if len(value) < schema.get("minItems", 0):
        raise Mismatch(path, f"{len(value)} items", f"at least {schema['minItems']}")
    items = schema.get("items", {})
    if schema.get("additionalItems") is False and len(value) > len(items):
        raise Mismatch(path, f"{len(value)} items", f"at most {len(items)}")
    for i, item in enumerate(value):
        if isinstance(items, dict):
            check(item, items, root, (*path, str(i)))
        elif i < len(items):
            check(item, items[i], root, (*path, str(i)))


def _check_choices(value: Any, choices: list[Any], root: Any, path: tuple[str, ...]) -> None:
    """Raises the mismatch of the last choice that the value's tag, such as `kind`, leaves."""
    tag = _tag(choices)
    if tag is not None and isinstance(value, dict) and tag in value:
        tagged = [choice for choice in choices if value[tag] in _values(choice["properties"][tag])]
        if not tagged:
            known = [text for choice in choices for text in _values(choice["properties"][tag])]
            raise Mismatch((*path, tag), _shown(value[tag]), " | ".join(map(_shown, known)))
        choices = tagged
    for choice in choices[:-1]:
        try:
            return check(value, choice, root, path)
        except Mismatch:
            continue
    check(value, choices[-1], root, path)


def _tag(choices: list[Any]) -> str | None:
    """The first member that says in every choice which values it may have."""
    names = choices[0].get("properties", {})
    return next((n for n in names if all(_values(c.get("properties", {}).get(n, {})) for c in choices)), None)


def _values(schema: Any) -> list[Any]:
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _has_type(value: Any, name: str) -> bool:
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return _is_number(value)
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, types[name])


def _same(value: Any, other: Any) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    return {dict: "object", list: "array", type(None): "null"}.get(type(value), str(value))
