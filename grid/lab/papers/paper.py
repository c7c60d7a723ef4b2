"""A paper as data: the authors' sentences, the comparisons behind them, and the readings.

`scenarios/papers/NAME.yaml` holds one paper. Its experiments are in `scenarios/experiments`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, model_validator

from grid.config.shipped import shipped_folder

NAMES = ("C07", "CS2", "PU", "EG", "GM")

Values = dict[str, Any]
"""A value or a list of values by axis; `all` means every value of the axis."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Check(_Section):
    """A comparison at every combination of `first`, `second` and `along`.

    `metric` is compared at the points `first` and `second`, seed by seed, in the unit shown, which
    is that of the metric times `factor`:

    - `below`, `above`: first - second is below (above) 0, or at most `margin` on the other side
    - `close`: within +- `margin` of each other
    - `difference`: first - second is between `low` and `high`
    - `ratio`: first / second is between `low` and `high`
    - `at_most_times`: first is at most `times` second
    - `within`: the metric at `first` is between `low` and `high`
    - `always`: the metric at `first` equals `low` in every repetition
    - `falls`, `rises`: along `axis`, no step goes the other way by more than `margin`, and the
      last value is below (above) the first
    - `wider_gap`: second - first is wider at `here` than at each of `elsewhere`, values of `axis`
    - `growth`: the exponent of the metric along `axis` at `first` is at most `high`; with
      `second`, it is below the exponent there
    """

    kind: Literal[
        "below", "above", "close", "difference", "ratio", "at_most_times", "within", "always",
        "falls", "rises", "wider_gap", "growth",
    ]  # fmt: skip
    metric: str
    first: Values = Field(default_factory=dict)
    second: Values | None = None
    along: Values = Field(default_factory=dict)
    over: str = ""
    """The axis of a quantity that the paper does not give."""
    averaged: str = ""
    """Values are means over this axis."""
    axis: str = ""
    here: tuple[Any, ...] = ()
    elsewhere: tuple[Any, ...] = ()
    margin: float = 0.0
    low: float | None = None
    high: float | None = None
    times: float = 1.0
    unit: str = ""
    factor: float = 1.0
    bound: Literal["", "slowdown"] = ""
    """A lower bound of the metric, by which a cell cannot hold."""


class Sentence(_Section):
    """A sentence of the authors with what they give for it, and the checks that represent it."""

    label: str
    """In a few words, for lines about the claim."""
    quote: str
    figure: str
    """The authors' figure: numbers, or where they are drawn."""
    taken: str = ""
    """How its words are taken, with the margins."""
    experiment: str
    unknown: str = ""
    """The quantity of `over`, in words."""
    checks: tuple[Check, ...] = Field(min_length=1)
    show: tuple[Values, ...] = Field(default=(), max_length=2)
    """Which comparisons the page shows, by values of their place."""


class Claim(_Section):
    """A claim of `claims.md`: its first sentence decides its verdict, the others qualify it."""

    text: str
    kind: Literal["verdict", "measurement"] = "verdict"
    sentences: tuple[Sentence, ...] = Field(min_length=1)


class View(_Section):
    """The runs that replace those of an experiment under another reading.

    Those of `experiment` (or of the same one) at the values `where`, with axes renamed by `rename`
    and metrics replaced by `metrics`. Values of the axis `rest` that it lacks come from `against`,
    the experiment whose runs the reading is compared with.
    """

    experiment: str = ""
    where: dict[str, Any] = Field(default_factory=dict)
    rename: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, str] = Field(default_factory=dict)
    rest: str = ""
    against: View | None = None


class Other(_Section):
    """Another reading, with its views by the experiment that they replace."""

    text: str
    views: dict[str, View] = Field(default_factory=dict)
    not_run: str = ""
    """Why there are no runs."""

    @model_validator(mode="after")
    def _either(self) -> Other:
        if bool(self.views) == bool(self.not_run):
            raise ValueError("either `views` or `not_run`")
        return self


class Reading(_Section):
    """What the text leaves open, the main reading with its reason, and the other readings."""

    open: str
    main: str
    why: str
    claims: tuple[str, ...]
    others: tuple[Other, ...] = ()


class Source(_Section):
    """Where the paper was published, by its text or public record."""

    title: str = ""
    authors: str = ""
    year: int | None = None
    doi: str = ""
    published: str = ""


class Figure(_Section):
    """The figure of the page: a metric along an axis, one line or group of bars per series."""

    caption: str
    experiment: str
    metric: str
    axis: str
    series: tuple[Values, ...]
    where: dict[str, Any] = Field(default_factory=dict)
    x: str
    y: str


class Paper(_Section):
    name: str
    short: str
    source: Source
    method: str
    confidence: str
    """Whose level of confidence the experiments have."""
    main: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The values of axes that are the main reading, by experiment."""
    without_log: dict[str, View] = Field(default_factory=dict)
    """The replacement of an experiment that needs a log, if there is none."""
    claims: dict[str, Claim]
    readings: tuple[Reading, ...] = ()
    figures: tuple[Figure, ...] = Field(max_length=1)
    left_out: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _known_claims(self) -> Paper:
        for reading in self.readings:
            for claim in reading.claims:
                if claim not in self.claims:
                    raise ValueError(f"{reading.open}: there is no claim {claim}")
        return self

    def experiments(self, claims: tuple[str, ...], *, readings: bool = True) -> list[str]:
        """The experiments that these claims need, each once."""
        names = [one.experiment for claim in claims for one in self.claims[claim].sentences]
        for reading in self.readings if readings else ():
            if set(reading.claims) & set(claims):
                for other in reading.others:
                    for name, view in other.views.items():
                        if name in names:
                            against = view.against.experiment if view.against else ""
                            names += [view.experiment or name, against or name]
        names += [view.experiment for name, view in self.without_log.items() if name in names]
        return list(dict.fromkeys(names))


@cache
def load_paper(name: str) -> Paper:
    text = (shipped_folder() / "papers" / f"{name}.yaml").read_text(encoding="utf-8")
    return Paper.model_validate(yaml.safe_load(text))
