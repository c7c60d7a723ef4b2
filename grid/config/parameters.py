"""Parameters of a scenario: defaults, `--set`, and references `${name}` in values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from grid.config.schema import Scenario
from grid.config.yaml_tree import MAX_DEPTH, Node, child, read_tree, tree_of_value
from grid.model.errors import (
    ErrorLine,
    InputError,
    Path,
    dotted,
    expected_name,
    input_error,
    raise_if,
    shorten,
)
from grid.model.fields import is_section, keys_of

SECTION = "parameters"
UNKNOWN = "an unknown parameter or key"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_INDEX = re.compile(r"[0-9]{1,9}")
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")

Overrides = Sequence[str] | Mapping[str, Any]
"""Texts `name=value`, or values by name. A name is that of a parameter, or the path of a key."""


KEYS = tuple(Scenario.model_fields)
"""The keys at the top of a scenario, next to `parameters`."""
INNER_KEYS = tuple(
    f"{key}.{inner}"
    for key, field in Scenario.model_fields.items()
    if is_section(field.annotation)
    for inner in keys_of(field.annotation)
)
"""Paths of the keys of sections that every scenario has, such as protocol.ttl."""


def fill_in(root: Node, overrides: Overrides) -> list[ErrorLine]:
    """Apply `overrides` to a scenario, in order, then replace references to parameters.

    Changes `root` in place, removes its `parameters`, and returns errors. An override is for a
    parameter or for a `path.to.a.key`; a parameter's name wins. Mappings on the way to a key are
    made if they are missing.
    """
    parameters, errors = _defaults(root)
    declared = dict(parameters)
    # A parameter is also used if an override replaces its only reference.
    used = _references(root, parameters)
    for override in each_of(overrides):
        try:
            name, node = written_override(override)
        except InputError as error:
            errors += error.errors
            continue
        if name in parameters:
            errors += (unfit := _unfit(node, (name,)))
            parameters[name] = parameters[name] if unfit else node
        else:
            errors += _override_key(root, name, node, [*parameters, *KEYS])
    used |= _references(root, parameters)
    given = {name: node for name, node in parameters.items() if node is not declared[name]}
    for path, node in _scalars(root, ()):
        errors += _substitute(node, path, parameters, given)
    return errors + [
        node.error(
            (SECTION, name), f"${{{name}}} in a value of the scenario", "an unused parameter"
        )
        for name, node in declared.items()
        if name not in used and _NAME.fullmatch(name)
    ]


def parameter_in(text: str) -> str | None:
    """The name of the parameter that a text refers to, if it is one reference."""
    found = _REFERENCE.fullmatch(text)
    return None if found is None else found[1]


def _references(root: Node, parameters: Mapping[str, Node]) -> dict[str, None]:
    """The names in all references, also unknown ones."""
    nodes = [node for _, node in _scalars(root, ())] + list(parameters.values())
    texts = [node.value for node in nodes if isinstance(node.value, str)]
    return dict.fromkeys(name for text in texts for name in _REFERENCE.findall(text))


def _defaults(root: Node) -> tuple[dict[str, Node], list[ErrorLine]]:
    assert isinstance(root.value, dict)
    section = root.value.pop(SECTION, None)
    if section is None or section.value is None:
        return {}, []
    if not isinstance(section.value, dict):
        return {}, [section.error((SECTION,), "a mapping of names to values")]
    errors = []
    for name, node in section.value.items():
        if not _NAME.fullmatch(name):
            expected = "a name of letters, digits, `_` and `-` that begins with a letter or `_`"
            errors.append(node.error((SECTION, name), expected, f"the name {shorten(name)}"))
        errors += _unfit(node, (SECTION, name))
    return dict(section.value), errors


def _unfit(node: Node, path: Path) -> list[ErrorLine]:
    """Errors of a value that cannot be that of a parameter."""
    if isinstance(node.value, list | dict):
        expected = "a single value (lists and mappings require a path, as in vos.0.admission)"
        return [node.error(path, expected)]
    return [node.error(path, "a value without `${`")] if "${" in node.text else []


# Overrides


def each_of(overrides: Overrides) -> Iterable[Any]:
    """Texts, or pairs of name and value. Raises InputError."""
    if isinstance(overrides, Mapping):
        return overrides.items()
    if isinstance(overrides, str):
        return [overrides]
    if not isinstance(overrides, Iterable):
        raise _refused("", overrides, "strings of the form name=value, or a mapping")
    # Pairs are the items of a mapping only.
    return [list(one) if isinstance(one, tuple) else one for one in overrides]


def _refused(override: str, found: object, expected: str) -> InputError:
    return input_error("", shorten(found), expected, f"--set {override}".strip())


def written_override(override: Any) -> tuple[str, Node]:
    """Name and value of an override: a text name=value, or a pair. Raises InputError."""
    is_pair = isinstance(override, tuple)
    if isinstance(override, str):
        name, equals, value = override.partition("=")
        if not equals or not name:
            raise _refused(_shown(override), override, "name=value")
    elif is_pair:
        name, value = override
        override = f"{name}={value}" if isinstance(value, str | int | float) else f"{name}"
        if not isinstance(name, str) or not name:
            raise _refused(_shown(override), name, "the name of a key as text")
    else:
        raise _refused("", override, "text: name=value")
    source = f"--set {_shown(override)}"
    try:
        if isinstance(value, Node):
            return name, value
        if is_pair:
            node, errors = tree_of_value(value, source)
        elif not value:
            node, errors = Node(None, source, None), []
        else:
            node, errors = read_tree(value, source, lines=False)
        raise_if(errors)
    except InputError as error:
        # Their fields are within the value.
        key = dotted(_path(name))
        fields = [replace(one, field=f"{key}.{one.field}".rstrip(".")) for one in error.errors]
        raise InputError(fields) from None
    return name, node


def _shown(override: str) -> str:
    return (override if override.isprintable() else shorten(override))[:94]


def _override_key(root: Node, name: str, node: Node, known: Sequence[str]) -> list[ErrorLine]:
    path = _path(name)
    if len(path) > MAX_DEPTH:
        return [node.error(path, f"at most {MAX_DEPTH} steps", "a longer path")]
    if path[0] not in known:
        likely = get_close_matches(name, known, 1)
        likely = likely or [key for key in INNER_KEYS if key.endswith(f".{name}")]
        return [node.error(path, " or ".join(likely) or f"one of {', '.join(known)}", UNKNOWN)]
    return _put(root, path, node)


def _path(name: str) -> Path:
    return tuple(int(step) if _INDEX.fullmatch(step) else step for step in name.split("."))


def _put(root: Node, path: Path, new: Node) -> list[ErrorLine]:
    """Set `path` to `new`; missing mappings are made.

    A step into a list is an index, the name of one of its entries, or `*` for all of them.
    """
    parents = [root]
    for depth, step in enumerate(path, start=1):
        found: list[Node] = []
        for parent in parents:
            keys = _keys(parent, step)
            if not keys:
                return [_no_place(parent, path[:depth], new)]
            entries: Any = parent.value
            for key in keys:
                inner = child(parent, key)
                if depth == len(path):
                    # Each place has a node of its own: parameters are filled in in place.
                    inner = entries[key] = deepcopy(new)
                elif inner is None or inner.value is None:
                    inner = entries[key] = Node({}, new.source, None)
                found.append(inner)
        parents = found
    return []


def _keys(parent: Node, step: str | int) -> list[str | int]:
    """The keys or indices of a mapping or list that a step of a path names."""
    if isinstance(parent.value, dict):
        return [str(step)]
    if not isinstance(parent.value, list):
        return []
    if isinstance(step, int):
        return [step] if step < len(parent.value) else []
    names = [child(entry, "name") for entry in parent.value]
    return [
        index
        for index, name in enumerate(names)
        if step == "*" or (name is not None and name.value == step)
    ]


def _no_place(parent: Node, path: Path, new: Node) -> ErrorLine:
    if not isinstance(parent.value, list):
        return new.error(path, "a list or mapping that contains this key", parent.found())
    names = [child(entry, "name") for entry in parent.value]
    known = [str(name.value) for name in names if name is not None]
    expected = ", ".join([f"an index below {len(parent.value)}", "`*`", *known])
    return new.error(path, expected, f"the entry {path[-1]}")


# References


def _scalars(node: Node, path: Path) -> Iterator[tuple[Path, Node]]:
    if isinstance(node.value, dict):
        for key, inner in node.value.items():
            yield from _scalars(inner, (*path, key))
    elif isinstance(node.value, list):
        for index, inner in enumerate(node.value):
            yield from _scalars(inner, (*path, index))
    else:
        yield path, node


def _substitute(
    node: Node, path: Path, parameters: dict[str, Node], given: dict[str, Node]
) -> list[ErrorLine]:
    """Replace references in a scalar: a single one by the value, others by text.

    Errors in a value that was `given` name the option or the file that gave it.
    """
    text = node.value
    if not isinstance(text, str) or "${" not in text:
        return []
    names = _REFERENCE.findall(text)
    unknown = [name for name in names if name not in parameters]
    if unknown or not names:
        known = filter(str.isprintable, parameters)
        expected = expected_name(unknown[0] if unknown else "", known, "a parameter")
        return [node.error(path, expected)]
    used = [parameters[name] for name in names]
    if _REFERENCE.fullmatch(text):
        node.value = used[0].value
    else:
        node.value = _REFERENCE.sub(lambda match: parameters[match.group(1)].text, text)
        if "${" in node.value:
            return [node.error(path, "`${` only in a reference to a parameter")]
    if first := next((given[name] for name in names if name in given), None):
        node.source, node.line = first.source, first.line
    return []
