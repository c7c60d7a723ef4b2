"""Reports as one self-contained HTML page: text, tables, interactive charts, choices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from grid.lab.report.picture import CONFIG, PICTURES, Column, Picture, colours, plain, script
from grid.model.errors import input_error
from grid.results.run_folder import REPORT, SWEEP_FILE, check_file, write_file

_HERE = Path(__file__).parent
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

    @property
    def are_words(self) -> list[bool]:
        """Whether each column but the first has words, which are aligned to the left."""
        return [
            place > 0
            and not self.prose
            and (place < self.keys or not all(_FIGURE.fullmatch(row[place]) for row in self.rows))
            for place in range(len(self.headers))
        ]


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

    @property
    def groups(self) -> list[tuple[str, list[Block]]]:
        """The blocks; neighbouring charts, and neighbouring choices, are in one element."""
        names = {Picture: "pictures", Choice: "choices"}
        found = groupby(self.blocks, key=lambda block: names.get(type(block), ""))
        return [(name, list(blocks)) for name, blocks in found]


def html_page(title: str, introduction: Sequence[str], every: Sequence[Section]) -> str:
    """The page. All texts are plain: markup in them is escaped."""
    sections = [section for section in every if section.blocks]
    pictures = [one for section in sections for one in section.blocks if isinstance(one, Picture)]
    tables = {
        name: {column: _packed(values) for column, values in columns.items()}
        for one in pictures
        for name, columns in one.tables.items()
    }
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined
    )
    environment.policies["json.dumps_kwargs"] = {
        "ensure_ascii": False, "separators": (",", ":"), "allow_nan": False,
    }  # fmt: skip
    environment.filters["kind"] = lambda block: type(block).__name__
    # Keys such as plan_seconds.cs2.mean may break after each word.
    environment.filters["breakable"] = lambda text: Markup(
        re.sub(r"[._](?=\w)", r"\g<0><wbr>", str(escape(text)))
    )
    return environment.get_template("page.html").render(
        title=title, introduction=introduction, sections=sections, tables=tables, config=CONFIG,
        style=f"{colours()}\n{(_HERE / 'page.css').read_text(encoding='utf-8')}",
        vega=script() if pictures else "", script=(_HERE / "page.js").read_text(encoding="utf-8"),
    )  # fmt: skip


def _packed(values: Column) -> Any:
    """A column for JSON: numbers, or each different text once and their indices."""
    listed = plain(values)
    if not listed or not isinstance(listed[0], str):
        return listed
    places = {text: place for place, text in enumerate(dict.fromkeys(listed))}
    return {"of": list(places), "at": [places[text] for text in listed]}


# Writing


def write_report(folder: Path, page: Path | None = None) -> Path:
    """Write the report of the run or sweep in `folder`, and return its path.

    The default page is `report.html` in `folder`. Charts are also written into the folder
    `pictures` next to the page, as PNG and SVG. Raises InputError.
    """
    page = folder / REPORT if page is None else page
    try:
        is_sweep = (folder / SWEEP_FILE).is_file()
        if not is_sweep and not (folder / "manifest.json").is_file():
            found = "a folder or file with other contents" if folder.exists() else "no such folder"
            raise input_error("", found, "the folder of a run or a sweep", str(folder))
        check_file(page, "--out", ".html", ".htm")
    except OSError as error:
        found = error.strerror or str(error)
        raise input_error("", found, "a valid path", str(folder)) from None
    with consistent(folder):
        if is_sweep:
            from grid.lab.report.sweep_page import write_sweep_page

            write_sweep_page(folder, page)
        else:
            from grid.lab.report.run_page import write_run_page

            write_run_page(folder, page)
    return page


@contextmanager
def consistent(folder: Path) -> Iterator[None]:
    """Raises InputError for files that are readable one by one, but do not fit together."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
            pa.ArrowException) as error:  # fmt: skip
        found = f"inconsistent files ({type(error).__name__})"
        expected = "an unmodified run or sweep"
        raise input_error("", found, expected, str(folder)) from error


def save_page(
    page: Path, title: str, introduction: Sequence[str], every: Sequence[Section]
) -> None:
    """Write the page, and its charts as files into `pictures` next to it."""
    text = html_page(title, introduction, every)
    charts = [one for section in every for one in section.blocks if isinstance(one, Picture)]
    files = {page.parent / PICTURES / name: data for one in charts
             for name, data in one.files().items()}  # fmt: skip
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, data)
    write_file(page.resolve(), text.encode())
