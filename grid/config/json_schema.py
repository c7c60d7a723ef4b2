"""The JSON Schema of a scenario's file, for editors: the schema's sections, and parameters."""

from __future__ import annotations

from typing import Any

from grid.cluster.gang.processor_choices import PROCESSOR_CHOICES
from grid.config.parameters import SECTION
from grid.config.schema import Scenario
from grid.model.plugins.registry import Kind, Plugin, Plugins
from grid.policies.registry import POLICIES
from grid.protocol.registry import ADMISSION, CLUSTER_CHOICES, FORWARDING, SELECTIONS
from grid.results.metric_plugins import CLUSTER_METRICS, JOB_METRICS, VO_METRICS
from grid.workload.generators import JOB_GENERATORS, MACHINE_GENERATORS

_SCALARS = ("integer", "number", "boolean")
_REFERENCE = {"type": "string", "pattern": r"\$\{[^{}]*\}"}
_FILE = {"type": "string", "pattern": r":[A-Za-z_]\w*$"}
"""Where a part stands, such as my_policy.py:MyPolicy."""

_NAMED = (
    ("ClusterSection", "policy", POLICIES),
    ("VosFromTraceSection", "policy", POLICIES),
    ("VosFromTraceSection", "selection", SELECTIONS),
    ("VoSection", "selection", SELECTIONS),
    ("VoSection", "cluster_choice", CLUSTER_CHOICES),
    ("ClusterSection", "processor_choice", PROCESSOR_CHOICES),
    ("ProtocolSection", "forwarding", FORWARDING),
    ("VoSection", "forwarding", FORWARDING),
    ("VoSection", "admission", ADMISSION),
    ("VosFromTraceSection", "admission", ADMISSION),
)
_LISTED = (("job", JOB_METRICS), ("vo", VO_METRICS), ("cluster", CLUSTER_METRICS))
_GENERATED = (
    ("GeneratedMachinesSection", MACHINE_GENERATORS),
    ("WorkloadSection", JOB_GENERATORS),
)


def json_schema() -> dict[str, Any]:
    """What an editor may accept: `${name}` wherever a value is expected, and `parameters`.

    Knows the parts of ours and of installed packages, with their settings.
    """
    plain = Scenario.model_json_schema()
    _name_parts(plain["$defs"])
    schema: dict[str, Any] = _with_references(plain)
    # The file's own name stands in for it.
    schema["required"] = [key for key in schema.pop("required", []) if key != "name"]
    schema["properties"][SECTION] = {
        "type": "object",
        "description": "names for values; `${name}` stands for the value, `--set` changes it",
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }
    return schema


def _name_parts(sections: dict[str, Any]) -> None:
    """Say in the schemas of `sections` which parts there are, and which settings they have."""
    for section, key, kind in _NAMED:
        old = sections[section]["properties"][key]
        kept = {name: old[name] for name in ("default", "description") if name in old}
        none = [{"type": "null"}] if old.get("default", "") is None else []
        choices = [*_choices(kind, sections), *none]
        sections[section]["properties"][key] = {"anyOf": choices, **kept}
    for key, kind in _LISTED:
        sections["MetricsSection"]["properties"][key]["items"] = {"anyOf": _choices(kind, sections)}
    for section, kind in _GENERATED:
        sections[section]["allOf"] = [
            {
                "if": {
                    "properties": {"generator": {"const": part.name}},
                    "required": ["generator"],
                },
                "then": {"properties": {"settings": _settings(part, sections)}},
            }
            for part in _parts(kind)
        ]


def _parts(kind: Kind) -> list[Plugin]:
    return [Plugins().find(kind, name) for name in Plugins().names(kind)]


def _choices(kind: Kind, sections: dict[str, Any]) -> list[dict[str, Any]]:
    """A name, or where a part stands, or either with settings."""
    parts = _parts(kind)
    names = [{"enum": [part.name for part in parts]}] if parts else []
    anything = {"name": _FILE, "settings": {"type": "object"}}
    described = [
        _mapping({"name": {"const": part.name}, "settings": _settings(part, sections)}, part)
        for part in parts
    ]
    return [*names, _FILE, *described, _mapping(anything)]


def _mapping(properties: dict[str, Any], part: Plugin | None = None) -> dict[str, Any]:
    about = {"description": part.description} if part is not None else {}
    return about | {
        "type": "object",
        "properties": properties,
        "required": ["name"],
        "additionalProperties": False,
    }


def _settings(part: Plugin, sections: dict[str, Any]) -> dict[str, Any]:
    schema = part.declared.model.model_json_schema()
    sections.update(schema.pop("$defs", {}))
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
