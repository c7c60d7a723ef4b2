"""The pages of the reference, made from the code: nothing in them is written twice.

`pages()` gives each page as Markdown by its path below `docs/`; `entries()` gives what they list,
with the sentence on each, for the test that nothing is missing and nothing lacks a sentence.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import typer
from pydantic import BaseModel

import grid
from grid.cli import app
from grid.commands.endings import ExitCode
from grid.experiment.schema import ExperimentSection
from grid.parts.registry import Part, Parts
from grid.results import column_definitions, definitions
from grid.scenario.part_kinds import KINDS
from grid.scenario.schema import Scenario

MADE = "<!-- Made from the code by docs/reference_pages.py. Do not edit. -->\n\n"


class Entry(NamedTuple):
    """Something that the reference lists: the page, its name there, and the sentence on it."""

    page: str
    name: str
    sentence: str


# What a key may be, in words.

_WORDS = {
    "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "string": "text", "object": "a mapping", "array": "a list", "null": "null",
}  # fmt: skip
_LIMITS = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
}  # fmt: skip
_UNITS = {
    "_s": "s", "_mb": "MB", "_mbps": "Mbit/s", "mips": "MIPS", "watts_idle": "W", "watts_busy": "W",
}  # fmt: skip
_SPECIAL = {
    r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$": (
        "a name: at most 64 letters, digits, `_`, `.` and `-`, the first a letter or digit"
    ),
    r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,63}|[^\x00-\x1f]{1,1000}:[A-Za-z_]\w*)$": (
        "the name of a part, or where it stands (`my_file.py:Name`)"
    ),
}


def number(value: float) -> str:
    """A limit as people write it."""
    if abs(value) >= 2**53:
        return f"2^{math.ceil(math.log2(value))}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.9f}".rstrip("0")


def type_of(schema: Mapping[str, Any], anchors: Mapping[str, str]) -> str:
    """What a value may be, from its JSON Schema; models are links to their sections."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
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
    """What a list may hold."""
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
    limits = [f"{said} {number(schema[key])}" for key, said in _LIMITS.items() if key in schema]
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
    if isinstance(value, BaseModel) or value in ((), {}):
        return ""
    shown = {None: "null", True: "true", False: "false"}
    text = shown[value] if value is None or isinstance(value, bool) else f"{value}"
    return f"default `{text}`"


# Sections of a file.


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation names, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def sections(root: type[BaseModel]) -> dict[type[BaseModel], str]:
    """All models below `root`, with the path of the key where each stands first."""
    found = {root: ""}
    waiting = [(root, "")]
    for model, path in waiting:
        for name, field in model.model_fields.items():
            for inner in models_in(field.annotation):
                if inner not in found:
                    step = f"{path}.{name}" if path else name
                    listed = "tuple" in str(field.annotation) and inner.__name__ != "PartSection"
                    found[inner] = f"{step}.*" if listed else step
                    waiting.append((inner, found[inner]))
    return found


def file_page(root: type[BaseModel], page: str, title: str, lead: str) -> str:
    """The reference of a kind of file: every key, section by section."""
    stem = Path(page).stem
    found = sections(root)
    anchors = {model.__name__: f"{stem}-{model.__name__}".lower() for model in found}
    lines = [f"{MADE}# {title}\n\n{lead}\n"]
    for model, path in found.items():
        lines.append(f"({anchors[model.__name__]})=")
        heading = "At the top" if not path else f"`{path}`"
        if model.__name__ == "PartSection":
            heading = "A part with settings"
        lines.append(f"## {heading}\n\n{markdown(inspect.getdoc(model) or '')}\n")
        shown = model.model_json_schema()["properties"]
        for name, field in model.model_fields.items():
            facts = [type_of(shown[name], anchors), unit_of(name), default_of(field)]
            said = ", ".join(fact for fact in facts if fact)
            lines.append(f"`{name}`\n: {said}.  \n  {field.description}\n")
    return "\n".join(lines)


