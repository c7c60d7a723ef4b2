"""Load a scenario from a file or a mapping, or report its errors; and write it as YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ValidationError

from grid.config.checks import scenario_problems
from grid.config.parameters import INNER_KEYS, KEYS, SECTION, Overrides, fill_in, parameter_in
from grid.config.plugins import find_plugins, object_errors, plugin_problems, plugin_uses
from grid.config.schema import Scenario
from grid.config.text_file import read_text
from grid.config.yaml_tree import Node, at, child, nearest, read_tree, resolve, tree_of_value
from grid.model.errors import (
    ErrorLine,
    InputError,
    Path,
    Problem,
    dotted,
    expected_name,
    raise_if,
    shorten,
)
from grid.model.fields import PluginRef, is_section, keys_of, sections_in
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import expected as expected_by
from grid.model.plugins.settings import is_missing, path_of

MAX_BYTES = 4 * 1024 * 1024
MAX_ERRORS = 5
MAX_INCLUDES = 8
INCLUDE = "include"
"""The key that names files with further keys of the scenario."""
FROM_PYTHON = "scenario"
"""Takes the place of a file in errors of scenarios from Python."""


def load_scenario(
    given: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    overrides: Overrides = (),
    objects: Mapping[str, Mapping[str, Any]] | None = None,
) -> Scenario:
    """The scenario in a file, or in a mapping with the same keys, with `overrides`.

    Overrides are texts `name=value` as `--set` takes them, or a mapping of names to values. A
    Scenario is checked again, since Python can make one with any values.

    `objects` are plugins by kind and name (see `grid.run`). Plugins in files are looked up as
    traces are, and their sources become part of the scenario.

    Raises InputError with up to `MAX_ERRORS` errors, in the order of their lines: those of the
    text, then of plugins, then of the scenario as a whole (`grid.config.checks`). Traces are looked
    up in the current folder, then in that of the scenario, and have absolute paths in the result.
    """
    try:
        plugins = given.plugins if isinstance(given, Scenario) else Plugins()
        raise_if(object_errors(objects or {}, FROM_PYTHON))
        return _checked(*_read(given), overrides, plugins.with_objects(objects or {}))
    except InputError as error:
        once = dict.fromkeys(error.errors)
        errors = sorted(once, key=lambda one: (one.line is None, one.line or 0))
        raise InputError(errors[:MAX_ERRORS]) from None


def _read(given: Any) -> tuple[Node, list[ErrorLine], FilePath]:
    """The tree of a scenario, its errors so far, and its file."""
    if isinstance(given, Scenario):
        given = given.model_dump(exclude_unset=True, warnings=False)
    if isinstance(given, Mapping):
        return *tree_of_value(given, FROM_PYTHON), FilePath(FROM_PYTHON)
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        expected = "the path of a scenario in YAML, or a mapping"
        raise InputError([ErrorLine(FROM_PYTHON, None, "", shorten(given), expected)])
    path = FilePath(given)
    expected = f"a scenario in a file of at most {MAX_BYTES >> 20} MiB"
    return *read_tree(read_text(path, MAX_BYTES, expected), source_of(given)), path


def source_of(given: object) -> str:
    """The name of a scenario in errors: its file, else `FROM_PYTHON`; one line."""
    if not isinstance(given, str | os.PathLike):
        return FROM_PYTHON
    text = str(FilePath(given))
    return text if text.isprintable() else shorten(text)


def _checked(
    root: Node, errors: list[ErrorLine], path: FilePath, overrides: Overrides, plugins: Plugins
) -> Scenario:
    if not isinstance(root.value, dict):
        expected = "a mapping with keys like name, seed, network, protocol and vos"
        raise InputError([*errors, root.error((), expected)])
    if "scenario" in root.value and not {"vos", "vos_from_trace"} & root.value.keys():
        expected = "a scenario (to run an experiment, use grid sweep)"
        raise InputError([*errors, root.error((), expected, "an experiment")])
    raise_if(_include(root, path.parent))
    errors = errors + fill_in(root, overrides)
    if "name" not in root.value:
        root.value["name"] = Node(_name(path), root.source, root.line)
    errors += _find_traces(root, path.parent)
    scenario = validate(root, Scenario)
    if not isinstance(scenario, Scenario):
        # A value that could not be read or filled in is reported once.
        known = [error.field for error in errors]
        raise InputError(errors + [error for error in scenario if error.field not in known])
    plugins, problems = find_plugins(scenario, (FilePath(), path.parent), plugins)
    scenario = scenario.with_loaded(plugins, root)
    problems = problems or list(plugin_problems(plugin_uses(scenario), plugins))
    if not problems and all(error.field.startswith(f"{SECTION}.") for error in errors):
        # An unused parameter hides no error in the rest of the scenario.
        problems = scenario_problems(scenario)
    raise_if(errors + [_located(root, problem) for problem in problems])
    return scenario


# Included files


def _include(root: Node, folder: FilePath, depth: int = 0) -> list[ErrorLine]:
    """Merge the files that `include` names into a scenario, in place; its own keys win.

    Of several files the last one wins. Paths are relative to the current folder or to that of the
    file with `include`.
    """
    assert isinstance(root.value, dict)
    node = root.value.pop(INCLUDE, None)
    if node is None:
        return []
    errors: list[ErrorLine] = []
    own, root.value = root.value, {}
    for one in node.value if isinstance(node.value, list) else [node]:
        if not isinstance(one.value, str) or depth == MAX_INCLUDES:
            expected = f"the path of a scenario file, at most {MAX_INCLUDES} levels deep"
            return [one.error((INCLUDE,), expected)]
        path = FilePath(one.value)
        path = path if path.exists() else folder / path
        try:
            inner, wrong = read_tree(read_text(path, MAX_BYTES, "a scenario"), source_of(path))
        except InputError as error:
            return [one.error((INCLUDE,), wrong.expected, wrong.found) for wrong in error.errors]
        if not isinstance(inner.value, dict):
            return [inner.error((), "a mapping of scenario keys")]
        errors += [*wrong, *_include(inner, path.parent, depth + 1)]
        _merge(root, inner)
    _merge(root, Node(own, root.source, root.line))
    return errors


def _merge(root: Node, more: Node) -> None:
    """Add the keys of `more`, which win; mappings are merged key by key."""
    assert isinstance(root.value, dict) and isinstance(more.value, dict)
    for key, node in more.value.items():
        old = root.value.get(key)
        if old is not None and isinstance(old.value, dict) and isinstance(node.value, dict):
            _merge(old, node)
        else:
            root.value[key] = node


def with_included(path: FilePath) -> str:
    """The text of a scenario's file, with included files merged into it. Raises InputError."""
    text = read_text(path, MAX_BYTES, "a scenario")
    root, errors = read_tree(text, source_of(path))
    if not isinstance(root.value, dict) or INCLUDE not in root.value:
        return text
    raise_if(errors + _include(root, path.parent))
    return section_yaml(root.plain())


