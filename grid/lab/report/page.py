"""Reports as one self-contained HTML page: text, tables, interactive charts, choices."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from grid.lab.report.picture import (
    CONFIG,
    PICTURES,
    Column,
    Picture,
    colours,
    plain,
    script,
)
from grid.model.errors import InputError, input_error
from grid.results.run_folder import REPORT, SWEEP_FILE, check_file

_HERE = Path(__file__).parent
NO_SCRIPT = "This browser runs no scripts; the charts are files in the folder pictures."
_FIGURE = re.compile(r"–?|-?[\d,]*\.?\d+( .*)?")
"""A cell with a number, maybe with its interval or a remark, or an empty one."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; with `prose` its cells are sentences, else numbers that can be sorted.

    `hints` explain headers and first cells, next to the pointer. The first `keys` columns name
    the row.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    prose: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)
    keys: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a file, folded under a title."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A list of values and their labels to choose from; the first is chosen.

    Charts with a parameter named `signal` follow it, and so does every `When`.
    """

    signal: str
    label: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class When:
    """A block that is shown while the choice `signal` is `value`."""

    signal: str
    value: str
    block: str | Table | When


@dataclass(frozen=True, slots=True)
class Folded:
    """Text and tables folded under a title; printing unfolds them."""

    title: str
    blocks: Sequence[str | Table]


Block = str | Table | Source | Picture | Choice | When | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its blocks; without blocks the section is left out."""

    title: str
    blocks: Sequence[Block] = ()


def html_page(title: str, introduction: Sequence[str], every: Sequence[Section]) -> str:
    """The page. All texts are plain: markup in them is escaped."""
    sections = [section for section in every if section.blocks]
    pictures = [one for section in sections for one in section.blocks if isinstance(one, Picture)]
    style = f"{colours()}\n{(_HERE / 'page.css').read_text(encoding='utf-8')}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',  # Else browsers request one from a server.
        f'<title>{escape(title)}</title><style id="style">{style}</style></head><body>',
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(text)}</p>" for text in introduction),
    ]
    if len(sections) > 3:
        links = (f'<a href="#part-{n}">{escape(one.title)}</a>' for n, one in enumerate(sections))
        parts.append(f"<nav>{''.join(links)}</nav>")
    if pictures:
        parts.append(f"<noscript><p>{NO_SCRIPT}</p></noscript>")
    for number, section in enumerate(sections):
        parts.append(f'<section id="part-{number}"><h2>{escape(section.title)}</h2>')
        parts += [*_blocks(section.blocks), "</section>"]
    if pictures:
        tables = {
            name: {column: _packed(values) for column, values in columns.items()}
            for one in pictures
            for name, columns in one.tables.items()
        }
        parts.append(f'<script type="text/javascript">{script()}</script>')
        parts += [_json(tables, 'id="tables"'), _json(CONFIG, 'id="config"')]
    own = (_HERE / "page.js").read_text(encoding="utf-8")
    parts.append(f'<script type="text/javascript">{own}</script></body></html>')
    return "\n".join([*parts, ""])


def _packed(values: Column) -> Any:
    """A column for JSON: numbers, or each different text once and their indices."""
    listed = plain(values)
    if not listed or not isinstance(listed[0], str):
        return listed
    places = {text: place for place, text in enumerate(dict.fromkeys(listed))}
    return {"of": list(places), "at": [places[text] for text in listed]}


