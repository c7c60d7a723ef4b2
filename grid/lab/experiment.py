"""Experiments: a scenario, axes of settings, seeds; validated and expanded into cases to run."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from grid.config.load import load_scenario, source_of, validate
from grid.config.parameters import Overrides, each_of, written_override
from grid.config.schema import Scenario
from grid.config.shipped import find
from grid.config.text_file import read_text
from grid.config.traces import hash_of_log
from grid.config.yaml_tree import Node, at, child, read_tree, resolve, tree_of_value
from grid.model.errors import ErrorLine, InputError, input_error, shorten
from grid.model.errors import Path as Steps
from grid.model.fields import Name, Section, Seed
from grid.model.job_results import ALL_JOBS
from grid.results.definitions import METRICS

MAX_RUNS = 100_000
MAX_BYTES = 1024 * 1024
COLUMNS = ("seed", "scope", "metric", "value")
"""Of the table of results, after the axes."""
FROM_PYTHON = "experiment"
"""The file name in errors of an experiment that is a mapping."""
OVERRIDE = "--set "
"""The file name in errors of settings of a scenario begins so."""

Value = str | int | float | bool | None
"""A value of an axis: itself if it is a scalar, else its label or its JSON."""
Point = dict[str, Value]
"""One value of every axis."""
Objects = Mapping[str, Mapping[str, Any]]
"""Plugins given as objects, by kind and name."""

Label = Annotated[str, Field(min_length=1, max_length=200)]
Key = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.*-]{0,127}$")]
Plain = str | int | float | bool | None
Settings = dict[Key, Any]
"""Values by the name of a parameter or the path of a key, as `grid run --set` takes them."""

Values = Annotated[tuple[Any, ...], Field(min_length=1)]
Labelled = Annotated[dict[Label, Settings], Field(min_length=1)]
Finite = Annotated[float, Field(strict=True)]


class RangeSection(Section):
    """An axis whose values `sampling` draws."""

    low: Finite = Field(description="The smallest value.")
    high: Finite = Field(description="The largest value.")
    scale: Literal["linear", "log"] = Field(
        default="linear", description="Uniform in the value, or in its logarithm."
    )
    integer: bool = Field(default=False, description="Round values to integers.")

    @model_validator(mode="after")
    def _is_a_range(self) -> RangeSection:
        if not self.low < self.high or (self.scale == "log" and self.low <= 0):
            raise ValueError("`low` below `high`, and above zero with `scale: log`")
        return self

    def at(self, share: float) -> int | float:
        """The value at `share` (0 to 1) of the range."""
        if self.scale == "log":
            value = math.exp(
                math.log(self.low) + (math.log(self.high) - math.log(self.low)) * share
            )
        else:
            value = self.low + (self.high - self.low) * share
        if self.integer:
            return round(value)
        digits = 6 - math.floor(math.log10(max(abs(self.low), abs(self.high))))
        return round(value, digits) if self.scale == "linear" else float(f"{value:.6g}")


def _form(axis: Any) -> str:
    """The form of an axis: values, a range, or labels."""
    if isinstance(axis, RangeSection):
        return "range"
    if not isinstance(axis, Mapping):
        return "values"
    ends = [axis[key] for key in ("low", "high") if key in axis]
    return "range" if ends and not any(isinstance(one, Mapping) for one in ends) else "labels"


Axis = Annotated[
    Annotated[Values, Tag("values")]
    | Annotated[RangeSection, Tag("range")]
    | Annotated[Labelled, Tag("labels")],
    Discriminator(_form),
]
"""Values of the key that the axis is named after, or a range; or labels for several settings."""


class SamplingSection(Section):
    """How values of axes that are ranges are drawn: one of each for every sample."""

    samples: Annotated[int, Field(ge=1, le=10_000, strict=True)] = Field(
        description="The number of samples. Each is combined with every value of the other axes."
    )
    method: Literal["latin_hypercube", "random"] = Field(
        default="latin_hypercube",
        description="A Latin hypercube (each range is divided into as many intervals as there are "
        "samples, with one sample in each), or independent uniform values.",
    )
    seed: Seed = Field(default=1, description="Seed of the samples; the runs have their own.")


Cells = Annotated[dict[Key, Any], Field(min_length=1)]
"""Combinations: the value, or a list of values, of some axes."""

Repetitions = Annotated[int, Field(ge=1, le=10_000, strict=True)]
SeedList = Annotated[tuple[Seed, ...], Field(min_length=1)]


class QuickSection(Section):
    """Changes under `--quick`: fewer seeds, other settings, fewer values of an axis."""

    seeds: Repetitions | SeedList | None = Field(
        default=None,
        description="Number of seeds, or a list of seeds. Default: as without --quick.",
    )
    set: Settings = Field(
        default_factory=dict, description="Settings for all runs, added to those of `set`."
    )
    axes: dict[Key, Axis] = Field(
        default_factory=dict, description="Other values for some of the axes."
    )


Prose = Annotated[str, Field(min_length=1, max_length=4000)]


class AnswerSection(Section):
    """A question that the page of a study answers: which value of an axis is best, and where."""

    metric: Label = Field(description="The metric that decides.")
    better: Literal["less", "more"] = Field(description="Which direction is better.")
    best_of: Key = Field(description="The axis whose values are compared.")
    along: Key | None = Field(
        default=None, description="The axis along which the best value may change. Default: none."
    )
    among: Annotated[tuple[Plain, ...], Field(min_length=1)] | None = Field(
        default=None, description="The values that are compared. Default: all."
    )

    def axes(self) -> tuple[str, ...]:
        """The axes that it uses."""
        return (self.best_of,) if self.along is None else (self.best_of, self.along)


class StudySection(Section):
    """A study, whose page is written by `grid sweep --page`."""

    title: Label = Field(description="The page's title.")
    question: Prose = Field(description="The question, and its source.")
    set_up: Prose = Field(description="The grid, its jobs, and what varies.")
    limitations: Prose = Field(description="Limitations of the answer.")
    answers: Annotated[tuple[AnswerSection, ...], Field(min_length=1)] = Field(
        description="Answers that are derived from the results."
    )

    def axes(self) -> tuple[str, ...]:
        """The axes that its answers use."""
        return tuple(dict.fromkeys(name for answer in self.answers for name in answer.axes()))


class ExperimentSection(Section):
    """An experiment: a run for every combination of the axes' values and every seed."""

    name: Name = Field(description="Name of the sweep and of its folder.")
    scenario: str | dict[str, Any] = Field(
        description="Path of the scenario, from the folder of this file; or a name that "
        "`grid scenarios` lists; or the scenario itself."
    )
    set: Settings = Field(
        default_factory=dict,
        description="Settings of all runs: parameters by name, or keys by their paths.",
    )
    axes: dict[Key, Axis] = Field(
        default_factory=dict,
        description="The settings that vary: a list of values or a range, by the name of a "
        "parameter or the path of a key. Under any other name, labels with several settings each.",
    )
    sampling: SamplingSection | None = Field(
        default=None, description="How values of ranges are drawn; required if an axis is a range."
    )
    zip: tuple[Annotated[tuple[Key, ...], Field(min_length=2)], ...] = Field(
        default=(),
        description="Lists of axes that vary together: the first value of each, then the second.",
    )
    exclude: tuple[Cells, ...] = Field(
        default=(),
        description="Combinations to leave out, such as `{ttl: 0, period: [5, 20]}`.",
    )
    conditions: dict[Key, Cells] = Field(
        default_factory=dict,
        description="Conditions for an axis to have an effect, such as `period: {ttl: [1, 4]}`. "
        "Otherwise only its first value is run, and its result is used for all values.",
    )
    seeds: Repetitions | SeedList = Field(
        default=10,
        description="Number of seeds, from 1, or a list of them. Each combination runs with each.",
    )
    level: Annotated[float, Field(ge=0.5, le=0.999, strict=True)] = Field(
        default=0.95, description="Level of the confidence intervals."
    )
    measure: Literal["run", "knapsack"] = Field(
        default="run",
        description="Metrics of runs, or only of their knapsack choices (C07 Table 1).",
    )
    compare: Key | None = Field(
        default=None,
        description="The axis whose values are compared in pairs and are the lines of charts. The "
        "x axis is the first other numeric axis, or else the first other axis. With further axes, "
        "there is a chart for each combination of their values. Default: the first axis.",
    )
    repeated_over: Key | None = Field(
        default=None,
        description="An axis whose values are repetitions, like seeds, such as days of a log. "
        "Tables, reports, differences and pages cover all of them together. Default: none.",
    )
    metrics: tuple[Label, ...] = Field(
        default=(),
        description="What the report compares, by the names of `grid metrics`. Default: your own "
        "and common metrics in which settings differ, at most eight.",
    )
    quick: QuickSection | None = Field(
        default=None, description="Changes under `--quick`. Default: none."
    )
    study: StudySection | None = Field(
        default=None, description="Question and answers of a study, shown on its page."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> ExperimentSection:
        for name in self.quick.axes if self.quick is not None else ():
            if name not in self.axes:
                raise ValueError(f"`quick.axes` among the axes: {', '.join(self.axes) or 'none'}")
        return self

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds of every combination."""
        if isinstance(self.seeds, int):
            return tuple(range(1, self.seeds + 1))
        return tuple(dict.fromkeys(self.seeds))

    @property
    def runs(self) -> int:
        """How many runs the experiment has; if there are too many, before `exclude`."""
        count = len(self.seed_list) * math.prod(self.dimensions.values())
        if not self.exclude or count > MAX_RUNS:
            return count
        return len(self.seed_list) * sum(1 for _ in _combinations(self))

    @property
    def ranges(self) -> dict[str, RangeSection]:
        """The axes that are ranges."""
        return {name: one for name, one in self.axes.items() if isinstance(one, RangeSection)}

    @property
    def dimensions(self) -> dict[tuple[str, ...], int]:
        """The axes that vary together, and how many values they have."""
        return {group: len(rows) for group, rows in _dimensions(self)}

    def sampled(self) -> ExperimentSection:
        """The experiment with values in place of ranges, in `zip`."""
        ranges = self.ranges
        if self.sampling is None or not ranges:
            return self
        count, stream = self.sampling.samples, np.random.default_rng(self.sampling.seed)
        drawn: dict[str, tuple[Any, ...]] = {}
        for name, one in ranges.items():
            shares = stream.random(count)
            if self.sampling.method == "latin_hypercube":
                shares = (stream.permutation(count) + shares) / count
            drawn[name] = tuple(map(one.at, shares.tolist()))
        rows = dict.fromkeys(zip(*drawn.values(), strict=True))  # Integers may repeat.
        drawn = dict(zip(drawn, zip(*rows, strict=True), strict=True))
        update = {"axes": self.axes | drawn, "zip": (*self.zip, tuple(drawn)), "sampling": None}
        return self.model_copy(update=update)

    def quickened(self) -> ExperimentSection:
        """The experiment under `--quick`; unchanged if it defines no `quick`."""
        if self.quick is None:
            return self
        return self.model_copy(
            update={
                "set": self.set | self.quick.set,
                "axes": self.axes | self.quick.axes,
                "seeds": self.quick.seeds or self.seeds,
                "quick": None,
            }
        )


# Axes


def axis_choices(name: str, axis: Axis) -> list[tuple[Value, dict[str, Any]]]:
    """The values of the axis `name` as tables and charts show them, with the settings of each."""
    if isinstance(axis, dict):
        return [(_number_or(label), settings) for label, settings in axis.items()]
    if isinstance(axis, RangeSection):
        return []
    return [(_shown_value(value), {name: value}) for value in axis]


Row = tuple[tuple[Value, ...], dict[str, Any]]
"""One value of each of some axes that vary together, and their settings."""


def _dimensions(experiment: ExperimentSection) -> list[tuple[tuple[str, ...], list[Row]]]:
    """The axes that vary together, with the rows of their values; in the order of the axes."""
    together = {name: group for group in experiment.zip for name in group}
    found = []
    for group in dict.fromkeys(together.get(name, (name,)) for name in experiment.axes):
        columns = [axis_choices(name, experiment.axes[name]) for name in group]
        rows: list[Row] = []
        for chosen in zip(*columns, strict=True):
            settings: dict[str, Any] = {}
            for _, changes in chosen:
                settings |= changes
            rows.append((tuple(label for label, _ in chosen), settings))
        found.append((group, rows))
    return found


def _is_in(point: Point, cells: Mapping[str, Any]) -> bool:
    """Whether a point has, on each axis of `cells`, the value or one of the values given there."""
    return all(
        any(is_value(one, point[name]) for one in (given if isinstance(given, list) else [given]))
        for name, given in cells.items()
    )


def is_value(given: Value, label: Value) -> bool:
    """Whether a value in a file names this value of an axis, one of `axis_choices`."""
    return str(label) in (str(given), str(_number_or(str(given))))


def _number_or(label: str) -> str | int | float:
    """A label that is a number as a number, so that it has a position on a numeric axis."""
    try:
        value = resolve(label)
    except ValueError:
        return label
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return label


def _shown_value(value: Any) -> Value:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, ensure_ascii=False)


# Loading


def load_experiment(
    given: str | os.PathLike[str] | Mapping[str, Any],
    *,
    quick: bool = False,
    overrides: Overrides = (),
    seeds: int | Sequence[int] | None = None,
) -> ExperimentSection:
    """The experiment in a file or mapping. Raises InputError with all errors that are found.

    `overrides` are settings of all runs, as KEY=VALUE or as a mapping; an axis that sets the same
    key takes precedence. KEY=VALUE,VALUE is an axis. `seeds`, a count from 1 or a list, replaces
    the experiment's.
    """
    root, mistakes = _read(given)
    if mistakes:
        raise InputError(mistakes)
    keys = root.value.keys() if isinstance(root.value, dict) else ()
    if "scenario" not in keys and ("vos" in keys or "vos_from_trace" in keys):
        expected = "an experiment, which names a scenario (grid run runs a scenario)"
        raise InputError([root.error((), expected, "a scenario")])
    experiment = validate(root, ExperimentSection)
    if not isinstance(experiment, ExperimentSection):
        raise InputError(experiment)
    if quick and experiment.quick is None:
        what = "quick", "nothing", "axes, seeds or set for --quick"
        raise InputError([ErrorLine(root.source, None, *what)])
    chosen = experiment.quickened() if quick else experiment
    axes: dict[str, Any] = {}
    update: dict[str, Any] = {}
    if not isinstance(overrides, Mapping):
        every = list(each_of(overrides))
        several = [one for one in every if isinstance(one, str) and has_several(one)]
        found = _axes_of(several)
        axes = {key: tuple(map(_resolved, values)) for key, values in found.items()}
        overrides = [one for one in every if one not in several]
    typed = _settings(overrides)
    update |= {"set": chosen.set | typed, "axes": chosen.axes | axes}
    if seeds is not None:
        update["seeds"] = _checked_seeds(seeds)
    chosen = chosen.model_copy(update=update)
    mistakes = [
        ErrorLine(root.source, _line_of(root, what[0]), *what)
        for what in _problems_of_design(chosen)
    ]
    if mistakes:
        raise InputError(mistakes)
    chosen = chosen.sampled()
    mistakes = [
        ErrorLine("--set", None, what[0].removeprefix("set."), *what[1:])
        if what[0].removeprefix("set.") in typed
        else ErrorLine(root.source, _line_of(root, what[0]), *what)
        for what in (*_problems(chosen), *_problems_of_study(experiment))
    ]
    if mistakes:
        # Errors of the runs are reported too: an unknown axis name may be the cause of both.
        file = Path(given) if isinstance(given, str | os.PathLike) else None
        settings = {key: one for key, one in chosen.set.items() if key not in ("seed", "seeds")}
        runs = chosen.model_copy(update={"set": settings})
        refused = [one for _, error in expand(runs, file)[1] for one in error.errors]
        raise InputError(list(dict.fromkeys([*mistakes, *refused])))
    return chosen


def _checked_seeds(seeds: int | Sequence[int]) -> int | tuple[int, ...] | None:
    given = seeds if isinstance(seeds, int | str) else list(seeds)
    root, mistakes = tree_of_value({"seeds": given}, FROM_PYTHON)
    checked = mistakes if mistakes else validate(root, QuickSection)
    if not isinstance(checked, QuickSection):
        raise InputError(checked)
    return checked.seeds


def _line_of(root: Node, field: str) -> int | None:
    """The line of the top-level key that `field` begins with, or of the axis that it names."""
    top, _, axis = field.partition(".")
    node = child(root, top)
    if node is None:
        return None
    inner = child(node, axis)  # The name of an axis may have dots.
    return node.line if inner is None else inner.line


def _read(given: Any) -> tuple[Node, list[ErrorLine]]:
    if isinstance(given, Mapping):
        return tree_of_value(given, FROM_PYTHON)
    if not isinstance(given, str | os.PathLike):
        expected = "the path of an experiment in YAML, or a mapping"
        raise InputError([ErrorLine(FROM_PYTHON, None, "", shorten(given), expected)])
    path = Path(given)
    expected = f"an experiment in a UTF-8 file of at most {MAX_BYTES} bytes"
    return read_tree(read_text(path, MAX_BYTES, expected), str(path))


def _settings(overrides: Overrides) -> dict[str, Any]:
    if not isinstance(overrides, Mapping):
        written = map(written_override, each_of(overrides))
        return {name: node.plain() for name, node in written}
    node, mistakes = tree_of_value(overrides, OVERRIDE.strip())
    if mistakes:
        raise InputError(mistakes)
    plain: dict[str, Any] = node.plain()
    return plain


# Checks of several keys together

Problem = tuple[str, str, str]
"""Field, found and expected."""


def _problems_of_design(experiment: ExperimentSection) -> Iterator[Problem]:
    """Errors in what combines the axes: names first, then values, then their number."""
    axes, ranges = experiment.axes, experiment.ranges
    if bool(ranges) != (experiment.sampling is not None):
        found = f"the range {next(iter(ranges))}" if ranges else "no axis that is a range"
        yield ("axes" if ranges else "sampling"), found, "`sampling` with an axis of low and high"
        return
    zipped = [name for group in experiment.zip for name in group]
    named = [
        *(("zip", name) for name in zipped),
        *(("conditions", name) for name in experiment.conditions),
        *((field, name) for field, cells in _cells_of(experiment) for name in cells),
    ]
    for field, name in named:
        if name not in axes:
            yield field, f"{name!r}, which is no axis", f"axes: {', '.join(axes) or 'none'}"
        elif name in ranges:
            yield field, f"the range {name}", "an axis of values"
    if any(name not in axes or name in ranges for _, name in named):
        return
    if _repeated(tuple(zipped)):
        yield "zip", f"{_repeated(tuple(zipped))[0]} again", "each axis once"
        return
    wrong = list(_problems_of_values(experiment))
    yield from wrong
    if wrong:
        return
    if (runs := experiment.sampled().runs) > MAX_RUNS:
        yield "seeds", f"{runs} runs in all", f"at most {MAX_RUNS}"
    elif not runs:
        yield "exclude", "all combinations", "at least one remaining combination"


def _cells_of(experiment: ExperimentSection) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        *(("exclude", cells) for cells in experiment.exclude),
        *((f"conditions.{name}", cells) for name, cells in experiment.conditions.items()),
    ]


def _problems_of_values(experiment: ExperimentSection) -> Iterator[Problem]:
    labels = {
        name: [label for label, _ in axis_choices(name, axis)]
        for name, axis in experiment.axes.items()
    }
    for group in experiment.zip:
        lengths = [len(labels[name]) for name in group]
        if len(set(lengths)) > 1:
            found = f"axes of {', '.join(map(str, lengths))} values"
            yield "zip", found, "as many values of each"
        elif row := _repeated(tuple(zip(*(labels[name] for name in group), strict=True))):
            yield "zip", f"the values {', '.join(map(str, row[0]))} again", "each row once"
    for field, cells in _cells_of(experiment):
        for name, given in cells.items():
            for value in given if isinstance(given, list) else [given]:
                if not any(is_value(value, label) for label in labels[name]):
                    expected = f"a value of it: {', '.join(map(str, labels[name]))}"
                    yield field, f"{name}: {shorten(value)}", expected


def _problems(experiment: ExperimentSection) -> Iterator[Problem]:
    """Settings that would be ignored, or make tables ambiguous."""
    axes = experiment.axes
    for key, found in (("seed", "one seed for all runs"), ("seeds", "seeds of all runs")):
        if key in experiment.set:
            yield f"set.{key}", found, "them in `seeds` of the experiment, or in --seeds"
    for field in ("compare", "repeated_over"):
        name = getattr(experiment, field)
        if name is not None and name not in axes:
            expected = f"one of the axes: {', '.join(axes) or 'none'}"
            yield field, f"{name!r}, which is no axis", expected
    yield from _problems_of_repetitions(experiment)
    for field, values in (("seeds", experiment.seeds), ("metrics", experiment.metrics)):
        for value in _repeated(values) if isinstance(values, tuple) else ():
            yield field, f"{value} again", f"each {field.removesuffix('s')} once"
    set_by: dict[str, str] = {}
    for name, axis in axes.items():
        is_zipped = any(name in group for group in experiment.zip)
        yield from _problems_of_axis(name, axis, is_zipped=is_zipped)
        given = [set(settings) for _, settings in axis_choices(name, axis)]
        for key in sorted(set().union(*given)):
            if (other := set_by.setdefault(key, name)) != name:
                found = f"a value of {key}, which the axis {other} also sets"
                yield f"axes.{name}", found, "each key in one axis"
        for key in sorted(experiment.set) if given else ():
            if all(any(_is_within(key, own) for own in keys) for keys in given):
                found = f"{shorten(experiment.set[key])} for all runs"
                yield f"set.{key}", found, f"no value, since the axis {name} sets this key"


def _problems_of_axis(name: str, axis: Axis, *, is_zipped: bool) -> Iterator[Problem]:
    if name in COLUMNS:
        yield f"axes.{name}", "a column of every table", f"another name than {', '.join(COLUMNS)}"
    labels: list[Value] = []
    for label, settings in axis_choices(name, axis):
        if label in labels and not is_zipped:
            yield f"axes.{name}", f"{shorten(label)} again", "each value once"
        if "seed" in settings and name != "seed":
            yield f"axes.{name}.{label}.seed", "a seed", "them in `seeds`"
        labels.append(label)


def _problems_of_repetitions(experiment: ExperimentSection) -> Iterator[Problem]:
    axis = experiment.repeated_over
    if axis is None or axis not in experiment.axes:
        return
    others = ", ".join(name for name in experiment.axes if name != axis)
    if not others:
        yield "repeated_over", f"{axis!r}, the only axis", "one axis of several"
    elif experiment.compare == axis:
        yield "compare", f"{axis!r}, whose values are repetitions", f"another axis: {others}"
    elif experiment.study is not None and axis in experiment.study.axes():
        found = f"{axis!r}, whose values are repetitions"
        yield "study.answers", found, f"answers by other axes: {others}"


def _problems_of_study(experiment: ExperimentSection) -> Iterator[Problem]:
    """Names in `study` that the full experiment, without --quick, does not have."""
    study, axes = experiment.study, experiment.axes
    if study is None:
        return
    for name in study.axes():
        if name not in axes:
            yield "study", f"{name!r}, which is no axis", f"axes: {', '.join(axes) or 'none'}"
    for answer in study.answers:
        name = answer.best_of
        if answer.along == name:
            others = ", ".join(other for other in axes if other != name)
            yield "study", f"the best {name} along {name}", f"another axis: {others or 'none'}"
        labels = [label for label, _ in axis_choices(name, axes.get(name, ()))]
        for value in answer.among or ():
            if labels and not any(is_value(value, label) for label in labels):
                found = f"among {shorten(value)}, which the axis {name} does not have"
                yield "study", found, f"its values: {', '.join(map(str, labels))}"


def _is_within(key: str, whole: str) -> bool:
    """Whether setting `whole` also sets `key`: a plugin's name implies its settings."""
    return key == whole or key.startswith(f"{whole}.")


def _repeated(values: tuple[Any, ...]) -> list[Any]:
    return [value for value in dict.fromkeys(values) if values.count(value) > 1]


# Cases


@dataclass(frozen=True, slots=True)
class Case:
    """One run of an experiment. Errors in its scenario are reported against `file`."""

    point: Point
    seed: int
    scenario: Scenario
    file: str
    measure: str = "run"

    @property
    def kind(self) -> str:
        """The policies of all clusters: runs of one kind need the same compiled functions."""
        return " ".join(
            f"{cluster.policy!r}" for vo in self.scenario.vos or () for cluster in vo.clusters
        )


def expand(
    experiment: ExperimentSection, file: Path | None, objects: Objects | None = None
) -> tuple[list[Case], list[tuple[Point, InputError]]]:
    """The cases of `experiment`, seeds innermost, and the points that are no valid scenario.

    `file` is where the experiment was read (None: in Python). `objects` are plugins as
    `load_scenario` takes them.
    """
    cases: list[Case] = []
    refused: list[tuple[Point, InputError]] = []
    try:
        scenario_file = scenario_of(experiment, file)
    except InputError as error:
        return [], [(point, error) for point, _ in _combinations(experiment)]
    for point, settings in _combinations(experiment):
        # JSON is YAML in which the type of each value is unambiguous.
        overrides = [
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in (experiment.set | settings).items()
        ]
        try:
            scenario = load_scenario(scenario_file, overrides, objects)
            _check_metrics(experiment, scenario, file)
            _check_measure(experiment, scenario, file)
        except InputError as error:
            refused.append((point, _located(error, file, point)))
            continue
        for seed in experiment.seed_list:
            seeded = scenario.model_copy(update={"seed": seed})
            cases.append(Case(point, seed, seeded, source_of(scenario_file), experiment.measure))
    return cases, refused


def _combinations(experiment: ExperimentSection) -> Iterator[tuple[Point, dict[str, Any]]]:
    """Every combination of one value an axis: as a point, and as settings of the scenario."""
    axes = experiment.axes
    first = {name: axis_choices(name, axes[name])[0][1] for name in experiment.conditions}
    groups, rows = zip(*_dimensions(experiment), strict=True) if axes else ((), ())
    for chosen in itertools.product(*rows):
        labels = {
            name: label
            for group, (values, _) in zip(groups, chosen, strict=True)
            for name, label in zip(group, values, strict=True)
        }
        point = {name: labels[name] for name in axes}
        if any(_is_in(point, cells) for cells in experiment.exclude):
            continue
        settings: dict[str, Any] = {}
        for _, changes in chosen:
            settings |= changes
        for name, cells in experiment.conditions.items():
            if not _is_in(point, cells):
                settings |= first[name]
        yield point, settings


def scenario_of(experiment: ExperimentSection, file: Path | None) -> Path | dict[str, Any]:
    """The path of the scenario, or the scenario itself. Raises InputError for an unknown name."""
    given = experiment.scenario
    if not isinstance(given, str):
        return given
    try:
        path = find(Path(given), experiment=False, here=(file or Path()).parent)
        if not os.path.lexists(path):
            raise input_error("", "no such file", "a scenario in a file", given)
        return path
    except InputError as error:
        (mistake,) = error.errors
        found = f"{shorten(given)}, {mistake.found}"
        raise InputError([_mistake_in(file, ("scenario",), found, mistake.expected)]) from None


def _check_metrics(experiment: ExperimentSection, scenario: Scenario, file: Path | None) -> None:
    """Raises InputError for a metric that no run of the scenario has."""
    own, of_jobs = (
        [one.short_name for one in given] for given in (scenario.metrics.vo, scenario.metrics.job)
    )
    known = [*METRICS, *own]
    asked: list[tuple[Steps, str]] = [
        (("metrics", position), name) for position, name in enumerate(experiment.metrics)
    ]
    if experiment.study is not None:
        answers = enumerate(experiment.study.answers)
        asked += [
            (("study", "answers", position, "metric"), one.metric) for position, one in answers
        ]
    mistakes = []
    for steps, name in asked:
        if name in of_jobs:
            found = f"{name!r}, a metric of jobs"
            mistakes.append(_mistake_in(file, steps, found, "a metric of VOs"))
        elif name not in known and not name.startswith("plan_seconds_"):
            mistakes.append(_mistake_in(file, steps, repr(name), metric_like(name, known)))
    if mistakes:
        raise InputError(mistakes)


def _check_measure(experiment: ExperimentSection, scenario: Scenario, file: Path | None) -> None:
    """Raises InputError if a measured interval is set, and no metric is of jobs."""
    if experiment.measure != "knapsack" or scenario.metrics.measured.are_all:
        return
    expected = (
        "`run` if `metrics` has submitted_from_s or submitted_until_s: "
        "knapsack choices have no metrics of jobs"
    )
    raise InputError([_mistake_in(file, ("measure",), "knapsack", expected)])


def metric_like(name: str, known: Sequence[str]) -> str:
    """What is expected instead of an unknown metric: the nearest name."""
    # A common slip is mean_wait for wait_mean.
    likely = get_close_matches("_".join(sorted(name.split("_"), key="mean".__eq__)), known, 1)
    return f"a metric, such as {likely[0]}" if likely else "a metric that `grid metrics` lists"


def measured_intervals(cases: Sequence[Case]) -> list[dict[str, float | None]]:
    """The submission intervals whose jobs are measured, each once; empty: all jobs."""
    found = dict.fromkeys(case.scenario.metrics.measured for case in cases)
    if list(found) == [ALL_JOBS]:
        return []
    names = "submitted_from_s", "submitted_until_s"
    return [dict(zip(names, one.interval_s, strict=True)) for one in found]


def _mistake_in(file: Path | None, steps: Steps, found: str, expected: str) -> ErrorLine:
    """An error at a key of the experiment, with its line if the experiment is in a file."""
    field = ".".join(map(str, steps))
    if file is None:
        return ErrorLine(FROM_PYTHON, None, field, found, expected)
    node = at(_read(file)[0], steps)
    return ErrorLine(str(file), None if node is None else node.line, field, found, expected)


def _located(error: InputError, file: Path | None, point: Point) -> InputError:
    """The same errors at `point`; those of settings with their line in the experiment's file."""
    if file is None:
        return error
    root = _read(file)[0]

    def of_file(mistake: ErrorLine) -> ErrorLine:
        setting = mistake.file.removeprefix(OVERRIDE)
        key = setting.partition("=")[0]
        line = _line_of_setting(root, key, point)
        if setting == mistake.file or line is None:
            return mistake  # From the scenario or the command line.
        # For an unknown key the value does not matter, nor which value of an axis it is.
        field = key if mistake.field == key else ": ".join(filter(None, (setting, mistake.field)))
        return replace(mistake, file=str(file), line=line, field=field)

    return InputError([of_file(one) for one in error.errors])


def _line_of_setting(root: Node, key: str, point: Point) -> int | None:
    """The line that sets `key`: in `set`, as an axis of values, or in a label of `point`."""
    axes = child(root, "axes")
    given = axes.value if axes is not None and isinstance(axes.value, dict) else {}
    labels = {name: axis.value for name, axis in given.items() if isinstance(axis.value, dict)}
    chosen = [
        inner
        for name, inners in labels.items()
        for text, inner in inners.items()
        if name in point and is_value(text, point[name])
    ]
    nodes = [child(root, "set"), *chosen]
    found = [None if node is None else child(node, key) for node in nodes]
    axis = given.get(key)
    if axis is not None and not isinstance(axis.value, dict):
        found.insert(1, axis)
    return next((one.line for one in found if one is not None), None)


def key_of(case: Case, code: str) -> str:
    """The name of the run's result: 32 hexadecimal digits of a hash of all that it depends on.

    These are the resolved scenario with its seed, what is measured, the bytes of its traces (not
    their paths), and `code`, the version of the code. Raises OSError for an unreadable trace.
    """
    resolved = case.scenario.model_dump(mode="json")
    resolved.pop("name")  # Does not change the run.
    for owner in (resolved, *(resolved["vos"] or ())):
        workload = owner["workload"]
        if workload is not None and workload["trace"] is not None:
            workload["trace"] = hash_of_log(workload["trace"])
    plugins = case.scenario.plugins
    # A plugin in a file is identified by the file's content, not its path.
    resolved = _without_paths(resolved, {ref: one.sha256 for ref, one in plugins.sources.items()})
    known = [resolved, code, case.measure]
    if plugins.objects or plugins.packages:
        # An object that cannot be hashed gets a new identity each time.
        known.append({name: one or uuid.uuid4().hex for name, one in plugins.hashes().items()})
    text = json.dumps(known, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_paths(value: Any, hashes: Mapping[str, str]) -> Any:
    """`value` with the path in each reference to a plugin replaced by the hash of its file."""
    if isinstance(value, dict):
        return {
            _without_paths(key, hashes): _without_paths(inner, hashes)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_without_paths(inner, hashes) for inner in value]
    if isinstance(value, str) and value in hashes:
        return f"{hashes[value]}:{value.rpartition(':')[2]}"
    return value


# `grid run --set KEY=VALUE,VALUE`


def has_several(setting: str) -> bool:
    """Whether a KEY=VALUE has several values. Lists, mappings and quoted texts are one value."""
    value = setting.partition("=")[2].strip()
    return "," in value and not value.startswith(("[", "{", '"', "'"))


def experiment_of(
    scenario: Path, settings: Sequence[str], seeds: int | Sequence[int] | None = None
) -> ExperimentSection:
    """The experiment over all values of all `settings` of a scenario.

    `seeds` is a count from 1 or a list; by default the scenario's own seed. Raises InputError.
    """
    axes = _axes_of(settings)
    single = [setting for setting in settings if not has_several(setting)]
    loaded = load_scenario(scenario, [*single, *(f"{key}={all[0]}" for key, all in axes.items())])
    given = {"name": loaded.name, "scenario": str(scenario), "seeds": [loaded.seed]}
    varied = [one for one in settings if not one.startswith("seed=")]
    return load_experiment(given, overrides=varied, seeds=seeds)


def _axes_of(settings: Sequence[str]) -> dict[str, list[str]]:
    """The values of each setting that has several. Raises InputError."""
    axes: dict[str, list[str]] = {}
    for setting in filter(has_several, settings):
        key, _, values = setting.partition("=")
        if key in axes:
            found = f"{','.join(axes[key])}, and then {values}"
            raise InputError([ErrorLine("--set", None, key, found, "all its values in one list")])
        axes[key] = [value.strip() for value in values.split(",")]
        for value in _repeated(tuple(axes[key])):
            raise InputError(
                [ErrorLine("--set", None, key, f"{shorten(value)} again", "each value once")]
            )
    return axes


def _resolved(text: str) -> Any:
    try:
        return resolve(text)
    except ValueError:
        return text
