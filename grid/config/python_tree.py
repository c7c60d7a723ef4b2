"""The tree of a scenario from Python values, as `grid.config.yaml_tree` makes it from YAML.

Plain are mappings with text for keys, lists, tuples, arrays, text, numbers, truth values, None and
paths. All limits are those of `grid.config.yaml_tree`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from grid.config.yaml_tree import (
    MAX_DEPTH,
    MAX_NODES,
    MAX_NUMBER_LENGTH,
    Node,
    Scalar,
)
from grid.model.errors import ErrorLine, InputError, Path, dotted, shorten

PLAIN = "text, a number, true or false, None, a list or a mapping"
MAX_TEXT = 4 * 1024 * 1024
MOST_BITS = 14_000
"""The most bits of a number that Python converts to text."""


def tree_of_value(value: Any, source: str) -> tuple[Node, list[ErrorLine]]:
    """The tree of `value`, and what is wrong with it but does not stop the reading.

    Raises InputError where reading cannot go on: values nested too deep, in themselves, or too
    many. `source` is what mistakes are reported against; there are no lines.
    """
    builder = _Builder(source)
    return builder.node(value, ()), builder.errors


class _Builder:
    def __init__(self, source: str) -> None:
        self.errors: list[ErrorLine] = []
        self._source = source
        self._nodes = 0
        self._open: list[int] = []
        """Identities of the lists and mappings around the value that is being read."""

    def node(self, value: Any, path: Path) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._stop(path, "too many values", f"at most {MAX_NODES}, aliases expanded")
        if len(path) > MAX_DEPTH:
            self._stop(path, "values nested too deep", f"at most {MAX_DEPTH} levels")
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, Mapping | list | tuple):
            return self._scalar(value, path)
        if id(value) in self._open:
            self._stop(path, "a list or mapping that contains itself", PLAIN)
        self._open.append(id(value))
        node = self._mapping(value, path) if isinstance(value, Mapping) else self._list(value, path)
        self._open.pop()
        return node

    def _list(self, value: list[Any] | tuple[Any, ...], path: Path) -> Node:
        items = [self.node(item, (*path, index)) for index, item in enumerate(value)]
        return Node(items, self._source, None)

    def _mapping(self, value: Mapping[Any, Any], path: Path) -> Node:
        entries: dict[str, Node] = {}
        for key, inner in value.items():
            is_short = isinstance(key, int) and abs(key) < 2**63 and not isinstance(key, bool)
            if not isinstance(key, str) and not is_short:
                self._note(path, f"the key {_shown(key)}", "text for a key")
                continue
            # A key 5 is the text that it is in a file.
            text = str.__str__(key) if isinstance(key, str) else int.__repr__(key)
            if text in entries:
                self._note((*path, text), "the key again", "each key once")
            entries[text] = self.node(inner, (*path, text))
        return Node(entries, self._source, None)

    def _scalar(self, value: Any, path: Path) -> Node:
        try:
            plain = _plain(value)
        except ValueError as error:
            found, expected = error.args
            self._note(path, found, expected)
            plain = found
        return Node(plain, self._source, None, _text(plain))

    def _note(self, path: Path, found: str, expected: str) -> None:
        self.errors.append(ErrorLine(self._source, None, dotted(path), found, expected))

    def _stop(self, path: Path, found: str, expected: str) -> NoReturn:
        self._note(path, found, expected)
        raise InputError(self.errors)


def _plain(value: Any) -> Scalar:
    """`value` as a plain type of Python. Raises ValueError(found, expected)."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return _plain_text(str.__str__(value))
    if isinstance(value, int):
        return _plain_integer(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(repr(float(value)), "a finite number")
        return float(value)
    raise ValueError(_shown(value), PLAIN)


def _plain_text(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise ValueError(f"a text of {len(text)} characters", f"at most {MAX_TEXT}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(shorten(text), "text that UTF-8 can hold") from None
    return text


def _plain_integer(number: int) -> int:
    is_short = number.bit_length() < MOST_BITS
    if is_short and len(str(number)) <= MAX_NUMBER_LENGTH:
        return number
    found = shorten(str(number)) if is_short else f"a number of {number.bit_length()} bits"
    raise ValueError(found, f"a number of at most {MAX_NUMBER_LENGTH} characters")


def _text(plain: Scalar) -> str:
    """What stands for a scalar within text, as YAML writes it."""
    if plain is None:
        return ""
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def _shown(value: object) -> str:
    """A value that is not plain, as a message shows it: its own `repr` may fail."""
    if value is None:
        return "None"
    if isinstance(value, bool | float) or (
        isinstance(value, int) and value.bit_length() < MOST_BITS
    ):
        return shorten(value)
    return f"an object of type {type(value).__name__}"
