"""What a report has to be, by `check.schema.json`: of JSON Schema, the keywords that are used there."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

Schema = Mapping[str, Any]

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


@cache
def report_schema() -> Schema:
    """The schema of reports."""
    text = (files("refsim.conformance.reports") / "check.schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def problem(value: Any, schema: Schema, where: str = "") -> str:
    """What is wrong with a value by a part of the schema of reports: the key, the value, and what it has to be.

    Empty where nothing is. ``where`` is the key that leads to the value.
    """
    if "$ref" in schema:
        return problem(value, report_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")], where)
    if "anyOf" in schema:
        problems = [problem(value, one, where) for one in schema["anyOf"]]
        deeper = [one for one in problems if not one.startswith(f"{where} is ")]
        return "" if "" in problems else deeper[0] if deeper else _is(value, where, _expected(schema))
    if not _fits(value, schema):
        return _is(value, where, _expected(schema))
    if isinstance(value, dict):
        return _of_object(value, schema, where)
    for number, item in enumerate(value if isinstance(value, list) else ()):
        if found := problem(item, schema["items"], f"{where}[{number}]"):
            return found
    return ""


def _of_object(value: Mapping[str, Any], schema: Schema, where: str) -> str:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{_joined(where, name)} is missing"
    for name, item in value.items():
        if name not in known and others is False:
            return f"{_joined(where, name)} is unknown; known: {', '.join(known)}"
        if found := problem(item, known.get(name, others), _joined(where, name)):
            return found
    return ""


def _fits(value: Any, schema: Schema) -> bool:
    """Whether a value is right, but for what it holds."""
    if "const" in schema or "enum" in schema:
        return any(type(value) is type(one) and value == one for one in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return False
    if "minimum" in schema and not value >= schema["minimum"]:  # a NaN is not
        return False
    if "minItems" in schema and len(value) < schema["minItems"]:
        return False
    return "pattern" not in schema or re.search(schema["pattern"], value) is not None


def _expected(schema: Schema) -> str:
    if "$ref" in schema:
        return _expected(report_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in schema:
        return " or ".join(map(_expected, schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        return " or ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
    bounds = [f"of at least {schema[name]}" for name in ("minimum", "minItems") if name in schema]
    shape = [f"like {schema['pattern']}"] if "pattern" in schema else []
    return " ".join([schema["type"], *bounds, *shape])


def _is(value: Any, where: str, expected: str) -> str:
    return f"{where or 'it'} is {reprlib.repr(value)}, and has to be {expected}"


def _joined(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