def scenario_page() -> str:
    """Every key of a scenario."""
    lead = """A scenario is a file in YAML. Unknown keys are mistakes. `grid check FILE` says what
is wrong, and `grid schema` prints the same as JSON Schema, for editors. In the paths below, `*` is
any place of a list.

`parameters`, at the top of a file, is a mapping of names to values. `${name}` anywhere in the file
stands for the value, and `--set name=value` changes it. `--set` also changes any key by its path:
`--set vos.0.clusters.0.policy=easy`."""
    return file_page(Scenario, "reference/scenario.md", "Keys of a scenario", lead)


def experiment_page() -> str:
    """Every key of an experiment."""
    lead = """An experiment is a file in YAML: a scenario, what varies, and how often each setting
is repeated. `grid sweep FILE` runs it."""
    return file_page(ExperimentSection, "reference/experiment.md", "Keys of an experiment", lead)


# Parts.


def parts_page() -> str:
    """Every part of ours, with its settings, as `grid parts` shows them."""
    lines = [f"{MADE}# Parts that plug in\n"]
    lines.append(
        "A scenario names a part by its name, or by where it stands: `my_file.py:Name` or "
        "`my_package.module:Name`. Where it has settings, the name becomes a mapping: "
        "`{name: easy, settings: {...}}`. `grid parts` lists the same, those of installed "
        "packages included.\n"
    )
    for kind in KINDS.values():
        lines.append(f"(parts-{kind.name})=\n## {kind.name}\n")
        lines.append(f"A {kind.title} {kind.task}.\n")
        lines.append(f"- In a scenario: `{kind.place}`\n- Entry points: `{kind.group}`\n")
        names = [name for name in Parts().names(kind) if name in kind.own]
        if not names:
            lines.append("The emulator has none of its own beside what it always computes.\n")
        lines += [part_text(Parts().find(kind, name)) for name in names]
    return "\n".join(lines)


def part_text(part: Part) -> str:
    """A part: what it does, and its settings."""
    lines = [f"### {part.name}\n", markdown(inspect.getdoc(part.target) or ""), ""]
    settings = list(settings_of(part))
    if settings:
        lines.append("Settings:\n")
        lines += [f"`{name}`\n: {facts}.  \n  {sentence}\n" for name, facts, sentence in settings]
    return "\n".join(lines)


def settings_of(part: Part) -> Iterator[tuple[str, str, str]]:
    """Name, facts and sentence of each setting of a part."""
    model = part.declared.model
    shown = model.model_json_schema()
    anchors: dict[str, str] = {}
    for name, field in model.model_fields.items():
        schema = shown["properties"][name]
        facts = [type_of(inlined(schema, shown), anchors), unit_of(name), default_of(field)]
        yield name, ", ".join(fact for fact in facts if fact), field.description or ""


