"""One HTML page that needs no other file: text, tables, charts that answer the pointer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from grid.lab.report.style import CONFIG, DARK, LIGHT, Column, Picture, plain, script
from grid.lab.report.terms import meaning_of_term

_HERE = Path(__file__).parent
NO_SCRIPT = "This browser runs no scripts. The charts are in the folder pictures beside this page."


_FIGURE = re.compile(r"–?|-?[\d,]*\.?\d+( .*)?")
"""A cell that is a figure, with its interval or remark if it has one, or none."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; with `prose` its cells are sentences and may break, else figures.

    `hints` are what headers and first cells mean, shown where the pointer rests on one; what
    headers mean by TERMS is, too. The first `keys` columns say what a row is of.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    prose: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)
    keys: int = 1


@dataclass(frozen=True, slots=True)
class Source:
    """Text as it stands in a file, folded away under a title."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A list to choose from: `options` are values and how they read; the first is chosen.

    Charts that have a parameter of the name `signal` follow it, as does every `When`. A page may
    have the same choice at several places.
    """

    signal: str
    label: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class When:
    """A block that is shown while the choice `signal` is `value`; in another, while both are."""

    signal: str
    value: str
    block: str | Table | When


@dataclass(frozen=True, slots=True)
class Folded:
    """Text and tables folded away under a title, which printing unfolds."""

    title: str
    blocks: Sequence[str | Table]


Block = str | Table | Source | Picture | Choice | When | Folded


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it: paragraphs, tables, files, charts, choices."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


def html_page(title: str, introduction: str, sections: Sequence[Section]) -> str:
    """The whole page. All texts are plain: what is markup in them is shown as it is written."""
    filled = [section for section in sections if section.blocks]
    pictures = [one for section in filled for one in section.blocks if isinstance(one, Picture)]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        # A page that has an icon does not ask a server for one.
        '<link rel="icon" href="data:,">',
        f'<title>{escape(title)}</title><style id="style">{_style()}</style></head><body>',
        f"<h1>{escape(title)}</h1><p>{escape(introduction)}</p>",
    ]
    if len(filled) > 3:
        links = (f'<a href="#part-{n}">{escape(one.title)}</a>' for n, one in enumerate(filled))
        parts.append(f"<nav>{''.join(links)}</nav>")
    if pictures:
        parts.append(f"<noscript><p>{NO_SCRIPT}</p></noscript>")
    for number, section in enumerate(filled):
        parts.append(f'<section id="part-{number}"><h2>{escape(section.title)}</h2>')
        parts += _blocks(section.blocks)
        parts.append("</section>")
    parts += _scripts(pictures)
    return "\n".join([*parts, "</body></html>", ""])


def _style() -> str:
    """The style sheet, after the colours."""
    return f"{colours()}\n{(_HERE / 'page.css').read_text(encoding='utf-8')}"


def colours() -> str:
    """The colours of a page as variables, on light and dark screens; paper is light."""
    light, dark = (
        ":root {" + "".join(f"--{name}:{value};" for name, value in every.items()) + "}"
        for every in (LIGHT, DARK)
    )
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}"


def _scripts(pictures: Sequence[Picture]) -> list[str]:
    """The script of the page; for charts also their data, what draws them, and how they look."""
    own = (_HERE / "page.js").read_text(encoding="utf-8")
    parts = [f'<script type="text/javascript">{own}</script>']
    if not pictures:
        return parts
    tables = {
        name: {column: _packed(values) for column, values in columns.items()}
        for one in pictures
        for name, columns in one.tables.items()
    }
    data = [_json(tables, 'id="tables"'), _json(CONFIG, 'id="config"')]
    return [f'<script type="text/javascript">{_drawing()}</script>', *data, *parts]


@cache
def _drawing() -> str:
    return script()


def _packed(values: Column) -> Any:
    """A column for JSON; of texts each one once, and the place of each value among them."""
    listed = plain(values)
    if not listed or not isinstance(listed[0], str):
        return listed
    places = {text: place for place, text in enumerate(dict.fromkeys(listed))}
    return {"of": list(places), "at": [places[text] for text in listed]}


