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
MAX_NUMBER_LENGTH = 40
MERGE = "<<"

Scalar = str | int | float | bool | None

_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# The library scans all directives quadratically.
_TAG_DIRECTIVE = re.compile("(?:^|[\r\n\x85\u2028\u2029])\ufeff*%TAG")
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
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("a finite number")
    is_integer = _INTEGER.fullmatch(text)
    if not is_integer and not _FLOAT.fullmatch(text):
        return text
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(f"a number of at most {MAX_NUMBER_LENGTH} characters")
    if _LEADING_ZERO.match(text):
        raise ValueError("a number without leading zeros, or text in quotes")
    if is_integer:
        return int(text, 0)
    number = float(text)
    if math.isinf(number):
        raise ValueError("a smaller number")
    # `1e3` is valid wherever an integer is.
    return int(number) if "." not in text and number.is_integer() else number


def read_tree(text: str, source: str, *, lines: bool = True) -> tuple[Node, list[ErrorLine]]:
    """The only document in `text`, and the errors that do not stop the reading.

    Raises InputError for broken YAML and for documents that are too deep or too large. Without
    `lines`, nodes have none, for text that is no file.
    """
    reader = _Reader(text, source, lines)
    try:
        return reader.document(), reader.errors
    except yaml.YAMLError as error:
        raise InputError([*reader.errors, reader.broken(error)]) from None


class _Tree:
    """What building a tree counts and reports."""

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
            self.stop(line, path, "values nested too deep", f"at most {MAX_DEPTH} levels")


class _Reader(_Tree):
    """Builds nodes from the library's events.

    Events come from an iterator without recursion. The library's own loaders recurse, and the one
    in C crashes on brackets that nest 30,000 deep.
    """

    def __init__(self, text: str, source: str, lines: bool) -> None:
        super().__init__(source)
        self.text = text
        self.lines = lines
        self.events: Iterator[Any] = iter(())
        self.anchors: dict[str, Node] = {}

    def document(self) -> Node:
        if directive := _TAG_DIRECTIVE.search(self.text):
            line = self.text[: directive.end()].count("\n") + 1 if self.lines else None
            self.stop(line, (), "a %TAG directive", "YAML without directives")
        if _SURROGATE.search(self.text):
            self.stop(None, (), ascii(self.text)[:80], "UTF-8")
        self.events = iter(yaml.parse(self.text, Loader=yaml.CSafeLoader))
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
        self.count(line, path)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                found = shorten(f"the alias *{event.anchor}")
                self.stop(line, path, found, "an alias of an anchor above it")
            return self._copied(self.anchors[event.anchor], line, path)
        if event.tag is not None:
            self.note(line, path, f"the tag {shorten(event.tag)}", "a value without a tag")
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            items: list[Node] = []
            node = Node(items, self.source, line)
            while not isinstance(event_inside := next(self.events), yaml.SequenceEndEvent):
                items.append(self._node(event_inside, (*path, len(items))))
        else:
            node = Node(self._mapping(path), self.source, line)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _scalar(self, event: Any, path: Path) -> Node:
        text = event.value
        node = Node(text, self.source, self._line(event), text)
        if event.implicit[0] and event.tag is None:
            try:
                node.value = resolve(text)
            except ValueError as error:
                not_finite = _NOT_FINITE.fullmatch(text)
                found = repr(float(text.replace(".", ""))) if not_finite else shorten(text)
                self.note(node.line, path, found, str(error))
        return node

    def _mapping(self, path: Path) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        merged: list[Node] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = self._line(event)
            if not isinstance(event, yaml.ScalarEvent):
                self.stop(line, path, "a key that is not text", "text for a key")
            key = event.value
            inner = (*path, key)
            self.count(line, inner)
            entry = self._node(next(self.events), inner)
            if key == MERGE and event.implicit[0]:
                # The first ones take precedence.
                mappings = entry.value if isinstance(entry.value, list) else [entry]
                if all(isinstance(one.value, dict) for one in mappings):
                    merged += mappings
                else:
                    expected = "a mapping, or a list of mappings, to merge"
                    self.note(line, inner, entry.found(), expected)
                continue
            entry.line = line
            if key in entries:
                first = entries[key].line
                where = "" if first is None else f", first on line {first}"
                self.note(line, inner, "the key again", f"each key once{where}")
            entries.setdefault(key, entry)
        for other in merged:
            assert isinstance(other.value, dict)
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
        return Node(value, node.source, node.line, node.text)

    def _line(self, event: Any) -> int | None:
        return int(event.start_mark.line) + 1 if self.lines else None

    def broken(self, error: yaml.YAMLError) -> ErrorLine:
        """The error for text that is no YAML."""
        if not isinstance(error, yaml.MarkedYAMLError):
            position, line = getattr(error, "position", None), None
            if isinstance(position, int) and self.lines:
                line = self.text.encode()[:position].count(b"\n") + 1
            return ErrorLine(self.source, line, "", "a control character", "text")
        problem, context = str(error.problem), str(error.context)
        mark = error.problem_mark or error.context_mark
        found, expected = f"broken YAML ({problem})", "YAML"
        # An unclosed quote or bracket is reported at its beginning, not at the end of the file.
        if "quoted scalar" in context and "end of stream" in problem:
            mark = error.context_mark
            found, expected = "a quote that is never closed", "its end"
        elif "flow" in context and problem.startswith("did not find expected"):
            mark = error.context_mark
            found = f"a broken list or mapping in brackets ({problem})"
            if re.search(r"[^\"']\$\{", self._text_of(mark)):
                expected = 'YAML: in brackets, a parameter has quotes, as "${ttl}"'
        elif re.match(r" *\t", self._text_of(mark)):
            found, expected = "a tab at the start of a line", "spaces"
        line = mark.line + 1 if mark is not None and self.lines else None
        return ErrorLine(self.source, line, "", found, expected)

    def _text_of(self, mark: Any) -> str:
        """The line of a mark; empty if it is behind the last one."""
        lines = self.text.split("\n")
        return lines[mark.line] if mark is not None and mark.line < len(lines) else ""


