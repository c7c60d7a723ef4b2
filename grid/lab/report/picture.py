"""A chart of a report: a Vega-Lite specification with its data, and its colours.

Colours are those of Okabe and Ito ("Color Universal Design", 2008), lighter on dark screens. Series
also differ in dash or marker. Specifications refer to colours by CSS variables, so that a page
changes between light, dark and print without drawing its charts again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.compiled_code import kept_text

PICTURES = "pictures"
"""The folder of a page's charts as files, next to the page."""
SHADES = {
    "ink": ("#1a1a1a", "#e8e8e8"), "soft": ("#555555", "#b0b0b0"), "line": ("#dddddd", "#3c3c3c"),
    "paper": ("#ffffff", "#161616"), "faint": ("#f4f4f4", "#242424"),
    "waiting": ("#b8b8b8", "#6a6a6a"),
    "c0": ("#0072b2", "#4ba3e3"), "c1": ("#d55e00", "#f08a3c"), "c2": ("#009e73", "#2fc49a"),
    "c3": ("#cc79a7", "#e39fc5"), "c4": ("#d08f00", "#f0b83c"), "c5": ("#3f9fd6", "#8fd0f5"),
    "c6": ("#000000", "#ffffff"), "c7": ("#808080", "#a0a0a0"), "c8": ("#00395a", "#a9d4f5"),
    "c9": ("#6e3000", "#f8c39a"), "c10": ("#00503a", "#a0e8d0"), "c11": ("#7a3d62", "#f5d3e5"),
    "c12": ("#6b4900", "#f9e0a5"), "c13": ("#1f5f85", "#c9e9fb"), "c14": ("#7b4fb5", "#b79be0"),
    "c15": ("#b03060", "#e06c8c"),
}  # fmt: skip
"""Each colour on light and on dark screens."""
LIGHT, DARK = ({name: pair[n] for name, pair in SHADES.items()} for n in (0, 1))
COLOURS = tuple(f"var(--c{number})" for number in range(16))
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 2, 1, 2], [10, 2], [3, 3])
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
    "triangle-left",
)  # fmt: skip

WIDTH, HEIGHT = 520, 240
"""Pixels of a chart in a file. On a page charts are as wide as there is room."""
PNG_SCALE = 2.0
VERSION = "6.4"
"""Of Vega-Lite."""
DIGITS = 6
"""Significant digits of data in a page."""
FIGURE = f",.{DIGITS}~r"
"""The number format of charts, without exponents."""

Specification = Mapping[str, Any]
Column = Sequence[Any] | npt.NDArray[Any]
Columns = Mapping[str, Column]
"""A table for charts: the values of each column, all of one length."""

_TEXT = {"labelColor": "var(--ink)", "titleColor": "var(--ink)", "labelFontSize": 12,
         "titleFontSize": 12, "titleFontWeight": "normal"}  # fmt: skip
CONFIG: Mapping[str, Any] = {
    "font": "sans-serif",
    "background": None,
    "view": {"stroke": None, "continuousHeight": HEIGHT, "continuousWidth": WIDTH},
    "axis": {
        **_TEXT,
        "gridColor": "var(--line)",
        "domainColor": "var(--soft)",
        "tickColor": "var(--soft)",
        "labelLimit": 150,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
    },
    "legend": {**_TEXT, "labelLimit": 300, "orient": "bottom", "symbolStrokeWidth": 2},
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
    "header": {**_TEXT, "labelLimit": 300},
    "text": {"color": "var(--ink)", "fontSize": 11},
    "range": {"category": list(COLOURS), "symbol": list(SHAPES)},
    "line": {"strokeWidth": 1.8},
    "point": {"filled": True, "size": 55},
    "rect": {"stroke": None},
}
ZOOM: Mapping[str, Any] = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}
"""The parameter of charts over time: drag to pan, Shift and wheel to zoom."""


@dataclass(frozen=True)
class Picture:
    """A chart: file name, caption, Vega-Lite specification, and the tables that this names.

    `is_wide` asks for the whole width of the page; a chart that `is_tall` scrolls.
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

    def files(self) -> dict[str, bytes]:
        """The contents of NAME.svg and NAME.png."""
        return {f"{self.name}.svg": self.svg, f"{self.name}.png": self.png}

    def _whole(self) -> dict[str, Any]:
        """The specification with its data, a width, and colours in place of variables."""
        specification = {**self.specification, "config": {**CONFIG, "background": "white"}}
        if specification.get("width") == "container":
            specification["width"] = WIDTH
        text = re.sub(r"var\(--(\w+)\)", lambda match: LIGHT[match[1]], json.dumps(specification))
        datasets = {name: _rows(columns) for name, columns in self.tables.items()}
        return {**json.loads(text), "datasets": datasets}


def columns_of(keys: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """A table for charts from its rows."""
    listed = list(rows)
    return {key: [row[number] for row in listed] for number, key in enumerate(keys)}


def _rows(columns: Columns) -> list[dict[str, Any]]:
    values = [plain(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def plain(values: Column) -> list[Any]:
    """The values for JSON: numbers with DIGITS digits, None if not finite."""
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [
        value if not isinstance(value, float)
        else float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
        for value in listed
    ]  # fmt: skip


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script without dependencies."""

    def bundle() -> str:
        import vl_convert

        text: str = vl_convert.javascript_bundle(vl_version=VERSION)  # type: ignore[call-arg]
        return text

    # Bundling takes more than a second.
    return kept_text(f"vega-lite-{VERSION}-of-{version('vl-convert-python')}.js", bundle)


def colours() -> str:
    """The colours as CSS variables, for light and dark screens; print is light."""
    light, dark = (
        ":root {" + "".join(f"--{name}:{value};" for name, value in every.items()) + "}"
        for every in (LIGHT, DARK)
    )
    return f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}"


def shown(value: float | None) -> str:
    """A number for readers; a dash if it does not apply."""
    if value is None:
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 100:
        return f"{value:,.1f}"
    if 1e-9 < abs(value) < 1e-4:
        places = 3 - math.floor(math.log10(abs(value)))
        return f"{value:.{places}f}".rstrip("0")
    return f"{value:.4g}"


def counted(count: int, what: str) -> str:
    """The count with its noun: "1 job", "2 jobs"."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
