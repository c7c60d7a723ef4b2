"""Type, limits, unit and default of a key as text."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

from grid.model.fields import PluginRef, is_section
from grid.model.plugins.settings import LIMIT_WORDS, TYPE_WORDS

MADE = "<!-- Made from the code by docs/reference_pages.py. Do not edit. -->\n\n"

_WORDS = TYPE_WORDS | {"null": "null"}
_UNITS = {
    "_s": "s", "_mb": "MB", "_mbps": "Mbit/s", "mips": "MIPS", "watts_idle": "W", "watts_busy": "W",
    "watts_off": "W", "watts_boot": "W",
}  # fmt: skip
_SPECIAL = {
    r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$": (
        "a name: at most 64 letters, digits, `_`, `.` and `-`, the first a letter or digit"
    ),
    r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,63}|[^\x00-\x1f]{1,1000}:[A-Za-z_]\w*)$": (
        "the name of a plugin, or its location (`my_file.py:Name`)"
    ),
}


def number(value: float) -> str:
    """A limit as text."""
    if abs(value) >= 2**53:
        return f"2^{math.ceil(math.log2(value))}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.9f}".rstrip("0")


def type_of(schema: Mapping[str, Any], anchors: Mapping[str, str]) -> str:
    """The type of a value, from its JSON Schema; models are links to their sections."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name == "PluginRef":
            return f"the name of a plugin or [a mapping](#{anchors[name]})"
        return f"[a mapping](#{anchors[name]})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_of(one, anchors) for one in schema["anyOf"]))
    choices = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    if choices:
        return " or ".join(f"`{one}`" for one in choices)
    if schema.get("type") == "array":
        return list_of(schema, anchors)
    return _SPECIAL.get(schema.get("pattern", "")) or scalar(schema)


def list_of(schema: Mapping[str, Any], anchors: Mapping[str, str]) -> str:
    """The type of a list."""
    fixed = schema.get("prefixItems")
    size = f" of {len(fixed)}" if fixed else ""
    if not fixed and "minItems" in schema:
        size = f" of at least {schema['minItems']}"
    inner = fixed[0] if fixed else schema.get("items") or {}
    return f"a list{size}, each {type_of(inner, anchors)}"


def scalar(schema: Mapping[str, Any]) -> str:
    """A number with its limits, a text, or any mapping."""
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return "a mapping of names to values"
    words = _WORDS.get(str(schema.get("type")), "any value")
    if "minimum" in schema and "maximum" in schema:
        return f"{words} from {number(schema['minimum'])} to {number(schema['maximum'])}"
    limits = [f"{said} {number(schema[key])}" for key, said in LIMIT_WORDS.items() if key in schema]
    return f"{words} {', '.join(limits)}".strip()


def unit_of(name: str) -> str:
    """The unit that a key carries in its name."""
    units = [unit for end, unit in _UNITS.items() if name.endswith(end)]
    return f"unit {units[0]}" if units else ""


def default_of(field: Any) -> str:
    """The default of a key as it is written in a file."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, PluginRef):
        value = value.name
    if is_section(value) or value in ((), {}):
        return ""
    shown = {None: "null", True: "true", False: "false"}
    text = shown[value] if value is None or isinstance(value, bool) else f"{value}"
    return f"default `{text}`"


def inlined(schema: Any, whole: Mapping[str, Any]) -> Any:
    """The schema with its references resolved."""
    if isinstance(schema, list):
        return [inlined(one, whole) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inlined(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    return {key: inlined(value, whole) for key, value in schema.items()}


def markdown(docstring: str) -> str:
    """A docstring as Markdown: its own indented blocks stay as they are."""
    return inspect.cleandoc(docstring).replace("<", "&lt;").replace("*", "\\*")