def _json(content: Any, attributes: str = "") -> str:
    """Data for a script; it holds nothing that could end the element."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c")
    return f'<script type="application/json" {attributes}>{text}</script>'


def _blocks(blocks: Sequence[Block]) -> list[str]:
    parts: list[str] = []
    group = ""
    for block in blocks:
        needed = {Picture: "pictures", Choice: "choices"}.get(type(block), "")
        if needed != group:
            parts += ["</div>"] * bool(group) + [f'<div class="{needed}">'] * bool(needed)
            group = needed
        parts.append(_block(block))
    return [*parts, "</div>"] if group else parts


def _block(block: Block) -> str:
    if isinstance(block, Picture):
        return _figure(block)
    if isinstance(block, Source | Folded):
        return _details(block)
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Choice):
        return _choice(block)
    if isinstance(block, When):
        wanted = escape(json.dumps({block.signal: block.value}), quote=True)
        return f'<div data-when="{wanted}" hidden>{_block(block.block)}</div>'
    return f"<p>{escape(block)}</p>"


def _details(block: Source | Folded) -> str:
    summary = f"<summary>{escape(block.title)}</summary>"
    if isinstance(block, Source):
        return f"<details>{summary}<pre>{escape(block.text)}</pre></details>"
    return f'<details class="folded">{summary}{"".join(map(_block, block.blocks))}</details>'


def _figure(picture: Picture) -> str:
    caption = escape(picture.caption, quote=True)
    wide = ' class="wide"' if picture.is_wide else ""
    tall = " tall" if picture.is_tall else ""
    return (
        f'<figure data-chart="{escape(picture.name, quote=True)}"{wide}>'
        f'<div class="chart{tall}" role="img" aria-label="{caption}"></div>'
        f"{_json(picture.specification)}<figcaption>{caption} "
        '<button type="button" class="save">Save as SVG</button></figcaption></figure>'
    )


def _choice(choice: Choice) -> str:
    options = "".join(
        f'<option value="{escape(value, quote=True)}">{escape(text)}</option>'
        for value, text in choice.options.items()
    )
    signal = escape(choice.signal, quote=True)
    return (
        f"<label><span>{escape(choice.label)}</span>"
        f'<select data-signal="{signal}" autocomplete="off">{options}</select></label>'
    )


def _side(table: Table, place: int) -> str:
    """Words begin at one place, as first columns and sentences always do, and so does what says
    of what a row is; figures end at one place."""
    if place == 0 or table.prose:
        return ""
    is_key = place < table.keys
    is_words = is_key or not all(_FIGURE.fullmatch(row[place]) for row in table.rows)
    return ' class="words"' if is_words else ""


def _table(table: Table) -> str:
    sides = [_side(table, place) for place in range(len(table.headers))]

    def header(text: str, side: str) -> str:
        hint = table.hints.get(text) or meaning_of_term(text)
        titled = f' title="{escape(hint, quote=True)}"' if hint else ""
        return f'<th scope="col"{side}{titled}>{escape(text)}</th>'

    def cells(row: Sequence[str]) -> str:
        texts = [escape(cell) for cell in row]
        if table.prose:
            # A key such as plan_seconds.cs2.mean is broken where its words end.
            texts[0] = re.sub(r"[._](?=\w)", r"\g<0><wbr>", texts[0])
        hint = table.hints.get(row[0])
        titled = f' title="{escape(hint, quote=True)}"' if hint else ""
        pairs = zip([f"{sides[0]}{titled}", *sides[1:]], texts, strict=True)
        return "".join(f"<td{attributes}>{text}</td>" for attributes, text in pairs)

    head = "".join(map(header, table.headers, sides))
    body = "\n".join(f"<tr>{cells(row)}</tr>" for row in table.rows)
    kind = "prose" if table.prose else "sorts"
    return (
        f'<div class="scroll" tabindex="0"><table class="{kind}" data-keys="{table.keys}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
