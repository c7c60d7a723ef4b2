"""How all charts look, and what a chart is: a Vega-Lite specification with its data.

Colours are those of Okabe and Ito ("Color Universal Design", 2008), lightened for dark screens;
lines also differ in dash and marker, so that no chart depends on colour. Specifications name
colours as variables of style sheets: a page changes between light and dark, and to paper, without
drawing anything again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.compiled_code import kept_text

PICTURES = "pictures"
"""The folder of a page's charts as files, beside the page."""
LIGHT = {
    "ink": "#1a1a1a", "soft": "#555555", "line": "#dddddd", "paper": "#ffffff", "faint": "#f4f4f4",
    "waiting": "#b8b8b8",
    "c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#cc79a7",
    "c4": "#d08f00", "c5": "#3f9fd6", "c6": "#000000", "c7": "#808080",
    "c8": "#00395a", "c9": "#6e3000", "c10": "#00503a", "c11": "#7a3d62",
    "c12": "#6b4900", "c13": "#1f5f85", "c14": "#7b4fb5", "c15": "#b03060",
}  # fmt: skip
DARK = {
    "ink": "#e8e8e8", "soft": "#b0b0b0", "line": "#3c3c3c", "paper": "#161616", "faint": "#242424",
    "waiting": "#6a6a6a",
    "c0": "#4ba3e3", "c1": "#f08a3c", "c2": "#2fc49a", "c3": "#e39fc5",
    "c4": "#f0b83c", "c5": "#8fd0f5", "c6": "#ffffff", "c7": "#a0a0a0",
    "c8": "#a9d4f5", "c9": "#f8c39a", "c10": "#a0e8d0", "c11": "#f5d3e5",
    "c12": "#f9e0a5", "c13": "#c9e9fb", "c14": "#b79be0", "c15": "#e06c8c",
}  # fmt: skip
COLOURS = tuple(f"var(--c{number})" for number in range(16))
"""The second eight are other shades of the first: darker, on dark screens lighter; two differ."""
SHADES = 8
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 2, 1, 2], [1, 0], [6, 3])
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
    "triangle-left",
)  # fmt: skip
OF_CHOSEN, OF_ALL = 6, 7
"""The places of the colours, dashes and markers of what the reader chose, and of all together."""

WIDTH, HEIGHT = 520, 260
PNG_SCALE = 2.0
VERSION = "6.4"
"""Of Vega-Lite."""
DIGITS = 6
"""So many digits of a figure go into a page."""
FIGURE = f",.{DIGITS}~r"
"""How charts write figures: never with an exponent."""

Specification = Mapping[str, Any]
Column = Sequence[Any] | npt.NDArray[Any]
Columns = Mapping[str, Column]
"""A table for charts: the values of each column, all of one length."""

CONFIG: Mapping[str, Any] = {
    "font": "sans-serif",
    "background": None,
    "view": {"stroke": None, "continuousHeight": HEIGHT, "continuousWidth": WIDTH},
    "axis": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--ink)",
        "gridColor": "var(--line)",
        "domainColor": "var(--soft)",
        "tickColor": "var(--soft)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 150,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
    },
    "legend": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--ink)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 140,
        "orient": "bottom",
        "columns": 3,
        "symbolStrokeWidth": 2,
    },
    "title": {
        "color": "var(--ink)",
        "anchor": "start",
        "frame": "group",
        "fontSize": 12.5,
        "fontWeight": "normal",
        "offset": 8,
        "subtitleColor": "var(--soft)",
        "subtitleFontSize": 12,
    },
    "header": {"labelColor": "var(--ink)", "titleColor": "var(--ink)", "labelFontSize": 12},
    "text": {"color": "var(--ink)", "fontSize": 11},
    "range": {"category": list(COLOURS), "symbol": list(SHAPES)},
    "line": {"strokeWidth": 1.8},
    "point": {"filled": True, "size": 55},
    "rect": {"stroke": None},
}


LETTER, SYMBOL = 6.6, 25
"""Pixels: about the width of a letter in a legend, and of the symbol before its name."""


@dataclass(frozen=True)
class Picture:
    """A chart: its file name, what it shows, its specification, and the tables that this names.

    On a page it is drawn by a script and answers the pointer; `svg` and `png` are the same chart
    as files. `is_wide` asks for the whole width of a page; what `is_tall` scrolls on it.
    """

    name: str
    caption: str
    specification: Specification
    tables: Mapping[str, Columns] = field(default_factory=dict)
    is_wide: bool = False
    is_tall: bool = False

    @cached_property
    def svg(self) -> bytes:
        """The chart as an SVG file, on white."""
        import vl_convert

        text: str = vl_convert.vegalite_to_svg(self._whole(), vl_version=VERSION)
        return text.encode()

    @cached_property
    def png(self) -> bytes:
        """The chart as a PNG file, on white."""
        import vl_convert

        picture: bytes = vl_convert.svg_to_png(self.svg.decode(), scale=PNG_SCALE)
        return picture

    def files(self) -> Iterator[tuple[str, bytes]]:
        """NAME.svg and NAME.png with their contents."""
        yield f"{self.name}.svg", self.svg
        yield f"{self.name}.png", self.png

    def save(self, folder: Path) -> None:
        """Write NAME.svg and NAME.png into `folder`, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files():
            path = folder / name
            # What is there may be a link to something else.
            path.unlink(missing_ok=True)
            path.write_bytes(data)

    def _whole(self) -> dict[str, Any]:
        """The specification with its data, a width, and colours instead of variables."""
        datasets = {name: rows_of(columns) for name, columns in self.tables.items()}
        legend = {**CONFIG["legend"], **_room_for(_in_legends(self.specification))}
        config = {**CONFIG, "background": "white", "legend": legend}
        specification = {**self.specification, "config": config}
        if specification.get("width") == "container":
            specification["width"] = WIDTH
        text = re.sub(r"var\(--(\w+)\)", lambda match: LIGHT[match[1]], json.dumps(specification))
        return {**json.loads(text), "datasets": datasets}


def _in_legends(tree: Any) -> set[str]:
    """The names of series, which legends have."""
    if isinstance(tree, list):
        return set().union(*map(_in_legends, tree))
    if not isinstance(tree, dict):
        return set()
    found = set().union(*map(_in_legends, tree.values()))
    if isinstance(tree.get("legend"), dict):
        found |= {one for one in tree.get("scale", {}).get("domain", ()) if isinstance(one, str)}
    return found


def _room_for(names: Set[str]) -> dict[str, int]:
    """As many columns of a legend as have room for the longest of its names, in a file."""
    longest = LETTER * max(map(len, names), default=0)
    columns = max(1, min(CONFIG["legend"]["columns"], int(WIDTH // (longest + SYMBOL))))
    return {"columns": columns, "labelLimit": WIDTH // columns - SYMBOL}


def rows_of(columns: Columns) -> list[dict[str, Any]]:
    """The table row by row."""
    names = list(columns)
    return [
        dict(zip(names, row, strict=True))
        for row in zip(*(plain(columns[name]) for name in names), strict=True)
    ]


def plain(values: Column) -> list[Any]:
    """The values for JSON: figures with DIGITS digits, None for what is not finite."""
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [_plain(value) for value in listed]


def _plain(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if abs(value) < float("inf") else None


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, which needs nothing else."""
    made_by = version("vl-convert-python")
    # To make it takes more than a second.
    return kept_text(f"vega-lite-{VERSION}-of-{made_by}.js", _bundle)


def _bundle() -> str:
    import vl_convert

    text: str = vl_convert.javascript_bundle(vl_version=VERSION)  # type: ignore[call-arg]
    return text