def _json(content: Any, attributes: str = "") -> str:
    """Data for a script, without characters that could end the element."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c")
    return f'<script type="application/json" {attributes}>{text}</script>'


def _blocks(blocks: Sequence[Block]) -> list[str]:
    """Neighbouring charts, and neighbouring choices, are in one element."""
    parts: list[str] = []
    group = ""
    for block in blocks:
        needed = {Picture: "pictures", Choice: "choices"}.get(type(block), "")
        if needed != group:
            parts += ["</div>"] * bool(group) + [f'<div class="{needed}">'] * bool(needed)
            group = needed
        parts.append(_block(block))
    return [*parts, "</div>"] if group else parts


def _block(block: Block) -> str:  # noqa: PLR0911
    match block:
        case Picture():
            return _figure(block)
        case Table():
            return _table(block)
        case Choice():
            return _choice(block)
        case Source(title, text):
            return _details(title, f"<pre>{escape(text)}</pre>")
        case Folded(title, inner):
            return _details(title, "".join(map(_block, inner)))
        case When(signal, value, inner_block):
            condition = escape(json.dumps({signal: value}))
            return f'<div data-when="{condition}" hidden>{_block(inner_block)}</div>'
        case str():
            return f"<p>{escape(block)}</p>"


def _details(title: str, inner: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"


def _figure(picture: Picture) -> str:
    caption = escape(picture.caption)
    wide = ' class="wide"' if picture.is_wide else ""
    tall = " tall" if picture.is_tall else ""
    buttons = "".join(
        f' <button type="button" class="save" data-save="{kind}">{kind.upper()}</button>'
        for kind in ("svg", "pdf")
    )
    return (
        f'<figure data-chart="{escape(picture.name)}"{wide}>'
        f'<div class="chart{tall}" role="img" aria-label="{caption}"></div>'
        f"{_json(picture.specification)}<figcaption>{caption}{buttons}</figcaption></figure>"
    )


def _choice(choice: Choice) -> str:
    options = "".join(
        f'<option value="{escape(value)}">{escape(text)}</option>'
        for value, text in choice.options.items()
    )
    return (
        f"<label><span>{escape(choice.label)}</span><select "
        f'data-signal="{escape(choice.signal)}" autocomplete="off">{options}</select></label>'
    )


def _table(table: Table) -> str:
    def is_text(place: int) -> bool:
        is_key = place < table.keys
        return is_key or not all(_FIGURE.fullmatch(row[place]) for row in table.rows)

    sides = [
        ' class="words"' if place and not table.prose and is_text(place) else ""
        for place in range(len(table.headers))
    ]

    def hint(text: str) -> str:
        meaning = table.hints.get(text)
        return f' title="{escape(meaning)}"' if meaning else ""

    def cells(row: Sequence[str]) -> str:
        texts = [escape(cell) for cell in row]
        if table.prose:
            # Keys such as plan_seconds.cs2.mean may break after each word.
            texts[0] = re.sub(r"[._](?=\w)", r"\g<0><wbr>", texts[0])
        pairs = zip([f"{sides[0]}{hint(row[0])}", *sides[1:]], texts, strict=True)
        return "".join(f"<td{attributes}>{text}</td>" for attributes, text in pairs)

    head = "".join(
        f'<th scope="col"{side}{hint(text)}>{escape(text)}</th>'
        for text, side in zip(table.headers, sides, strict=True)
    )
    body = "\n".join(f"<tr>{cells(row)}</tr>" for row in table.rows)
    latex = (
        "" if table.prose else '<button type="button" class="save" data-save="tex">LaTeX</button>'
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="{"prose" if table.prose else "sorts"}" '
        f'data-keys="{table.keys}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"{latex}</div>"
    )


# Writing

NOT_FITTING = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    pa.ArrowException,
)  # fmt: skip
"""Errors from files that are readable one by one, but of another shape or of different runs."""


def write_report(folder: Path, page: Path | None = None) -> Path:
    """Write the report of the run or sweep in `folder`, and return its path.

    The default page is `report.html` in `folder`. Charts are also written into the folder
    `pictures` next to the page, as PNG and SVG. Raises InputError.
    """
    page = folder / REPORT if page is None else page
    try:
        if not folder.is_dir():
            found = "a file" if folder.exists() else "no such folder"
            raise input_error("", found, "the folder of a run or a sweep", str(folder))
        is_sweep = (folder / SWEEP_FILE).is_file()
        if not is_sweep and not (folder / "manifest.json").is_file():
            found = "a folder of something else"
            raise input_error("", found, "the folder of a run or a sweep", str(folder))
        check_file(page, "--out", ".html", ".htm")
        # Links in a folder from elsewhere must not be followed.
        for path in (folder / REPORT, page.parent / PICTURES):
            if path.is_symlink() or (path.name == PICTURES and path.is_file()):
                found = "a link" if path.is_symlink() else "a file"
                raise input_error("", found, "what a report wrote, or nothing", str(path))
    except OSError as error:
        found = error.strerror or str(error)
        raise input_error("", found, "a valid path", str(folder)) from None
    try:
        if is_sweep:
            from grid.lab.report.sweep_page import write_sweep_page

            write_sweep_page(folder, page)
        else:
            from grid.lab.report.run_page import write_run_page

            write_run_page(folder, page)
    except NOT_FITTING as error:
        raise not_fitting(folder, error) from error
    return page


def not_fitting(folder: Path, error: Exception) -> InputError:
    """The InputError for files that lead to one of NOT_FITTING."""
    found = f"files that do not fit together ({type(error).__name__})"
    return input_error("", found, "a run or a sweep as it was written", str(folder))


def save_page(
    page: Path, title: str, introduction: Sequence[str], every: Sequence[Section]
) -> None:
    """Write the page, and its charts as files into `pictures` next to it.

    All files are made before any replaces an older one, so an interruption changes nothing.
    """
    text = html_page(title, introduction, every)
    charts = [one for section in every for one in section.blocks if isinstance(one, Picture)]
    files = {page.parent / PICTURES / name: data for one in charts
             for name, data in one.files().items()}  # fmt: skip
    if page.exists() and not page.is_file():
        page.write_bytes(text.encode())  # A device or pipe cannot be replaced.
    else:
        files[page.resolve()] = text.encode()
    partial = {path: path.with_name(f".{path.name}.{os.getpid()}.partial") for path in files}
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial[path].write_bytes(data)
        for path, made in partial.items():
            made.replace(path)
    finally:
        for made in partial.values():
            with suppress(OSError):
                made.unlink()
