"""Compare the tree of a scenario with its schema, and say what is wrong in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from grid.config.parameters import SECTION
from grid.config.schema import Scenario
from grid.config.sections import Section
from grid.config.yaml_tree import Node, at, child, nearest
from grid.model.errors import ErrorLine, Path, dotted
from grid.model.plugins.settings import expected as expected_by
from grid.model.plugins.settings import is_missing, path_of

KEYS = tuple(Scenario.model_fields)
"""The keys at the top of a scenario, beside `parameters`."""
INNER_KEYS = tuple(
    f"{key}.{inner}"
    for key, field in Scenario.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
    for inner in field.annotation.model_fields
)
"""Paths of the keys of sections that every scenario has, such as protocol.ttl."""

NO_SUCH_SETTING = "no such setting"
PLACES_NAMED, KEYS_NAMED = 3, 6
ALIKE, NEARLY_ALIKE = 0.75, 0.6
"""Ratios of `difflib`: how much a key is like the one that was meant. More is asked of one that
stands elsewhere under its own name."""
DEEPEST = 6

Error = dict[str, Any]
Model = TypeVar("Model", bound=BaseModel)

# Errors that only say that a value is of another kind, of which a union has one an alternative.
_OTHER_KIND = (
    *("bool_type", "int_type", "float_type", "string_type", "model_type", "dict_type"),
    *("tuple_type", "literal_error"),
)
RENAMED_KEYS = {
    "when_busy": "forwarding",
    "enters": "entry_point",
    "bind": "resource",
    "annotate": "attributes",
    "law": "distribution",
    "processors": "cpus",
    "total_processors": "total_cpus",
    "min_processors": "min_cpus",
    "max_processors": "max_cpus",
}
"""The new names of keys that have been renamed."""


def validate(root: Node, model: type[Model], where: Path = ()) -> Model | list[ErrorLine]:
    """The scenario or other `model` that the tree holds at `where`, or all that is wrong with it.

    Where there is nothing, all is at its default.
    """
    node = at(root, where)
    if node is None:
        above = nearest(root, where)
        node = Node({}, above.source, above.line)
    try:
        return model.model_validate(node.plain())
    except ValidationError as invalid:
        errors: list[Any] = invalid.errors(include_url=False, include_input=False)
    problems = _error_lines(node, errors, model)
    prefix = dotted(where)
    if not where:
        return problems
    return [replace(m, field=f"{prefix}.{m.field}" if m.field else prefix) for m in problems]


def _error_lines(root: Node, errors: list[Error], model: type[BaseModel]) -> list[ErrorLine]:
    """One mistake for each place, however many of a union's alternatives complain about it."""
    by_path: dict[Path, list[Error]] = {}
    with_inner: dict[Path, None] = {}
    for error in errors:
        path = _path(root, error)
        by_path.setdefault(path, []).append(error)
        with_inner.update(dict.fromkeys(path[:end] for end in range(len(path))))
    problems = []
    for path, here in by_path.items():
        telling = [error for error in here if error["type"] not in _OTHER_KIND]
        # A list with wrong entries is also called too short, for lack of right ones.
        if path in with_inner and all(error["type"] == "too_short" for error in telling):
            continue
        problems.append(_error_line(root, path, telling or here, model))
    return problems


def _path(root: Node, error: Error) -> Path:
    """Where in the tree an error is: its location without the names of a union's alternatives."""
    path: list[str | int] = []
    node = root
    location = error["loc"]
    for position, step in enumerate(location):
        inner = child(node, step)
        if inner is not None:
            path.append(step)
            node = inner
        elif error["type"] == "missing" and position == len(location) - 1:
            path.append(step)
    return (*path, *path_of(error)[len(location) :])


def _error_line(root: Node, path: Path, errors: list[Error], model: type[BaseModel]) -> ErrorLine:
    node = nearest(root, path)
    kind = errors[0]["type"]
    if kind == "extra_forbidden":
        return node.error(path, _known_key(path, model), "an unknown key")
    if is_missing(errors[0]):
        return node.error(path, expected_by(errors[0]), "nothing")
    found = None
    if kind == "value_error" and isinstance(node.value, dict):
        found = f"the keys {', '.join(node.value)}" if node.value else None
    expected = dict.fromkeys(expected_by(error) for error in errors)
    return node.error(path, " or ".join(expected), found)


def _known_key(path: Path, model: type[BaseModel]) -> str:
    """The key that the last step of `path` was likely meant to be, else where that key should
    stand, or all that it could be."""
    sections: list[type[BaseModel]] = [model]
    for step in path[:-1]:
        if isinstance(step, str):
            fields = [s.model_fields[step] for s in sections if step in s.model_fields]
            sections = [inner for field in fields for inner in _sections(field.annotation)]
    known = list(dict.fromkeys(key for section in sections for key in section.model_fields))
    if len(path) == 1 and model is Scenario:
        known.append(SECTION)
    key = str(path[-1])
    if RENAMED_KEYS.get(key) in known:
        return f"{RENAMED_KEYS[key]}, its new name"
    elsewhere = list(dict.fromkeys(_places(key, model)))
    is_misplaced = 0 < len(elsewhere) <= PLACES_NAMED
    likely = get_close_matches(key, known, 1, ALIKE if is_misplaced else NEARLY_ALIKE)
    if likely:
        return likely[0]
    if is_misplaced:
        here = f"; here, one of {', '.join(known)}" if 0 < len(known) <= KEYS_NAMED else ""
        return f"it {' or '.join(elsewhere)}{here}"
    return f"one of {', '.join(known)}" if known else NO_SUCH_SETTING


def _places(key: str, section: type[BaseModel], where: tuple[str, ...] = ()) -> Iterator[str]:
    """Where such a key may stand, from `section` on."""
    for name, field in section.model_fields.items():
        if name == key:
            yield f"in {'.'.join(where)}" if where else "at the top level"
        if len(where) < DEEPEST:
            is_list = "tuple" in str(field.annotation)
            for inner in _sections(field.annotation):
                yield from _places(key, inner, (*where, name, "*") if is_list else (*where, name))


def _sections(annotation: Any) -> list[type[BaseModel]]:
    """The mappings that a type can stand for, or that a list of it holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for inner in get_args(annotation) for section in _sections(inner)]
