"""Pages in Markdown, from the files in `templates`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def markdown(template: str, **values: Any) -> str:
    """The page made from a template of `templates`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(f"{template}.md").render(table=table, **values)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, whose cells may contain any character but a line end."""
    every = [headers, ["---"] * len(headers), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in every
    )