def _located(root: Node, problem: Problem) -> ErrorLine:
    """The error line; a plugin without settings is its name, which has no path of its own."""
    path, found, expected = problem
    if path[-1:] == ("name",) and isinstance(nearest(root, path[:-1]).value, str):
        path = path[:-1]
    return nearest(root, path).error(path, expected, found or None)


def _name(path: FilePath) -> str:
    """A scenario's name from that of its file, with `-` for characters that no name may have."""
    stem = re.sub(r"[^A-Za-z0-9_.-]", "-", path.stem).lstrip("_.-")
    return stem[:64] or "scenario"


def _find_traces(root: Node, folder: FilePath) -> list[ErrorLine]:
    """Make the paths of traces absolute, in place. Returns errors for missing files."""
    vos = child(root, "vos")
    sections = vos.value if vos is not None and isinstance(vos.value, list) else []
    errors = []
    for owner in [(), *(("vos", index) for index in range(len(sections)))]:
        where: Path = (*owner, "workload", "trace")
        node = at(root, where)
        if node is None or not isinstance(node.value, str):
            continue
        given = FilePath(node.value)
        places = [given, FilePath(node.source).parent / given, folder / given]
        path = next((one for one in places if os.path.isfile(one)), None)  # noqa: PTH113
        if path is not None:
            node.value = str(path.resolve())
            continue
        key = parameter_in(node.text) or dotted(where)
        expected = "a log in the current folder, in that of the scenario, or at another path: "
        expected += f"--set {key}=FILE (the emulator does not include logs)"
        errors.append(node.error(where, expected, f"{node.found()}: no such file"))
    return errors


# Validation against the schema

RENAMED_KEYS = {
    "when_busy": "forwarding",
    "enters": "entry_point",
    "bind": "resource",
    "annotate": "attributes",
    "law": "distribution",
    "processors": "cpus",
    "one_job_a_machine": "one_job_per_machine",
    "jobs_a_session": "jobs_per_session",
    "total_processors": "total_cpus",
    "min_processors": "min_cpus",
    "max_processors": "max_cpus",
    "snapshot_period_s": "snapshots.period_s",
    "snapshot_load_limit": "snapshots.load_above",
    "snapshot_jobs_limit": "snapshots.jobs_above",
}
"""The new names of keys that have been renamed."""

