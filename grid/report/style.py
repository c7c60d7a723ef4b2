"""How all pictures look: colours that everybody can tell apart, and text that small screens show.

Colours are those of Okabe and Ito ("Color Universal Design", 2008); lines also differ in marker and
dash, bars in hatching, so that no picture depends on colour. A picture is drawn about as wide as a
telephone shows it, so its text stays readable there.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":", "-", "--", "-.", ":")
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "oo", "++")
SEQUENTIAL = "cividis"

WIDTH_INCHES = 4.6
HEIGHT_INCHES = 3.1
PNG_DPI = 200

_UNITS = ((86_400.0, "days"), (3600.0, "hours"), (1.0, "s"))
_MANY = 3.0
"""A time axis has a unit that fits into it so often at least."""

_SETTINGS: Any = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "hatch.linewidth": 0.6,
    # Equal data give equal files.
    "svg.hashsalt": "grid",
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure: its file name, what it shows, and its bytes."""

    name: str
    caption: str
    svg: bytes
    png: bytes

    @property
    def address(self) -> str:
        """The picture itself as an address, for a page that needs no other file."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode()

    def save(self, folder: Path) -> None:
        """Write NAME.svg and NAME.png into `folder`, which is made if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.svg").write_bytes(self.svg)
        (folder / f"{self.name}.png").write_bytes(self.png)


@contextmanager
def drawing(height: float = HEIGHT_INCHES, columns: int = 1) -> Iterator[tuple[Figure, Any]]:
    """A new figure and its axes (a row of them for several columns), in the style of all."""
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(WIDTH_INCHES * columns, height), layout="constrained")
        yield figure, figure.subplots(1, columns)


def picture(name: str, caption: str, figure: Figure) -> Picture:
    """The figure as it is now."""
    with matplotlib.rc_context(_SETTINGS):
        return Picture(name, caption, _bytes(figure, "svg"), _bytes(figure, "png"))


def _bytes(figure: Figure, kind: str) -> bytes:
    target = io.BytesIO()
    # No date and no version inside, so that equal data give equal files.
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(target, format=kind, dpi=PNG_DPI, metadata=metadata)
    return target.getvalue()


def time_axis(axes: Axes, first_s: float, last_s: float) -> None:
    """Time from `first_s` to `last_s` along x, in the unit in which people speak of so long."""
    fitting = [one for one in _UNITS if last_s - first_s >= one[0] * _MANY]
    seconds, unit = fitting[0] if fitting else _UNITS[-1]
    axes.set_xlim(first_s, last_s if last_s > first_s else first_s + 1.0)
    axes.xaxis.set_major_locator(_TimeLocator(seconds))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / seconds:,.10g}")
    axes.set_xlabel(f"time ({unit})")


class _TimeLocator(MaxNLocator):
    """Ticks at round numbers of a unit; the axis itself is in seconds."""

    def __init__(self, unit_s: float) -> None:
        super().__init__(nbins=6, steps=[1, 2, 3, 5, 10])
        self._unit_s = unit_s

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = super().tick_values(vmin / self._unit_s, vmax / self._unit_s)
        return [tick * self._unit_s for tick in ticks]


def legend(axes: Axes, entries: int) -> None:
    """A legend below the axes, where it hides nothing; none for a single entry."""
    if entries < 2:
        return
    columns = 2 if entries > 3 else entries
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=columns)
