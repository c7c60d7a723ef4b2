"""YAML text, or Python values, as a tree of nodes that have file and line.

Scalars follow YAML 1.2's core schema, not the 1.1 that the library resolves: `1e3` is a number,
`1:30`, `no` and `1_000` are text. `010` is refused, since 1.1 reads 8 there and 1.2 reads 10.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import yaml  # type: ignore[import-untyped]

from grid.model.errors import ErrorLine, InputError, Path, dotted, shorten

MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_DIGITS = 400
"""Of an integer: no key allows as many."""

Scalar = str | int | float | bool | None

_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(slots=True, eq=False)
class Node:
    """A value with its source and line; the value of a key has the line of the key.

    `source` is a file, or the option that gave the value and has no lines. `text` is the text of a
    scalar.
    """

    value: Scalar | list[Node] | dict[str, Node]
    source: str
    line: int | None
    text: str = ""

    def plain(self) -> Any:
        """The value as lists, dictionaries and scalars."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def found(self) -> str:
        """The value as errors show it."""
        if isinstance(self.value, dict):
            return "a mapping" if self.value else "an empty mapping"
        if isinstance(self.value, list):
            return "a list" if self.value else "an empty list"
        if self.value is None or isinstance(self.value, bool):
            return {None: "nothing", True: "true", False: "false"}[self.value]
        return shorten(self.value)

    def error(self, path: Path, expected: str, found: str | None = None) -> ErrorLine:
        """The error that this value is at `path` where another was expected."""
        shown = self.found() if found is None else found
        return ErrorLine(self.source, self.line, dotted(path), shown, expected)


def at(root: Node, path: Path) -> Node | None:
    """The node at `path`, if there is one."""
    node: Node | None = root
    for step in path:
        node = None if node is None else child(node, step)
    return node


def nearest(root: Node, path: Path) -> Node:
    """The node at `path`, or the last one on the way to it that exists."""
    ends = (at(root, path[:end]) for end in range(len(path), -1, -1))
    return next(node for node in ends if node is not None)


def child(node: Node, step: str | int) -> Node | None:
    """The child of `node` under the key or index `step`, if there is one."""
    if isinstance(node.value, dict):
        return node.value.get(str(step))
    if isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    return None


def resolve(text: str) -> Scalar:
    """The value of a plain scalar. Raises ValueError with what was expected instead."""
    if text in _WORDS:
        return _WORDS[text]
    is_integer = _INTEGER.fullmatch(text)
    if not is_integer and not _FLOAT.fullmatch(text):
        return text
    if _LEADING_ZERO.match(text):
        raise ValueError("a number without leading zeros, or text in quotes")
    if is_integer and len(text) < MAX_DIGITS:
        return int(text, 0)
    number = float(text)
    if math.isinf(number):
        raise ValueError("a smaller number")
    # `1e3` is valid wherever an integer is.
    return int(number) if "." not in text and number.is_integer() else number


class _Tree:
    """Builds the nodes of a tree, and collects the errors that do not stop it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.errors: list[ErrorLine] = []
        self.nodes = 0

    def note(self, line: int | None, path: Path, found: str, expected: str) -> None:
        """An error that does not stop the reading."""
        self.errors.append(ErrorLine(self.source, line, dotted(path), found, expected))

    def stop(self, line: int | None, path: Path, found: str, expected: str) -> NoReturn:
        """Raises InputError with all errors so far and this one."""
        self.note(line, path, found, expected)
        raise InputError(self.errors)

    def count(self, line: int | None, path: Path, more: int = 0) -> None:
        """Count a node. Raises InputError if there are too many, or if it is too deep."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.stop(line, path, "too many values", f"at most {MAX_NODES}, aliases expanded")
        if len(path) + more > MAX_DEPTH:
            self.stop(line, path, "values nested too deeply", f"at most {MAX_DEPTH} levels")


def read_tree(text: str, source: str, *, lines: bool = True) -> tuple[Node, list[ErrorLine]]:
    """The only document in `text`, and the errors that do not stop the reading.

    Raises InputError for broken YAML and for documents that are too deep or too large. Without
    `lines`, nodes have none, for text that is no file.
    """
    reader = _Reader(source, lines)
    try:
        return reader.document(text), reader.errors
    except UnicodeEncodeError:
        reader.stop(None, (), ascii(text)[:80], "UTF-8")
    except yaml.YAMLError as error:
        marks = [getattr(error, name, None) for name in ("context_mark", "problem_mark")]
        problem, context = (str(getattr(error, name, "")) for name in ("problem", "context"))
        # An unclosed quote or bracket is reported at its beginning, not at the end of the file.
        is_open = "flow" in context or "quoted" in context
        mark = marks[0] if is_open else marks[1] or marks[0]
        line = mark.line + 1 if mark is not None and lines else None
        if isinstance(error, yaml.reader.ReaderError):
            line = text.encode()[: error.position].count(b"\n") + 1 if lines else None
            problem = "a control character"
        expected = "YAML, without tabs for indentation, and with quotes around `${` in brackets"
        reader.stop(line, (), f"invalid YAML ({problem or error})", expected)


