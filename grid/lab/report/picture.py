"""A chart of a report: a Vega-Lite specification with its data, and its colours.

Series differ in colour and in dash or marker. Specifications refer to colours by CSS variables, so
that a page changes between light, dark and print without drawing its charts again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml  # type: ignore[import-untyped]

from grid.compiled_code import kept_text

PICTURES = "pictures"
"""The folder of a page's charts as files, next to the page."""
_DECLARED: dict[str, Any] = yaml.load(
    Path(__file__).with_name("charts.yaml").read_bytes(),
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)
LIGHT, DARK = ({name: pair[n] for name, pair in _DECLARED["colours"].items()} for n in (0, 1))
COLOURS = tuple(f"var(--c{number})" for number in range(16))
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 2, 1, 2], [10, 2], [3, 3])
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
    "triangle-left",
)  # fmt: skip
CONFIG: Mapping[str, Any] = _DECLARED["config"] | {
    "range": {"category": list(COLOURS), "symbol": list(SHAPES)}
}
"""Of Vega-Lite."""

WIDTH = 520
"""Pixels of a chart in a file. On a page, charts are as wide as the space allows."""
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


def chart(template: str, /, **given: Any) -> Any:
    """The specification `template` of `charts.yaml`, with the `given` values."""
    return _filled(_DECLARED["charts"][template], given)


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        return given[value[1:]]
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, one in value.items():
            inner = _filled(one, given)
            found |= {key: inner} if key.strip(".") else inner
        return found
    if isinstance(value, list):
        every = [(one, _filled(one, given)) for one in value]
        return [
            one
            for source, filled in every
            for one in (filled if isinstance(filled, list) and source != filled else [filled])
        ]
    return value


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
        """The chart with its data, a width, and colours in place of variables."""
        import vl_convert

        specification = {**self.specification, "config": {**CONFIG, "background": "white"}}
        if specification.get("width") == "container":
            specification["width"] = WIDTH
        text = re.sub(r"var\(--(\w+)\)", lambda match: LIGHT[match[1]], json.dumps(specification))
        datasets = {}
        for name, columns in self.tables.items():
            rows = zip(*map(plain, columns.values()), strict=True)
            datasets[name] = [dict(zip(columns, row, strict=True)) for row in rows]
        whole = {**json.loads(text), "datasets": datasets}
        drawn: str = vl_convert.vegalite_to_svg(whole, vl_version=VERSION)
        return drawn.encode()

    @cached_property
    def png(self) -> bytes:
        import vl_convert

        picture: bytes = vl_convert.svg_to_png(self.svg.decode(), scale=PNG_SCALE)
        return picture

    def files(self) -> dict[str, bytes]:
        return {f"{self.name}.svg": self.svg, f"{self.name}.png": self.png}


def columns_of(keys: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """A table for charts from its rows."""
    listed = list(rows)
    return {key: [row[number] for row in listed] for number, key in enumerate(keys)}


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
