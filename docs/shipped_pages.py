"""The page on the scenarios and experiments that come with the emulator, from their files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from key_words import MADE

from grid.config.shipped import Shipped, all_shipped

ROOT = Path(__file__).parents[1]
LEAD = """These are the introductory comments of the files, with their assumptions and parameters.
`grid init NAME [DIR]` copies a file to a folder. `--set NAME=VALUE` changes a parameter, and `--set
KEY=VALUE` any [key](scenario.md) by its path. The generators of the papers' jobs and machines are
described below the scenarios. PU, CS2, C07, EG and GM are the [papers](../papers.md). With
`--in-process`, a run does not use Ray."""
_QUOTED = re.compile(r"grid/workload/\w+\.py")


def shipped_page() -> str:
    """Every scenario with its head, its parameters and its command; every experiment by a line."""
    lines = [f"{MADE}# Shipped scenarios\n\n{LEAD}\n"]
    shipped = all_shipped()
    for one in shipped:
        if not one.is_experiment:
            lines += _scenario(one)
    lines.append("(shipped-drawn)=\n## Generators of the papers\n")
    texts = [one.path.read_text(encoding="utf-8") for one in shipped]
    for path in sorted({path for text in texts for path in _quoted(text)}):
        lines += _drawn(path)
    lines.append("(shipped-experiments)=\n## Experiments\n\n`grid sweep NAME` runs one.\n")
    lines += [f"`{one.name}`\n: {escaped(one.about)}\n" for one in shipped if one.is_experiment]
    return "\n".join(lines)


def _scenario(one: Shipped) -> Iterator[str]:
    text = one.path.read_text(encoding="utf-8")
    head = head_of(text)
    parameters: dict[str, Any] = yaml.safe_load(text).get("parameters", {})
    yield f"(shipped-{one.name})=\n## {one.name}\n"
    log = " --set trace=LOG.swf.gz" if "trace" in parameters else ""
    yield f"```sh\ngrid run {one.name}{log}\n```\n"
    yield from as_markdown(head)
    yield ""
    if parameters:
        yield "| parameter | default |\n| --- | --- |"
        yield from (f"| `{name}` | `{_written(value)}` |" for name, value in parameters.items())
        yield ""
    quoted = ", ".join(f"[{path}](#{_anchor(path)})" for path in _quoted(text))
    if quoted:
        yield f"Generator: {quoted}.\n"


def _drawn(path: str) -> Iterator[str]:
    """What a generator of ours says of itself at its head."""
    said = ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    yield f"({_anchor(path)})=\n### {path}\n"
    yield from as_markdown((said or "").splitlines())
    yield ""


def _quoted(text: str) -> list[str]:
    return list(dict.fromkeys(_QUOTED.findall("\n".join(head_of(text)))))


def _anchor(path: str) -> str:
    return f"drawn-{Path(path).stem}".replace("_", "-")


def head_of(text: str) -> list[str]:
    """The lines of the comment that a file begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").removeprefix(" ").rstrip())
    return lines


def as_markdown(lines: list[str]) -> Iterator[str]:
    """Paragraphs and lists as they are; lines that are indented outside of a list as a block."""
    in_list = in_block = False
    for place, line in enumerate(lines):
        indented = line.startswith("  ") and not in_list
        after = next((one for one in lines[place:] if one), "")
        indented |= in_block and not line and after.startswith("  ")
        if indented != in_block:
            yield "```\n" if in_block else "\n```text"
            in_block = indented
        if in_block:
            yield line.removeprefix("  ")
            continue
        goes_on = in_list and (not line or line.startswith(("- ", "  ")))
        lists = goes_on or line.startswith("- ")
        if lists != in_list:
            yield ""
        in_list = lists
        yield escaped(line)
    if in_block:
        yield "```"


def escaped(text: str) -> str:
    """Text in which a star and a bracket stand for themselves, but for what is code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*<\[\]])", r"\\\1", part) for part in parts
    )


def _written(value: Any) -> str:
    """A value as a file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shipped_entries() -> Iterator[tuple[str, str]]:
    """Each scenario and experiment with its sentence."""
    for one in all_shipped():
        yield one.name, one.about
