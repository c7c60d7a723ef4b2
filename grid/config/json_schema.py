"""The JSON Schema of a scenario's file, for editors: sections, plugins and parameters."""

from __future__ import annotations

from typing import Any

from grid.config.load import INCLUDE
from grid.config.parameters import SECTION
from grid.config.plugins import plugin_kind
from grid.config.schema import Scenario
from grid.model.fields import PluginRef, keys_of, sections_in
from grid.model.plugins.registry import Kind, Plugin, Plugins

_SCALARS = ("integer", "number", "boolean")
_REFERENCE = {"type": "string", "pattern": r"\$\{[^{}]*\}"}
_FILE = {"type": "string", "pattern": r":[A-Za-z_]\w*$"}
"""A reference to a plugin, such as my_policy.py:MyPolicy."""


def json_schema() -> dict[str, Any]:
    """The schema, with `${name}` for each value, `parameters`, and the plugins that there are."""
    plain = Scenario.model_json_schema()
    for section in _sections(Scenario):
        _add_plugins(section, plain["$defs"])
    schema: dict[str, Any] = _with_references(plain)
    schema["required"] = [key for key in schema.pop("required", []) if key != "name"]
    schema["properties"][SECTION] = {
        "type": "object",
        "description": "names for values; `${name}` is replaced by the value, `--set` changes it",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }
    paths = {"type": "array", "items": {"type": "string"}}
    schema["properties"][INCLUDE] = {
        "description": "files with further keys, such as a platform; the scenario's own keys win",
        "anyOf": [{"type": "string"}, paths],
    }
    return schema


def _sections(section: type) -> dict[type, None]:
    """All sections that a section has, each once."""
    found: dict[type, None] = {}
    for field in keys_of(section).values():
        for inner in sections_in(field.annotation):
            found |= {inner: None} | _sections(inner)
    return found


def _add_plugins(section: type, schemas: dict[str, Any]) -> None:
    """Add the plugins that the fields of a section can name, with their settings."""
    schema = schemas[section.__name__]
    for key, field in keys_of(section).items():
        kind, own = plugin_kind(field), schema["properties"][key]
        if kind is None:
            continue
        if key == "generator":
            schema["allOf"] = [_generator(plugin, schemas) for plugin in _plugins(kind)]
        elif own.get("type") == "array":
            own["items"] = {"anyOf": _choices(kind, schemas)}
        else:
            none = [{"type": "null"}] if field.default is None else []
            kept = {name: own[name] for name in ("default", "description") if name in own}
            if isinstance(field.default, PluginRef):
                kept["default"] = field.default.name
            schema["properties"][key] = {"anyOf": [*_choices(kind, schemas), *none], **kept}


def _generator(plugin: Plugin, schemas: dict[str, Any]) -> dict[str, Any]:
    named = {"properties": {"generator": {"const": plugin.name}}, "required": ["generator"]}
    return {"if": named, "then": {"properties": {"settings": _settings(plugin, schemas)}}}


def _plugins(kind: Kind) -> list[Plugin]:
    return [Plugins().find(kind, name) for name in Plugins().names(kind)]


def _choices(kind: Kind, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    """A name or a reference, each alone or with settings."""
    plugins = _plugins(kind)
    names = [{"enum": [plugin.name for plugin in plugins]}] if plugins else []
    described = [
        {"description": plugin.description}
        | _mapping(name={"const": plugin.name}, settings=_settings(plugin, schemas))
        for plugin in plugins
    ]
    return [*names, _FILE, *described, _mapping(name=_FILE, settings={"type": "object"})]


def _mapping(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": ["name"],
        "additionalProperties": False,
    }


def _settings(plugin: Plugin, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = plugin.declared.model.model_json_schema()
    schemas.update(schema.pop("$defs", {}))
    return schema


def _with_references(schema: Any) -> Any:
    """The schema in which each scalar that is no free text may be a parameter."""
    if isinstance(schema, list):
        return [_with_references(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") in _SCALARS or "pattern" in schema or "enum" in schema:
        return {"anyOf": [schema, _REFERENCE]}
    if isinstance(schema.get("description"), str):  # a docstring has line ends
        schema["description"] = " ".join(schema["description"].split())
    return {key: _with_references(inner) for key, inner in schema.items()}
