"""Axes: a linear or a logarithmic scale as the range asks for it, with ticks that can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grid.lab.report.style import FIGURE
from grid.model.arrays import Floats

WIDE = 50.0
"""Values that span more than this factor are seen on a logarithmic scale."""
SKEWED, AT_LEAST = 20.0, 4.0
"""So are values of which three quarters lie within this part (one over it) of their range, at its
low end, if the range spans a factor of at least the second."""
LOWEST = 0.1
"""Where zeros are among the values, so many of the others may be below what counts as small."""
MANY_DECADES = 2e3
"""An axis over a smaller factor has ticks at 2 and 5 times the powers of ten, too."""
UNEVEN = 8.0
"""Places of which two are so many times as far apart as others are seen on a logarithmic scale."""

LETTER_WIDTH = 6.5
"""Of a name of an axis, in pixels, in the mean."""

LOG = "log scale"
"""In the titles of logarithmic axes."""

Encoding = dict[str, Any]

DURATIONS: Mapping[float, str] = {
    0.0: "0", 0.001: "1 ms", 0.01: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 60.0: "1 min",
    600.0: "10 min", 3600.0: "1 h", 18_000.0: "5 h", 86_400.0: "1 day", 864_000.0: "10 days",
    8_640_000.0: "100 days",
}  # fmt: skip
_SELDOM: Mapping[float, str] = {
    0.0: "0", 0.001: "1 ms", 0.1: "0.1 s", 10.0: "10 s", 600.0: "10 min", 18_000.0: "5 h",
    864_000.0: "10 days", 86_400_000.0: "1000 days",
}  # fmt: skip
_OFTEN: Mapping[float, str] = {
    0.0: "0", 0.001: "1 ms", 0.005: "5 ms", 0.01: "10 ms", 0.05: "50 ms", 0.1: "0.1 s",
    0.5: "0.5 s", 1.0: "1 s", 3.0: "3 s", 10.0: "10 s", 30.0: "30 s", 120.0: "2 min",
    600.0: "10 min", 1800.0: "30 min", 7200.0: "2 h", 18_000.0: "5 h", 43_200.0: "12 h",
    86_400.0: "1 day", 259_200.0: "3 days", 864_000.0: "10 days", 2_592_000.0: "30 days",
    8_640_000.0: "100 days",
}  # fmt: skip
"""Ticks of axes that span much, and little: on each, labels of neighbours have room."""
LITTLE, MUCH = 300.0, 1e6
_UNITS = ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "s"))
_MANY = 3.0
"""A time axis has a unit that fits into it so often at least."""


def numbers(
    field: str, title: str | None, values: Sequence[float] | Floats, *, whole: bool = False
) -> Encoding:
    """An axis for figures: logarithmic if they span much; ticks are at powers of ten then.

    `whole`: there are no figures between whole numbers, and no ticks.
    """
    known = _known(values)
    scale, ticks = _scale(known, is_duration=False)
    encoding: Encoding = {"field": field, "type": "quantitative", "scale": scale}
    encoding["title"] = title_of(title, scale)
    encoding["axis"] = {"format": FIGURE, "tickCount": 6}
    if whole:
        encoding["axis"] |= {"tickMinStep": 1}
    if ticks:
        encoding["axis"] |= {"values": ticks}
    return encoding


def durations(field: str, title: str | None, values: Sequence[float] | Floats) -> Encoding:
    """An axis for durations in seconds: logarithmic if they span much, with ticks in words then."""
    known = _known(values)
    scale, ticks = _scale(known, is_duration=True)
    encoding: Encoding = {"field": field, "type": "quantitative", "scale": scale}
    if ticks:
        words = {**DURATIONS, **_SELDOM, **_OFTEN}
        names = json.dumps({f"{tick:.10g}": words[tick] for tick in ticks})
        axis = {"values": ticks, "labelExpr": f"{names}[datum.value]"}
        return {**encoding, "title": title_of(title, scale), "axis": axis}
    named = title and f"{title} (s)"
    return {**encoding, "title": named, "axis": {"format": FIGURE, "tickCount": 5}}


def names_within(width: float) -> dict[str, Any]:
    """Of an axis of names, which are cut in the middle where they are wider: ends differ often."""
    most = int(width / LETTER_WIDTH)
    return {"labelLimit": width, "labelExpr": f"truncate(datum.label, {most}, 'center', '…')"}


def title_of(title: str | None, scale: Mapping[str, Any]) -> str | None:
    """The title of an axis, which says so where its scale is logarithmic."""
    if scale.get("type") not in ("log", "symlog"):
        return title
    return LOG if title is None else f"{title} ({LOG})"


def places(field: str, title: str, values: Sequence[float]) -> Encoding:
    """An axis for the values of a setting, each of which has a tick at its place."""
    exact = sorted({float(value) for value in values})
    gaps = np.diff(exact)
    is_uneven = len(exact) > 2 and gaps.max() > UNEVEN * gaps.min()
    scale: dict[str, Any] = {"type": "linear", "zero": False, "nice": False, "padding": 14}
    if is_uneven and exact[0] > 0:
        scale = {"type": "log", "nice": False, "padding": 14}
    elif is_uneven and exact[0] == 0:
        scale |= {"type": "symlog", "constant": exact[1]}
    axis = {"values": exact, "format": FIGURE, "grid": False}
    encoding = {"field": field, "type": "quantitative", "scale": scale}
    return {**encoding, "title": title_of(title, scale), "axis": axis}


def ticks_from(low: float, high: float) -> list[float]:
    """Some round figures up to `high`, after `low` itself."""
    if high <= low:
        return [low]
    power = 10.0 ** np.floor(np.log10((high - low) / 4))
    step = next(step for step in (1, 2, 5, 10) if (high - low) / (step * power) <= 6) * power
    first = np.ceil(low / step)
    rounded = [float(f"{number * step:.10g}") for number in np.arange(first, high / step)]
    return [low, *(tick for tick in rounded if tick > low + step / 3)]


def time_unit(length_s: float) -> tuple[float, str]:
    """The seconds and the name of the unit in which people speak of so long a time."""
    fitting = [one for one in _UNITS if length_s >= one[0] * _MANY]
    return fitting[0] if fitting else _UNITS[-1]


def _known(values: Sequence[float] | Floats) -> Floats:
    exact = np.asarray(values, np.float64)
    return exact[np.isfinite(exact)]


def _scale(values: Floats, *, is_duration: bool) -> tuple[dict[str, Any], list[float]]:
    """A scale over `values`; where it is logarithmic also its ticks."""
    if not len(values):
        return {"type": "linear"}, []
    low, high = float(values.min()), float(values.max())
    positive = values[values > 0]
    if low < 0 or not len(positive):
        return {"type": "linear", "zero": False}, []
    small = float(np.quantile(positive, LOWEST)) if low == 0 else low
    is_skewed = (
        high - low > SKEWED * (float(np.quantile(values, 0.75)) - low) and high > AT_LEAST * low > 0
    )
    if high <= WIDE * small and not is_skewed:
        return {"type": "linear", "zero": low < high / 2}, []
    ticks = _ticks(small, high, is_duration)
    if low > 0:
        # A tick a little below the least value is seen only where the axis begins there.
        begin = min([low, *ticks[:1]])
        return {"type": "log", "domain": [begin, high], "nice": False}, ticks
    constant = ticks[0] if ticks else small
    return {"type": "symlog", "constant": constant, "domain": [0, high]}, [0.0, *ticks]


def _ticks(low: float, high: float, is_duration: bool) -> list[float]:
    if is_duration:
        of = _OFTEN if high < LITTLE * low else DURATIONS if high < MUCH * low else _SELDOM
        return [tick for tick in of if low / 1.01 <= tick <= high]
    first, last = int(np.floor(np.log10(low))), int(np.floor(np.log10(high)))
    many = high < MANY_DECADES * low
    steps = (1, 2, 3, 4, 5, 7) if high < 10 * low else (1, 2, 5) if many else (1,)
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    return [tick for tick in ticks if low / 1.01 <= tick <= high]