# A union has an error of each alternative; these types only indicate another kind of value.
_OTHER_KIND = (
    *("bool_type", "int_type", "float_type", "string_type", "model_type", "dict_type"),
    *("tuple_type", "literal_error", "dataclass_type"),
)

Error = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)


def validate(root: Node, model: type[Model]) -> Model | list[ErrorLine]:
    """The scenario or other `model` in the tree, or all its errors."""
    plain = root.plain()
    try:
        return model.model_validate(plain)
    except ValidationError as invalid:
        errors: list[Any] = invalid.errors(include_url=False, include_input=False)
    by_path: dict[Path, list[Error]] = {}
    for error in errors:
        by_path.setdefault(path_of(error, plain), []).append(error)
    with_inner = {path[:end] for path in by_path for end in range(len(path))}
    found = []
    for path, here in by_path.items():
        specific = [error for error in here if error["type"] not in _OTHER_KIND]
        # A list without valid entries is also reported as too short.
        if path in with_inner and all(error["type"] == "too_short" for error in specific):
            continue
        found.append(_error_line(root, path, specific or here, model))
    return found


def _error_line(root: Node, path: Path, errors: list[Error], model: type[BaseModel]) -> ErrorLine:
    node = nearest(root, path)
    kind = errors[0]["type"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return node.error(path, _known_key(path, model), "an unknown key")
    found = "nothing" if is_missing(errors[0]) else None
    if kind == "value_error" and isinstance(node.value, dict) and node.value:
        found = f"the keys {', '.join(node.value)}"
    expected = dict.fromkeys(expected_by(error) for error in errors)
    return node.error(path, " or ".join(expected), found)


def _known_key(path: Path, model: type[BaseModel]) -> str:
    """The key that the last step of `path` likely means, else its right place, or all keys."""
    sections: list[Any] = [model]
    for step in path[:-1]:
        # Other steps are indices, or keys of a mapping of names to sections.
        if fields := [keys_of(one)[step] for one in sections if step in keys_of(one)]:
            sections = [inner for field in fields for inner in sections_in(field.annotation)]
    known = list(dict.fromkeys(key for section in sections for key in keys_of(section)))
    elsewhere = [] if model is not Scenario else [*KEYS, *INNER_KEYS]
    if len(path) == 1 and model is Scenario:
        known += [SECTION, INCLUDE]
    key = str(path[-1])
    if key == "malleable":
        return "moldable, since a job's size is fixed when it starts (no malleable jobs)"
    if RENAMED_KEYS.get(key, "").partition(".")[0] in known:
        return f"the new name, {RENAMED_KEYS[key]}"
    if elsewhere := [one for one in elsewhere if one.rpartition(".")[2] == key]:
        return f"it as {' or '.join(elsewhere)}"
    return expected_name(key, known, "a known key")


# YAML


def resolved_yaml(scenario: Scenario) -> str:
    """The scenario as YAML with its defaults filled in, which loads to an equal scenario.

    Paths of traces and of plugins' files are absolute, so that it runs from any folder.
    """
    return section_yaml(scenario, scenario.plugins.absolute())


def section_yaml(section: Any, renamed: Mapping[str, str] | None = None) -> str:
    """A section, or a mapping of some, as YAML with defaults filled in and some texts `renamed`."""
    plain = _plain(section, renamed or {})
    return str(yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000))


def _plain(value: Any, renamed: Mapping[str, str]) -> Any:
    """Sections as mappings, without keys that are empty by default; plugins as names."""
    if isinstance(value, PluginRef) and not value.settings:
        return _plain(value.name, renamed)
    if is_section(value):
        fields = keys_of(value).items()
        values = [(key, getattr(value, key), field.default) for key, field in fields]
        value = {
            key: one for key, one, default in values if one not in (None, ()) or one != default
        }
    if isinstance(value, dict):
        return {_plain(name, renamed): _plain(inner, renamed) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, renamed) for inner in value]
    return renamed.get(value, value) if isinstance(value, str) else value


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes what `read_tree` reads back: quotes text that would be another value in YAML 1.2."""

    def ignore_aliases(self, data: Any) -> bool:
        """Equal values are written out each time."""
        del data
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    try:
        style = None if resolve(text) == text and text.isprintable() else '"'
    except ValueError:
        style = '"'
    made: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return made


_Dumper.add_representer(str, _represent_text)
