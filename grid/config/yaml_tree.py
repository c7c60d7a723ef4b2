"""YAML text as a tree that knows the line of every value, and refuses what is no plain data.

Scalars follow YAML 1.2's core schema, not the 1.1 that the library resolves: `1e3` is a number,
`1:30`, `no` and `1_000` are text. `010` is refused, because 1.1 reads 8 there and 1.2 reads 10.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import yaml  # type: ignore[import-untyped]

from grid.model.errors import ErrorLine, InputError, Path, dotted, shorten

MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_NUMBER_LENGTH = 40
WRITTEN_OUT, LARGEST = 10**15, int(sys.float_info.max)
"""Up to the first, whole numbers stand in messages with all their digits; the largest of floats."""

Scalar = str | int | float | bool | None

_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# One directive costs the library a look at all before it; nobody needs one in a scenario.
_TAG_DIRECTIVE = re.compile("(?:^|[\r\n\x85\u2028\u2029])\ufeff*%TAG")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(slots=True, eq=False)
class Node:
    """A value and where it stands: for the value of a key, the line of the key.

    `source` is a file, or the option that gave the value and has no lines. `text` is what was
    written for a scalar.
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
        """The value as a message shows it."""
        if isinstance(self.value, dict):
            return "a mapping" if self.value else "an empty mapping"
        if isinstance(self.value, list):
            return "a list" if self.value else "an empty list"
        if self.value is None:
            return "nothing"
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        if isinstance(self.value, int) and abs(self.value) > WRITTEN_OUT:
            # What was written as 1e300 is a whole number.
            as_float = float(min(max(self.value, -LARGEST), LARGEST))
            return shorten(as_float if as_float == self.value else self.value)
        return shorten(self.value)

    def error(self, path: Path, expected: str, found: str | None = None) -> ErrorLine:
        """The mistake that this value stands at `path`, where something else was expected."""
        return ErrorLine(
            self.source,
            self.line,
            dotted(path),
            self.found() if found is None else found,
            expected,
        )


def at(root: Node, path: Path) -> Node | None:
    """The node at `path`, if there is one."""
    node: Node | None = root
    for step in path:
        node = None if node is None else child(node, step)
    return node


def nearest(root: Node, path: Path) -> Node:
    """The node at `path`, or the last one on the way to it that exists."""
    node = root
    for step in path:
        inner = child(node, step)
        if inner is None:
            return node
        node = inner
    return node


def child(node: Node, step: str | int) -> Node | None:
    """The child of `node` under the key or index `step`, if there is one."""
    if isinstance(node.value, dict):
        return node.value.get(str(step))
    if isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    return None


def resolve(text: str) -> Scalar:
    """The value of a plain scalar. Raises ValueError, saying what was expected instead."""
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
    if number in (float("inf"), float("-inf")):
        raise ValueError("a smaller number")
    # `1e3` counts machines as well as 1000 does.
    return int(number) if "." not in text and number.is_integer() else number


def _shown(text: str) -> str:
    """A scalar that is no value, as a message shows it; what is not finite as Python writes it."""
    if _NOT_FINITE.fullmatch(text):
        return repr(float(text.replace(".", "")))
    return shorten(text)


def read_tree(text: str, source: str, *, lines: bool = True) -> tuple[Node, list[ErrorLine]]:
    """The only document in `text`, and what is wrong with it but does not stop the reading.

    Raises InputError where reading cannot go on: broken YAML, too deep, too large. Without
    `lines`, nodes have none, for text that is no file.
    """
    reader = _Reader(text, source, lines)
    try:
        return reader.document(), reader.errors
    except yaml.YAMLError as error:
        raise InputError([*reader.errors, reader.broken(error)]) from None


