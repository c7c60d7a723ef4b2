"""Read a scenario from a file or a mapping, or report all its mistakes; and write it as YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from grid.config import checks
from grid.config.effect_checks import capability_problems
from grid.config.parameters import SECTION, Overrides, fill_in, parameter_in
from grid.config.plugin_checks import as_written, find_plugins, object_errors, plugin_errors
from grid.config.python_tree import tree_of_value
from grid.config.schema import Scenario
from grid.config.sections import Section
from grid.config.text_file import read_text, reason, refuse_no_file
from grid.config.validate import INNER_KEYS, KEYS, validate
from grid.config.yaml_tree import Node, ScenarioLines, at, child, nearest, read_tree, resolve
from grid.model.errors import ErrorLine, InputError, dotted, shorten
from grid.model.plugins.registry import Plugins

MAX_BYTES = 4 * 1024 * 1024
MAX_MISTAKES = 5
FROM_PYTHON = "scenario"
"""The place that mistakes in a scenario from Python name instead of a file."""


def load_scenario(
    given: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    overrides: Overrides = (),
    objects: Mapping[str, Mapping[str, Any]] | None = None,
) -> Scenario:
    """The scenario in a file, or that a mapping describes as a file would, with `overrides`.

    Overrides are texts `name=value` as `--set` takes them, or a mapping of names to values. A
    Scenario is checked again, for Python lets one be made of anything.

    `objects` are parts to plug in, by kind and name (see `grid.run`). What stands in a file is
    looked for as traces are, and comes along with the scenario.

    Raises InputError with up to `MAX_MISTAKES` mistakes, in the order of their lines. Those of
    the text come first; what concerns the scenario as a whole (`grid.config.checks`) is looked
    at when all else is right. Traces are looked for in the current folder, then in that of the
    scenario, and are absolute paths in what is returned.
    """
    try:
        parts = _given_parts(given, objects or {})
        return _checked(*_read(given), overrides, parts)
    except InputError as error:
        once = dict.fromkeys(error.errors)
        problems = sorted(once, key=lambda problem: (problem.line is None, problem.line or 0))
        raise InputError(problems[:MAX_MISTAKES]) from None


def _given_parts(given: Any, objects: Mapping[str, Mapping[str, Any]]) -> Plugins:
    """What the scenario already carries, and the objects. Raises InputError."""
    parts = given.plugins if isinstance(given, Scenario) else Plugins()
    problems = object_errors(objects, FROM_PYTHON)
    if problems:
        raise InputError(problems)
    return parts.with_objects(objects)


def _read(given: Any) -> tuple[Node, list[ErrorLine], Path]:
    """The tree of a scenario, what is wrong with it so far, and the file that it is from."""
    if isinstance(given, Scenario):
        given = given.model_dump(exclude_unset=True, warnings=False)
    if isinstance(given, Mapping):
        return *tree_of_value(given, FROM_PYTHON), Path(FROM_PYTHON)
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        expected = "the path of a scenario in YAML, or a mapping"
        raise InputError([ErrorLine(FROM_PYTHON, None, "", shorten(given), expected)])
    path, source = Path(given), source_of(given)
    expected = f"a scenario in a file of at most {MAX_BYTES >> 20} MiB"
    return *read_tree(read_text(path, MAX_BYTES, expected), source), path


def source_of(given: object) -> str:
    """The place that mistakes in the scenario name: its file, else `FROM_PYTHON`; one line."""
    if not isinstance(given, str | os.PathLike):
        return FROM_PYTHON
    text = str(Path(given))
    return text if text.isprintable() else shorten(text)


def _checked(
    root: Node, problems: list[ErrorLine], path: Path, overrides: Overrides, parts: Plugins
) -> Scenario:
    if not isinstance(root.value, dict):
        expected = "a mapping with keys such as name, seed, network, protocol, vos"
        raise InputError([*problems, root.error((), expected)])
    if "scenario" in root.value and not {"vos", "vos_from_trace"} & root.value.keys():
        expected = "a scenario (grid sweep runs an experiment)"
        raise InputError([*problems, root.error((), expected, "an experiment")])
    problems = problems + fill_in(root, overrides, KEYS, INNER_KEYS)
    if "name" not in root.value:
        root.value["name"] = Node(_name(path), root.source, root.line)
    problems += _find_traces(root, path.parent)
    parts, missing = find_plugins(root, (Path(), path.parent), parts)
    problems += missing
    scenario = validate(root, Scenario)
    # A wrong name or an unused parameter hides no mistake in the rest of the scenario.
    is_readable = all(problem.field.startswith(f"{SECTION}.") for problem in problems)
    if isinstance(scenario, Scenario):
        scenario = scenario.with_plugins(parts, ScenarioLines(root))
        more = _errors_in(scenario, root) if is_readable else plugin_errors(root, parts)
    else:
        more = scenario
    # What could not be read or filled in is reported once, not again for being no number.
    known = [problem.field for problem in problems]
    problems += [problem for problem in as_written(more, parts) if problem.field not in known]
    if problems or not isinstance(scenario, Scenario):
        raise InputError(problems)
    return scenario


def _errors_in(scenario: Scenario, root: Node) -> list[ErrorLine]:
    """What is wrong with a scenario of the right shape: first its plugins, then how they fit."""
    found = plugin_errors(root, scenario.plugins)
    for check in (checks.problems, capability_problems):
        if not found:
            found = [
                nearest(root, where).error(where, expected, value or None)
                for where, value, expected in check(scenario)
            ]
    return found


def _name(path: Path) -> str:
    """A scenario's name from that of its file, with `-` for characters that no name may have."""
    stem = re.sub(r"[^A-Za-z0-9_.-]", "-", path.stem).lstrip("_.-")
    return stem[:64] or "scenario"


