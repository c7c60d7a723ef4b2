"""One HTML page that needs no other file: text, tables, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from grid.report.style import Picture

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 78rem; font: 1rem/1.5 system-ui, sans-serif;
       color: #1a1a1a; background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid #ccc; }
.pictures { display: grid; gap: 1.5rem; align-items: start;
            grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); }
figure { margin: 0; }
figure img { display: block; width: 100%; max-width: 36rem; height: auto; }
figcaption { font-size: .9rem; color: #444; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; vertical-align: top;
         overflow-wrap: normal; border-bottom: 1px solid #e3e3e3; }
th { font-weight: 600; }
th:first-child, td:first-child { text-align: left; }
table.prose td, table.prose th { text-align: left; white-space: normal; min-width: 5rem; }
pre { font-size: .85rem; overflow-x: auto; padding: .75rem; background: #f5f5f5;
      overflow-wrap: normal; }
summary { cursor: pointer; }
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; with `prose` its cells are sentences and may break, else figures."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    prose: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Text as it stands in a file, folded away under a title."""

    title: str
    text: str


Block = str | Table | Source | Picture


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it: paragraphs, tables, files, pictures."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


def html_page(title: str, introduction: str, sections: Sequence[Section]) -> str:
    """The whole page. All texts are plain: what is markup in them is shown as it is written."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # A page that has an icon does not ask a server for one.
        '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><p>{escape(introduction)}</p>",
    ]
    for section in sections:
        if section.blocks:
            parts.append(f"<section><h2>{escape(section.title)}</h2>")
            parts += _blocks(section.blocks)
            parts.append("</section>")
    return "\n".join([*parts, "</body></html>", ""])


def _blocks(blocks: Sequence[Block]) -> list[str]:
    parts: list[str] = []
    are_pictures = False
    for block in blocks:
        if isinstance(block, Picture) != are_pictures:
            are_pictures = not are_pictures
            parts.append('<div class="pictures">' if are_pictures else "</div>")
        parts.append(_block(block))
    if are_pictures:
        parts.append("</div>")
    return parts


def _block(block: Block) -> str:
    if isinstance(block, Picture):
        caption = escape(block.caption)
        image = f'<img src="{block.address}" alt="{escape(block.caption, quote=True)}">'
        return f"<figure>{image}<figcaption>{caption}</figcaption></figure>"
    if isinstance(block, Source):
        summary = f"<summary>{escape(block.title)}</summary>"
        return f"<details>{summary}<pre>{escape(block.text)}</pre></details>"
    if isinstance(block, Table):
        return _table(block)
    return f"<p>{escape(block)}</p>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in table.headers)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    kind = ' class="prose"' if table.prose else ""
    return (
        f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