@dataclass(slots=True, eq=False)
class _Reader:
    """Builds nodes from the library's events.

    Events come from an iterator without recursion, while the library's own loaders recurse, and
    the one in C crashes where brackets nest 30,000 deep.
    """

    text: str
    source: str
    lines: bool
    errors: list[ErrorLine] = field(default_factory=list)
    events: Iterator[Any] = field(init=False)
    anchors: dict[str, Node] = field(default_factory=dict)
    nodes: int = 0

    def document(self) -> Node:
        if directive := _TAG_DIRECTIVE.search(self.text):
            line = self.text[: directive.end()].count("\n") + 1 if self.lines else None
            found = "a %TAG directive"
            raise InputError([ErrorLine(self.source, line, "", found, "YAML without directives")])
        self.events = iter(yaml.parse(self.text, Loader=yaml.CSafeLoader))
        next(self.events)  # the start of the stream
        start = next(self.events)
        if isinstance(start, yaml.StreamEndEvent):
            self._stop(start, (), "an empty file", "a mapping")
        root = self._node(next(self.events), ())
        next(self.events)  # the end of the document
        end = next(self.events)
        if not isinstance(end, yaml.StreamEndEvent):
            self._stop(end, (), "a second document", "only one")
        return root

    def _node(self, event: Any, path: Path) -> Node:
        self._count(event, path, len(path))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        if event.tag is not None:
            self._note(event, path, f"the tag {shorten(event.tag)}", "a value without a tag")
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, path)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, path)
        else:
            node = self._mapping(event, path)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _scalar(self, event: Any, path: Path) -> Node:
        node = Node(event.value, self.source, self._line(event), event.value)
        if event.implicit[0] and event.tag is None:
            try:
                node.value = resolve(event.value)
            except ValueError as error:
                self._note(event, path, _shown(event.value), str(error))
        return node

    def _sequence(self, event: Any, path: Path) -> Node:
        items: list[Node] = []
        node = Node(items, self.source, self._line(event))
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return node

    def _mapping(self, event: Any, path: Path) -> Node:
        entries: dict[str, Node] = {}
        node = Node(entries, self.source, self._line(event))
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._stop(event, path, "a key that is no text", "text for a key")
            key = event.value
            inner = (*path, key)
            self._count(event, inner, len(inner))
            entry = self._node(next(self.events), inner)
            entry.line = self._line(event)
            if key in entries:
                first = entries[key].line
                where = "" if first is None else f", first on line {first}"
                self._note(event, inner, "the key again", f"each key once{where}")
            else:
                entries[key] = entry
        return node

    def _alias(self, event: Any, path: Path) -> Node:
        target = self.anchors.get(event.anchor)
        if target is None:
            found = f"the alias *{event.anchor}"
            self._stop(event, path, shorten(found), "an alias of an anchor above it")
        return self._copied(target, event, path, len(path))

    def _copied(self, node: Node, event: Any, path: Path, depth: int) -> Node:
        self._count(event, path, depth)
        value = node.value
        if isinstance(value, dict):
            value = {
                key: self._copied(inner, event, path, depth + 1) for key, inner in value.items()
            }
        elif isinstance(value, list):
            value = [self._copied(inner, event, path, depth + 1) for inner in value]
        return Node(value, node.source, node.line, node.text)

    def _count(self, event: Any, path: Path, depth: int) -> None:
        """Count one more node, which `event` brought."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._stop(event, path, "too many values", f"at most {MAX_NODES}, aliases expanded")
        if depth > MAX_DEPTH:
            self._stop(event, path, "values nested too deep", f"at most {MAX_DEPTH} levels")

    def _line(self, event: Any) -> int | None:
        return int(event.start_mark.line) + 1 if self.lines else None

    def _note(self, event: Any, path: Path, found: str, expected: str) -> None:
        problem = ErrorLine(self.source, self._line(event), dotted(path), found, expected)
        self.errors.append(problem)

    def _stop(self, event: Any, path: Path, found: str, expected: str) -> NoReturn:
        self._note(event, path, found, expected)
        raise InputError(self.errors)

    def broken(self, error: yaml.YAMLError) -> ErrorLine:
        """What the library says of text that is no YAML."""
        if not isinstance(error, yaml.MarkedYAMLError):
            return self._not_text(error)
        problem, context = str(error.problem), str(error.context)
        mark = error.problem_mark or error.context_mark
        found, expected = f"broken YAML ({problem})", "YAML"
        # What was opened and never closed is to be mended where it opens, not where the file ends.
        if "quoted scalar" in context and "end of stream" in problem:
            mark = error.context_mark
            found, expected = "a quote that is never closed", "its end"
        elif "flow" in context and problem.startswith("did not find expected"):
            mark = error.context_mark
            found, expected = f"a broken list or mapping in brackets ({problem})", "YAML"
            if mark is not None and re.search(r"[^\"']\$\{", self._text_of(mark.line)):
                expected = 'YAML: in brackets, a parameter stands in quotes, as "${ttl}"'
        elif mark is not None and self._has_tab(mark.line):
            found, expected = "a tab at the start of a line", "spaces"
        line = mark.line + 1 if mark is not None and self.lines else None
        return ErrorLine(self.source, line, "", found, expected)

    def _has_tab(self, index: int) -> bool:
        """Is there a tab before the first character of this line?"""
        text = self._text_of(index)
        return "\t" in text[: len(text) - len(text.lstrip())]

    def _text_of(self, index: int) -> str:
        """The line; empty where a mark is behind the last one."""
        return "".join(self.text.split("\n")[index : index + 1])

    def _not_text(self, error: yaml.YAMLError) -> ErrorLine:
        character = getattr(error, "character", None)
        position = getattr(error, "position", None)
        line = None
        if isinstance(position, int) and self.lines:
            line = self.text.encode()[:position].count(b"\n") + 1
        found = "a control character"
        if isinstance(character, int):
            found += f" (number {character})"
        return ErrorLine(self.source, line, "", found, "text")


@dataclass(frozen=True, slots=True, eq=False)
class ScenarioLines:
    """The tree of the scenario, in the process that read it. Elsewhere nothing is known."""

    root: Node | None = None

    def __eq__(self, other: object) -> bool:
        """Scenarios are equal wherever they stand."""
        return isinstance(other, ScenarioLines)

    def __hash__(self) -> int:
        return 0

    def __reduce__(self) -> Any:
        """A tree is large, and a sweep sends each of its scenarios to another process."""
        return ScenarioLines, ()

    def of(self, problem: ErrorLine) -> ErrorLine:
        """The mistake with the file and line, or the option, that its field is from."""
        if self.root is None:
            return problem
        steps = problem.field.split(".")
        path = tuple(int(step) if step.isdecimal() else step for step in steps)
        node = nearest(self.root, path)
        return problem if node is self.root else replace(problem, file=node.source, line=node.line)