class _Reader(_Tree):
    """Builds nodes from the library's events.

    Events come from an iterator without recursion. The library's own loaders recurse, and the one
    in C crashes on brackets that nest 30,000 deep.
    """

    def __init__(self, source: str, lines: bool) -> None:
        super().__init__(source)
        self.lines = lines
        self.events: Iterator[Any] = iter(())
        self.anchors: dict[str, Node] = {}

    def document(self, text: str) -> Node:
        self.events = iter(yaml.parse(text, Loader=yaml.CSafeLoader))
        next(self.events)  # the start of the stream
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            self.stop(self._line(start), (), "an empty file", "a mapping")
        root = self._node(next(self.events), ())
        next(self.events)  # the end of the document
        end = next(self.events)
        if not isinstance(end, yaml.StreamEndEvent):
            self.stop(self._line(end), (), "a second document", "only one")
        return root

    def _node(self, event: Any, path: Path) -> Node:
        line = self._line(event)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                found = shorten(f"the alias *{event.anchor}")
                self.stop(line, path, found, "an alias of an anchor above it")
            return self._copied(self.anchors[event.anchor], line, path)
        self.count(line, path)
        if event.tag is not None:
            self.note(line, path, f"the tag {shorten(event.tag)}", "a value without a tag")
        node = Node(None, self.source, line)
        if isinstance(event, yaml.ScalarEvent):
            node.value = node.text = event.value
            if event.implicit[0] and event.tag is None:
                try:
                    node.value = resolve(event.value)
                except ValueError as error:
                    self.note(line, path, shorten(event.value), str(error))
        elif isinstance(event, yaml.SequenceStartEvent):
            node.value = []
            while not isinstance(inner := next(self.events), yaml.SequenceEndEvent):
                node.value.append(self._node(inner, (*path, len(node.value))))
        else:
            node.value = self._mapping(path)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _mapping(self, path: Path) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        merged: list[Node] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = self._line(event)
            if not isinstance(event, yaml.ScalarEvent):
                self.stop(line, path, "a key that is not text", "text for a key")
            inner = (*path, event.value)
            entry = self._node(next(self.events), inner)
            if event.value == "<<" and event.implicit[0]:
                # The first ones take precedence.
                merged += entry.value if isinstance(entry.value, list) else [entry]
                continue
            entry.line = line
            if event.value in entries:
                self.note(line, inner, "the key twice", "each key once")
            entries.setdefault(event.value, entry)
        for other in merged:
            if not isinstance(other.value, dict):
                self.note(other.line, (*path, "<<"), other.found(), "a mapping to merge")
                continue
            entries = other.value | entries
        return entries

    def _copied(self, node: Node, line: int | None, path: Path, depth: int = 0) -> Node:
        """A copy of a node, `depth` levels below that of the alias at `line`."""
        self.count(line, path, depth)
        value = node.value
        if isinstance(value, dict):
            value = {key: self._copied(one, line, path, depth + 1) for key, one in value.items()}
        elif isinstance(value, list):
            value = [self._copied(one, line, path, depth + 1) for one in value]
        return replace(node, value=value)

    def _line(self, event: Any) -> int | None:
        return int(event.start_mark.line) + 1 if self.lines else None


def tree_of_value(value: Any, source: str) -> tuple[Node, list[ErrorLine]]:
    """The tree of a Python value, and the errors that do not stop the reading.

    Valid are mappings with text for keys, lists, tuples, arrays, text, numbers, bools, None and
    paths. Raises InputError for values that are nested too deep, in themselves, or too many.
    `source` is what errors are reported against; there are no lines.
    """
    builder = _Builder(source)
    return builder.node(value, ()), builder.errors


class _Builder(_Tree):
    """Builds nodes from Python values."""

    def node(self, value: Any, path: Path) -> Node:
        """The node of a value at `path`."""
        self.count(None, path)
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        elif isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, Mapping):
            entries: dict[str, Node] = {}
            for key, inner in value.items():
                name = str(key) if type(key) is int else key  # the key 5 is text in a file
                if not isinstance(name, str) or name in entries:
                    where = (*path, name) if isinstance(name, str) else path
                    self.note(None, where, f"the key {shorten(key)}", "unique text for each key")
                else:
                    entries[name] = self.node(inner, (*path, name))
            return Node(entries, self.source, None)
        if isinstance(value, list | tuple):
            items = [self.node(item, (*path, index)) for index, item in enumerate(value)]
            return Node(items, self.source, None)
        if value is not None and not isinstance(value, bool | int | float | str):
            expected = "text, a number, true or false, None, a list or a mapping"
            self.note(None, path, f"an object of type {type(value).__name__}", expected)
            value = None
        elif isinstance(value, str) and _SURROGATE.search(value):
            self.note(None, path, shorten(value), "text that UTF-8 can encode")
        text = "" if value is None else str(value)
        return Node(value, self.source, None, text.lower() if isinstance(value, bool) else text)


def located(root: Node, error: ErrorLine) -> ErrorLine:
    """The error with the file and line, or the option, of its field."""
    steps = error.field.split(".")
    node = nearest(root, tuple(int(step) if step.isdecimal() else step for step in steps))
    return error if node is root else replace(error, file=node.source, line=node.line)