def inlined(schema: Any, whole: Mapping[str, Any]) -> Any:
    """The schema with what it refers to in its place."""
    if isinstance(schema, list):
        return [inlined(one, whole) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return inlined(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    return {key: inlined(value, whole) for key, value in schema.items()}


# Figures and files.

_GROUPS = (
    ("Of jobs", "OF_JOBS"), ("Of machines", "OF_MACHINES"), ("Of sweeps only", "OF_SWEEPS"),
    ("On the real clock", "OF_THE_CLOCK"),
)  # fmt: skip


def metrics_page() -> str:
    """Every figure: definition, unit, over what, range, direction, source."""
    lines = [f"{MADE}# Metrics\n"]
    lines.append(
        "Each figure has one name, which is its key in `metrics.json` and in the results of a "
        "sweep, and one title, which tables and reports show. A figure that has nothing to be "
        "computed from, such as a mean over no jobs, is `null`. Sources: PU, CS2, C07, EG and GM "
        "are the [papers](../papers.md).\n"
    )
    for title, attribute in _GROUPS:
        lines.append(f"## {title}\n\n{comment_after(definitions, attribute)}\n")
        for one in getattr(definitions, attribute):
            direction = {"more": "more is better", "less": "less is better"}.get(one.better, "")
            facts = [one.over, f"range: {one.values}", direction, one.source]
            unit = f" Unit: {one.unit}." if one.unit else ""
            said = "; ".join(fact for fact in facts if fact)
            lines.append(f"`{one.name}` ({one.title})\n: {one.meaning}{unit}  \n  *{said}*\n")
    return "\n".join(lines)


_FILES = (
    ("jobs.csv and jobs.parquet", "JOB_COLUMNS"),
    ("series.parquet", "SERIES_COLUMNS"),
    ("manifest.json", "MANIFEST_KEYS"),
    ("results.csv, results.parquet, clock.csv and clock.parquet", "RESULT_COLUMNS"),
)


def files_page() -> str:
    """Every column of every file that is written."""
    lines = [f"{MADE}# Files and their columns\n"]
    lines.append(
        "A run writes a folder, whole or not at all: `jobs.csv`, `jobs.parquet`, "
        "`series.parquet`, `metrics.json` (the [metrics](metrics.md) of the `grid` and of each of "
        "the `vos`), `manifest.json` and `scenario.yaml` (the scenario with all defaults filled "
        "in; it runs again). A sweep writes its tables of results, and a file for each run, from "
        "which it goes on after an interruption. Metrics of your own are columns after these.\n"
    )
    for title, attribute in _FILES:
        lines.append(f"## {title}\n\n{comment_after(column_definitions, attribute)}\n")
        for name, (unit, meaning) in getattr(column_definitions, attribute).items():
            words = f" Unit: {unit}." if unit else ""
            lines.append(f"`{name}`\n: {meaning}{words}\n")
    return "\n".join(lines)


def comment_after(module: Any, attribute: str) -> str:
    """The string that follows a variable in its module."""
    source = inspect.getsource(module)
    found = re.search(rf'^{attribute}\b.*?^[}})][^\n]*\n"""(.*?)"""', source, re.M | re.S)
    return markdown(found.group(1)) if found is not None else ""


# Commands.


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by the words that call it."""
    group = typer.main.get_command(app)
    waiting: list[tuple[str, Any]] = [("grid", group)]
    for words, command in waiting:
        yield words, command
        inner = getattr(command, "commands", {})
        waiting += [(f"{words} {name}", one) for name, one in inner.items()]


def commands_page() -> str:
    """Every command with its options."""
    lines = [f"{MADE}# Commands\n"]
    lines.append(
        "`scripts/grid` in a clone is the same command; it sets up the environment first. "
        "Every command has `--help`. What they exit with: [exit codes](exit-codes.md).\n"
    )
    for words, command in commands():
        about = markdown(inspect.cleandoc(command.help or ""))
        lines.append(f"(command-{words.replace(' ', '-')})=\n## {words}\n\n{about}\n")
        for parameter in command.params:
            names, facts = parameter_text(parameter)
            lines.append(f"{names}\n: {facts}\n")
    return "\n".join(lines)


def parameter_text(parameter: Any) -> tuple[str, str]:
    """How an argument or option is written, and what it is."""
    if parameter.param_type_name == "argument":
        names = f"`{(parameter.metavar or parameter.name).upper()}`"
        names += "" if parameter.required else " (may be left out)"
    else:
        value = "" if parameter.is_flag else f" {parameter.metavar or value_of(parameter)}"
        written = (*parameter.opts, *parameter.secondary_opts)
        names = ", ".join(f"`{name}{value}`" for name in written)
    said = [(parameter.help or "").strip()]
    limits = {"at least": parameter.min, "at most": parameter.max}
    shown = [f"{words} {limit:g}" for words, limit in limits.items() if limit is not None]
    if shown:
        said.append(f"Limits: {', '.join(shown)}.")
    if parameter.multiple:
        said.append("May be given several times.")
    if isinstance(parameter.default, int | float | str) and not isinstance(parameter.default, bool):
        said.append(f"Default: {parameter.default}.")
    return names, " ".join(said) if said[0] else ""


def value_of(parameter: Any) -> str:
    """What stands for the value of an option."""
    words = {"int": "NUMBER", "float": "NUMBER", "Path": "PATH", "str": "TEXT"}
    return words.get(getattr(parameter.type_descriptor.annotation, "__name__", ""), "VALUE")


def exit_codes_page() -> str:
    """What each exit code means."""
    lines = [f"{MADE}# Exit codes\n", "| code | meaning |", "| --- | --- |"]
    lines += [f"| {code.value} | {code.meaning} |" for code in ExitCode]
    return "\n".join(lines) + "\n"


# Python.


def python_page() -> str:
    """What `import grid` gives."""
    lines = [f"{MADE}# Python\n"]
    lines.append(
        "`import grid` loads nothing heavy. These are all names that it exports. Examples: "
        "[a run and a sweep in Python](../how-to/python.md).\n"
    )
    for name in grid.__all__:
        thing = getattr(grid, name)
        kind = "autoclass" if inspect.isclass(thing) else "autofunction"
        home = f"{thing.__module__}.{thing.__qualname__}"
        lines.append(f"(python-{kind[4:]}-{name.lower()})=\n## grid.{name}\n")
        lines.append(f"```{{eval-rst}}\n.. {kind}:: {home}")
        if kind == "autoclass" and not issubclass(thing, BaseException | BaseModel):
            lines.append("   :members:\n   :member-order: bysource")
        lines.append("```\n")
    return "\n".join(lines)


def markdown(docstring: str) -> str:
    """A docstring as Markdown: its own indented blocks stay as they are."""
    return inspect.cleandoc(docstring).replace("<", "&lt;").replace("*", "\\*")


def pages() -> dict[str, str]:
    """All pages by their path below `docs/`."""
    return {
        "reference/scenario.md": scenario_page(),
        "reference/experiment.md": experiment_page(),
        "reference/parts.md": parts_page(),
        "reference/metrics.md": metrics_page(),
        "reference/files.md": files_page(),
        "reference/commands.md": commands_page(),
        "reference/exit-codes.md": exit_codes_page(),
        "reference/python.md": python_page(),
    }


def entries() -> Iterator[Entry]:
    """All that the reference lists, each with its sentence."""
    yield from _entries_of_files()
    for kind in KINDS.values():
        yield Entry("parts", kind.name, kind.task)
        for name in kind.own:
            part = Parts().find(kind, name)
            yield Entry("parts", name, part.description)
            for setting, _, sentence in settings_of(part):
                yield Entry("parts", setting, sentence)
    for words, command in commands():
        yield Entry("commands", words, command.help or "")
        for one in command.params:
            if one.name != "help":
                yield Entry("commands", f"{words} {one.opts[0]}", parameter_text(one)[1])
    for name in grid.__all__:
        yield Entry("python", f"grid.{name}", inspect.getdoc(getattr(grid, name)) or "")


def _entries_of_files() -> Iterator[Entry]:
    """Those of what a user writes, and of what is written for them."""
    for page, root in (("scenario", Scenario), ("experiment", ExperimentSection)):
        for model, path in sections(root).items():
            yield Entry(page, path or model.__name__, inspect.getdoc(model) or "")
            for name, field in model.model_fields.items():
                yield Entry(page, f"{path}.{name}".lstrip("."), field.description or "")
    for metric in definitions.METRICS.values():
        yield Entry("metrics", metric.name, metric.meaning)
    for _, attribute in _FILES:
        for name, (_, meaning) in getattr(column_definitions, attribute).items():
            yield Entry("files", name, meaning)


def write(folder: Path) -> None:
    """Write the pages whose text has changed, so that only they are built again."""
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