def _find_traces(root: Node, folder: Path) -> list[ErrorLine]:
    """Make the paths of traces absolute, in place. Returns those that lead to no file."""
    vos = child(root, "vos")
    number = len(vos.value) if vos is not None and isinstance(vos.value, list) else 0
    problems = []
    for owner in [(), *(("vos", index) for index in range(number))]:
        where = (*owner, "workload", "trace")
        node = at(root, where)
        if node is None or not isinstance(node.value, str):
            continue
        try:
            node.value = str(_trace(Path(node.value), folder))
        except (OSError, ValueError) as error:
            found = f"{node.found()}: {reason(error)}"
            key = parameter_in(node.text) or dotted(where)
            expected = "a log in the current folder or in the scenario's, or another path: "
            expected += f"--set {key}=FILE (the emulator brings none)"
            problems.append(node.error(where, expected, found))
    return problems


def _trace(given: Path, folder: Path) -> Path:
    """Where a trace is. Raises OSError or ValueError where there is no file that can be read."""
    path = given if given.exists() else folder / given
    refuse_no_file(path)
    return path.resolve()


def resolved_yaml(scenario: Scenario) -> str:
    """The scenario as YAML with its defaults filled in, which loads to an equal scenario.

    Paths of traces are absolute, so that a run's copy runs again from any folder.
    """
    return section_yaml(scenario)


def section_yaml(section: Any) -> str:
    """A section, or a mapping of some, as YAML with defaults filled in."""
    return str(
        yaml.dump(
            _written(section), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000
        )
    )


def _written(value: Any) -> Any:
    """Sections as mappings, without the keys that are empty and are so by default."""
    if isinstance(value, Section):
        fields = type(value).model_fields
        values = {name: getattr(value, name) for name in fields}
        return {
            name: _written(inner)
            for name, inner in values.items()
            if inner is not None or fields[name].default is not None
        }
    if isinstance(value, dict):
        return {name: _written(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_written(inner) for inner in value]
    return value


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes what `read_tree` reads back: in quotes what else would be no text in YAML 1.2."""

    def ignore_aliases(self, data: Any) -> bool:
        """Equal values are written out, each where it stands."""
        del data
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    try:
        return None if resolve(text) == text and text.isprintable() else '"'
    except ValueError:
        return '"'


_Dumper.add_representer(str, _represent_text)
