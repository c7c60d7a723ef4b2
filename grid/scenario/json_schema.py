"""The JSON Schema of a scenario's file, for editors: the schema's sections, and parameters."""

from __future__ import annotations

from typing import Any

from grid.scenario.parameters import SECTION
from grid.scenario.schema import Scenario

_SCALARS = ("integer", "number", "boolean")
_REFERENCE = {"type": "string", "pattern": r"\$\{[^{}]*\}"}


def json_schema() -> dict[str, Any]:
    """What an editor may accept: `${name}` wherever a value is expected, and `parameters`."""
    schema: dict[str, Any] = _with_references(Scenario.model_json_schema())
    # The file's own name stands in for it.
    schema["required"] = [key for key in schema.pop("required", []) if key != "name"]
    schema["properties"][SECTION] = {
        "type": "object",
        "description": "names for values; `${name}` stands for the value, `--set` changes it",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }
    return schema


def _with_references(schema: Any) -> Any:
    """Every scalar that has to be more than any text may also name a parameter."""
    if isinstance(schema, list):
        return [_with_references(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in _SCALARS or "pattern" in schema or "enum" in schema:
        return {"anyOf": [schema, _REFERENCE]}
    return {key: _with_references(inner) for key, inner in schema.items()}