# Python values


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
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, Mapping):
            return Node(self._mapping(value, path), self.source, None)
        if isinstance(value, list | tuple):
            items = [self.node(item, (*path, index)) for index, item in enumerate(value)]
            return Node(items, self.source, None)
        try:
            plain = _plain(value)
        except ValueError as error:
            plain, expected = error.args
            self.note(None, path, plain, expected)
        text = "" if plain is None else str(plain)
        return Node(plain, self.source, None, text.lower() if isinstance(plain, bool) else text)

    def _mapping(self, value: Mapping[Any, Any], path: Path) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        for key, inner in value.items():
            # The key 5 is text in a file.
            is_number = type(key) is int and abs(key) < 10**MAX_NUMBER_LENGTH
            if not isinstance(key, str) and not is_number:
                self.note(None, path, f"the key {shorten(key)}", "text for a key")
            elif str(key) in entries:
                self.note(None, (*path, str(key)), "the key again", "each key once")
            else:
                entries[str(key)] = self.node(inner, (*path, str(key)))
        return entries


def _plain(value: Any) -> Scalar:
    """`value` as a plain type of Python. Raises ValueError(found, expected)."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _SURROGATE.search(value):
            raise ValueError(shorten(value), "text that UTF-8 can encode")
        return str.__str__(value)
    if isinstance(value, int):
        if abs(value) >= 10**MAX_NUMBER_LENGTH:
            expected = f"a number of at most {MAX_NUMBER_LENGTH} characters"
            raise ValueError(shorten(value), expected)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(repr(float(value)), "a finite number")
        return float(value)
    expected = "text, a number, true or false, None, a list or a mapping"
    raise ValueError(f"an object of type {type(value).__name__}", expected)


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioLines:
    """The tree of a scenario, in the process that read it; None in others."""

    root: Node | None = None

    def __eq__(self, other: object) -> bool:
        """Equality of scenarios does not depend on their lines."""
        return isinstance(other, ScenarioLines)

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> Any:
        """Without the tree, which is large; a sweep sends each of its scenarios."""
        return ScenarioLines, ()

    def of(self, error: ErrorLine) -> ErrorLine:
        """The error with the file and line, or the option, of its field."""
        if self.root is None:
            return error
        steps = error.field.split(".")
        path = tuple(int(step) if step.isdecimal() else step for step in steps)
        node = nearest(self.root, path)
        return error if node is self.root else replace(error, file=node.source, line=node.line)
