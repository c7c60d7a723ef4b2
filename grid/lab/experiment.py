"""Experiments: a scenario, axes of settings, seeds; validated and expanded into cases to run."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from grid.config.load import load_scenario, source_of, validate
from grid.config.parameters import Overrides, each_of, written_override
from grid.config.schema import Scenario
from grid.config.shipped import find
from grid.config.text_file import read_text
from grid.config.traces import hash_of_log
from grid.config.yaml_tree import Node, at, child, read_tree, resolve, tree_of_value
from grid.model.errors import ErrorLine, InputError, did_you_mean, dotted, input_error, shorten
from grid.model.errors import Path as Steps
from grid.model.fields import Name, Section, Seed
from grid.results.definitions import METRICS

MAX_RUNS = 100_000
MAX_BYTES = 1024 * 1024
COLUMNS = ("seed", "scope", "metric", "value")
"""Of the table of results, after the axes."""
FROM_PYTHON = "experiment"
"""The file name in errors of an experiment that is a mapping."""
OF_CHOICES = ("least_usage", "best_usage", "proven_percent", "choices")
"""Metrics of knapsack choices (C07 Table 1): of a sweep with any of them, no run has others."""
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
Settings = dict[Key, Any]
"""Values by the name of a parameter or the path of a key, as `grid run --set` takes them."""

Values = Annotated[tuple[Any, ...], Field(min_length=1)]
Labelled = Annotated[dict[Label, Settings], Field(min_length=1)]
Finite = Annotated[float, Field(strict=True)]


class RangeSection(Section):
    """An axis whose values `sampling` draws."""

    low: Finite
    """The smallest value."""
    high: Finite
    """The largest value."""
    scale: Literal["linear", "log"] = "linear"
    """Whether the value or its logarithm is uniformly distributed."""
    integer: bool = False
    """Round values to integers."""

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
    """How values of ranges are drawn: each sample has one value of every range."""

    samples: Annotated[int, Field(ge=1, le=10_000, strict=True)]
    """The number of samples. Each is combined with every value of the other axes."""
    method: Literal["latin_hypercube", "random"] = "latin_hypercube"
    """A Latin hypercube (each range is divided into as many intervals as there are samples, with
    one sample in each), or independent uniform values."""
    seed: Seed = 1
    """Seed of the samples; the runs have their own."""


Cells = Annotated[dict[Key, Any], Field(min_length=1)]
"""Combinations: the value, or a list of values, of some axes."""

Repetitions = Annotated[int, Field(ge=1, le=10_000, strict=True)]
SeedList = Annotated[tuple[Seed, ...], Field(min_length=1)]


class QuickSection(Section):
    """Changes under `--quick`: fewer seeds, other settings, fewer values of an axis."""

    seeds: Repetitions | SeedList | None = None
    """Number of seeds, or a list of seeds. Default: as without --quick."""
    set: Settings = Field(default_factory=dict)
    """Settings for all runs, added to those of `set`."""
    axes: dict[Key, Axis] = Field(default_factory=dict)
    """Other values for some of the axes."""


Prose = Annotated[str, Field(min_length=1, max_length=4000)]


class AnswerSection(Section):
    """A question that the page of a study answers: which value of an axis is best, and under which
    conditions."""

    metric: Label
    """The metric by which values are compared."""
    better: Literal["less", "more"]
    """Which direction is better."""
    best_of: Key
    """The axis whose values are compared."""
    along: Key | None = None
    """The axis along which the best value may change. Default: none."""
    among: Annotated[tuple[Value, ...], Field(min_length=1)] | None = None
    """The values that are compared. Default: all."""

    def axes(self) -> tuple[str, ...]:
        return (self.best_of,) if self.along is None else (self.best_of, self.along)


class StudySection(Section):
    """A study, whose page is written by `grid sweep --page`."""

    title: Label
    """The page's title."""
    question: Prose
    """The question, and its source."""
    set_up: Prose
    """The grid, its jobs, and what varies."""
    limitations: Prose
    """Limitations of the answer."""
    answers: Annotated[tuple[AnswerSection, ...], Field(min_length=1)]
    """Answers that are derived from the results."""

    def axes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for answer in self.answers for name in answer.axes()))


class ExperimentSection(Section):
    """An experiment: a run for every combination of the axes' values and every seed."""

    name: Name
    """Name of the sweep and of its folder."""
    scenario: str | dict[str, Any]
    """Path of the scenario, relative to the folder of this file; or the name of a shipped scenario;
    or the scenario itself."""
    set: Settings = Field(default_factory=dict)
    """Settings of all runs: parameters by name, or keys by their paths."""
    axes: dict[Key, Axis] = Field(default_factory=dict)
    """The settings that vary: a list of values or a range, by the name of a parameter or the path
    of a key. Under any other name, labels with several settings each."""
    sampling: SamplingSection | None = None
    """How values of ranges are drawn; required if an axis is a range."""
    zip: tuple[Annotated[tuple[Key, ...], Field(min_length=2)], ...] = ()
    """Lists of axes that vary together: the first value of each, then the second."""
    exclude: tuple[Cells, ...] = ()
    """Combinations to leave out, such as `{ttl: 0, period: [5, 20]}`."""
    conditions: dict[Key, Cells] = Field(default_factory=dict)
    """Conditions under which an axis has an effect, such as `period: {ttl: [1, 4]}`. Otherwise,
    only its first value is run, and the result is used for all values."""
    seeds: Repetitions | SeedList = 10
    """Number of seeds, from 1, or a list of them. Each combination is run with each seed."""
    level: Annotated[float, Field(ge=0.5, le=0.999, strict=True)] = 0.95
    """Level of the confidence intervals."""
    compare: Key | None = None
    """The axis whose values are compared in pairs and are the lines of charts. The x axis is the
    first other numeric axis, or else the first other axis. With further axes, there is a chart for
    each combination of their values. Default: the first axis."""
    repeated_over: Key | None = None
    """An axis whose values are repetitions, like seeds: for example, the days of a log. Tables,
    reports, differences and pages combine all of them. Default: none."""
    metrics: tuple[Label, ...] = ()
    """Metrics that the report compares, by their names in `grid metrics`. Default: up to eight of
    your own and common metrics in which settings differ."""
    quick: QuickSection | None = None
    """Changes under `--quick`. Default: none."""
    study: StudySection | None = None
    """Question and answers of a study, shown on its page."""

    @model_validator(mode="after")
    def _fits_together(self) -> ExperimentSection:
        for name in self.quick.axes if self.quick is not None else ():
            if name not in self.axes:
                raise ValueError(f"`quick.axes` among the axes: {', '.join(self.axes) or 'none'}")
        return self

    @property
    def seed_list(self) -> tuple[int, ...]:
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
        return {name: one for name, one in self.axes.items() if isinstance(one, RangeSection)}

    @property
    def dimensions(self) -> dict[tuple[str, ...], int]:
        """The axes that vary together, and how many values they have."""
        return {group: len(rows) for group, rows in _rows(self).items()}

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

Row = tuple[tuple[Value, ...], dict[str, Any]]
"""One value of each of some axes that vary together, and their settings."""


def axis_choices(name: str, axis: Axis) -> list[tuple[Value, dict[str, Any]]]:
    """The values of the axis `name` as tables and charts show them, with the settings of each."""
    if isinstance(axis, dict):
        return [(_number_or(label), settings) for label, settings in axis.items()]
    if isinstance(axis, RangeSection):
        return []
    plain = (type(None), str, int, float, bool)
    return [
        (value if isinstance(value, plain) else json.dumps(value, ensure_ascii=False),
         {name: value})
        for value in axis
    ]  # fmt: skip


def _labels(experiment: ExperimentSection, name: str) -> list[Value]:
    return [label for label, _ in axis_choices(name, experiment.axes.get(name, ()))]


def _rows(experiment: ExperimentSection) -> dict[tuple[str, ...], list[Row]]:
    """By the axes that vary together: the rows of their values; in the order of the axes."""
    together = {name: group for group in experiment.zip for name in group}
    found: dict[tuple[str, ...], list[Row]] = {}
    for group in dict.fromkeys(together.get(name, (name,)) for name in experiment.axes):
        columns = [axis_choices(name, experiment.axes[name]) for name in group]
        found[group] = []
        for row in zip(*columns, strict=True):
            labels, settings = zip(*row, strict=True)
            found[group].append((labels, dict(pair for one in settings for pair in one.items())))
    return found


def _is_in(point: Point, cells: Mapping[str, Any]) -> bool:
    """Whether a point has, on each axis of `cells`, the value or one of the values given there."""
    return all(
        any(is_value(one, point[name]) for one in _listed(given)) for name, given in cells.items()
    )


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [given]


def is_value(given: Value, label: Value) -> bool:
    """Whether a value in a file names this value of an axis, one of `axis_choices`."""
    return str(label) in (str(given), str(_number_or(str(given))))


def _number_or(label: str) -> str | int | float:
    """A label that is a number as a number, so that it has a position on a numeric axis."""
    value = _resolved(label)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else label


def _resolved(text: str) -> Any:
    try:
        return resolve(text)
    except ValueError:
        return text


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
    root = _read(given)
    keys = root.value.keys() if isinstance(root.value, dict) else ()
    if "scenario" not in keys and ("vos" in keys or "vos_from_trace" in keys):
        expected = "an experiment (to run a scenario, use grid run)"
        raise InputError([root.error((), expected, "a scenario")])
    experiment = _validated(root, ExperimentSection)
    if quick and experiment.quick is None:
        raise input_error("quick", "nothing", "axes, seeds or set for --quick", root.source)
    chosen = experiment.quickened() if quick else experiment
    axes: dict[str, Any] = {}
    if isinstance(overrides, Mapping):
        typed = dict(_tree_of(overrides, OVERRIDE.strip()).plain())
    else:
        every = list(each_of(overrides))
        several = [one for one in every if isinstance(one, str) and has_several(one)]
        axes = {key: tuple(map(_resolved, all)) for key, all in _axes_of(several).items()}
        single = map(written_override, (one for one in every if one not in several))
        typed = {name: node.plain() for name, node in single}
    update: dict[str, Any] = {"set": chosen.set | typed, "axes": chosen.axes | axes}
    if seeds is not None:
        listed = seeds if isinstance(seeds, int | str) else list(seeds)
        tree = _tree_of({"seeds": listed}, FROM_PYTHON)
        update["seeds"] = _validated(tree, QuickSection).seeds
    chosen = chosen.model_copy(update=update)

    def refuse(problems: Iterable[Problem]) -> None:
        errors = [
            ErrorLine("--set", None, str(steps[1]), found, expected)
            if steps[0] == "set" and steps[1] in typed
            else _error_at(root, steps, found, expected)
            for steps, found, expected in problems
        ]
        if errors:
            raise InputError(list(dict.fromkeys(errors)))

    refuse(_unknown_axes(chosen))
    refuse(_unknown_values(chosen))
    chosen = chosen.sampled()
    refuse([*_problems(chosen), *_problems_of_study(experiment)])
    return chosen


Model = TypeVar("Model", bound=Section)


def _validated(root: Node, model: type[Model]) -> Model:
    """The section in the tree. Raises InputError."""
    found = validate(root, model)
    if not isinstance(found, model):
        raise InputError(found)  # type: ignore[arg-type]
    return found


def _read(given: Any) -> Node:
    """The tree of an experiment in a file or mapping. Raises InputError."""
    if isinstance(given, Mapping):
        return _tree_of(given, FROM_PYTHON)
    if not isinstance(given, str | os.PathLike):
        expected = "the path of an experiment in YAML, or a mapping"
        raise input_error("", shorten(given), expected, FROM_PYTHON)
    path = Path(given)
    expected = f"an experiment in a file of at most {MAX_BYTES >> 20} MiB"
    root, errors = read_tree(read_text(path, MAX_BYTES, expected), str(path))
    if errors:
        raise InputError(errors)
    return root


def _tree_of(value: Any, source: str) -> Node:
    root, errors = tree_of_value(value, source)
    if errors:
        raise InputError(errors)
    return root


# Checks of several keys together

Problem = tuple[Steps, str, str]
"""Path, found and expected."""


def _error_at(root: Node, steps: Steps, found: str, expected: str) -> ErrorLine:
    """An error with the line of its key, or of the top-level key that it is in."""
    node = at(root, steps) or at(root, steps[:1])
    line = None if node is None else node.line
    return ErrorLine(root.source, line, dotted(steps), found, expected)


def _cells_of(experiment: ExperimentSection) -> list[tuple[Steps, Mapping[str, Any]]]:
    return [
        *((("exclude",), cells) for cells in experiment.exclude),
        *((("conditions", name), cells) for name, cells in experiment.conditions.items()),
    ]


def _listing(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values)) or "none"


def _unknown_axes(experiment: ExperimentSection) -> Iterator[Problem]:
    """Names in what combines the axes that are no axes of values."""
    axes, ranges = experiment.axes, experiment.ranges
    if bool(ranges) != (experiment.sampling is not None):
        found = f"the range {next(iter(ranges))}" if ranges else "no axis that is a range"
        top: Steps = ("axes" if ranges else "sampling",)
        yield top, found, "`sampling` with an axis of low and high"
        return
    zipped = tuple(name for group in experiment.zip for name in group)
    named: list[tuple[Steps, str]] = [
        *((("zip",), name) for name in zipped),
        *((("conditions",), name) for name in experiment.conditions),
        *((steps, name) for steps, cells in _cells_of(experiment) for name in cells),
    ]
    for steps, name in named:
        if name not in axes:
            yield steps, f"{name!r}, which is not an axis", f"an axis: {_listing(axes)}"
        elif name in ranges:
            yield steps, f"the range {name}", "an axis of values"
    for name in _repeated(zipped)[:1]:
        yield ("zip",), f"{name} twice", "each axis once"


def _unknown_values(experiment: ExperimentSection) -> Iterator[Problem]:
    """Values in what combines the axes that these do not have, and too many or no runs."""
    labels = {name: _labels(experiment, name) for name in experiment.axes}
    for group in experiment.zip:
        lengths = [len(labels[name]) for name in group]
        if len(set(lengths)) > 1:
            yield ("zip",), f"axes of {_listing(lengths)} values", "as many values of each"
            return
        if row := _repeated(tuple(zip(*(labels[name] for name in group), strict=True))):
            yield ("zip",), f"the values {_listing(row[0])} twice", "each row once"
    for steps, cells in _cells_of(experiment):
        for name, given in cells.items():
            for value in _listed(given):
                if not any(is_value(value, label) for label in labels[name]):
                    expected = f"one of its values: {_listing(labels[name])}"
                    yield steps, f"{name}: {shorten(value)}", expected
    runs = experiment.sampled().runs
    if runs > MAX_RUNS:
        yield ("seeds",), f"{runs} runs in all", f"at most {MAX_RUNS}"
    elif not runs:
        yield ("exclude",), "all combinations", "at least one remaining combination"


def _problems(experiment: ExperimentSection) -> Iterator[Problem]:
    """Settings that would be ignored, or make tables ambiguous."""
    axes, repeated_over = experiment.axes, experiment.repeated_over
    for key in ("seed", "seeds"):
        if key in experiment.set:
            yield ("set", key), "seeds of all runs", "`seeds` of the experiment, or --seeds"
    for field in ("compare", "repeated_over"):
        name = getattr(experiment, field)
        if name is not None and name not in axes:
            yield (field,), f"{name!r}, which is not an axis", f"one of the axes: {_listing(axes)}"
    if repeated_over in axes:
        found = f"{repeated_over!r}, whose values are repetitions"
        if len(axes) == 1:
            yield ("repeated_over",), f"{repeated_over!r}, the only axis", "one axis of several"
        elif experiment.compare == repeated_over:
            yield ("compare",), found, "another axis"
        elif experiment.study is not None and repeated_over in experiment.study.axes():
            yield ("study", "answers"), found, "answers by other axes"
    for field, values in (("seeds", experiment.seeds), ("metrics", experiment.metrics)):
        for value in _repeated(values) if isinstance(values, tuple) else ():
            yield (field,), f"{value} twice", f"each {field.removesuffix('s')} once"
    set_by: dict[str, str] = {}
    for name in axes:
        yield from _problems_of_axis(experiment, name, set_by)


def _problems_of_axis(
    experiment: ExperimentSection, name: str, set_by: dict[str, str]
) -> Iterator[Problem]:
    """Errors of an axis; `set_by` has the axis of each setting so far."""
    steps = ("axes", name)
    if name in COLUMNS:
        yield steps, "a column of every table", f"a name other than {_listing(COLUMNS)}"
    choices = axis_choices(name, experiment.axes[name])
    if not any(name in group for group in experiment.zip):
        for label in _repeated(tuple(label for label, _ in choices)):
            yield steps, f"{shorten(label)} twice", "each value once"
    for label, settings in choices:
        if "seed" in settings and name != "seed":
            yield (*steps, str(label), "seed"), "a seed", "them in `seeds`"
    for key in sorted({key for _, settings in choices for key in settings}):
        if (other := set_by.setdefault(key, name)) != name:
            found = f"a value of {key}, which the axis {other} also sets"
            yield steps, found, "each key in one axis"
    for key in sorted(experiment.set) if choices else ():
        # A plugin's name implies its settings.
        if all(any(f"{key}.".startswith(f"{own}.") for own in keys) for _, keys in choices):
            found = f"{shorten(experiment.set[key])} for all runs"
            yield ("set", key), found, f"no value, since the axis {name} sets this key"


def _problems_of_study(experiment: ExperimentSection) -> Iterator[Problem]:
    """Names in `study` that the full experiment, without --quick, does not have."""
    study, axes = experiment.study, experiment.axes
    if study is None:
        return
    for name in study.axes():
        if name not in axes:
            yield ("study",), f"{name!r}, which is not an axis", f"an axis: {_listing(axes)}"
    for answer in study.answers:
        name, labels = answer.best_of, _labels(experiment, answer.best_of)
        if answer.along == name:
            others = _listing(other for other in axes if other != name)
            yield ("study",), f"the best {name} along {name}", f"another axis: {others}"
        for value in answer.among or ():
            if labels and not any(is_value(value, label) for label in labels):
                found = f"among {shorten(value)}, which the axis {name} does not have"
                yield ("study",), found, f"its values: {_listing(labels)}"


def _repeated(values: tuple[Any, ...]) -> list[Any]:
    return [value for value in dict.fromkeys(values) if values.count(value) > 1]


# Runs


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of an experiment. Errors in its scenario are reported against `file`."""

    point: Point
    seed: int
    scenario: Scenario
    file: str
    measure: str = "run"


Refused = list[tuple[Point, InputError]]
"""Points that are no valid scenario."""


def errors_of(refused: Refused) -> list[ErrorLine]:
    """Each error once: combinations share most of them."""
    return list(dict.fromkeys(one for _, error in refused for one in error.errors))


def expand(
    experiment: ExperimentSection, file: Path | None, objects: Objects | None = None
) -> tuple[list[PlannedRun], Refused]:
    """The runs of `experiment`, seeds innermost, and the points that are no valid scenario.

    `file` is where the experiment was read (None: in Python). `objects` are plugins as
    `load_scenario` takes them.
    """
    runs: list[PlannedRun] = []
    refused: Refused = []
    root = _tree(file)
    try:
        scenario_file = scenario_of(experiment, file)
    except InputError as error:
        return [], [(point, error) for point, _ in _combinations(experiment)]
    of_choices = any(metric in OF_CHOICES for metric in experiment.metrics)
    nodes = _nodes(root)
    for point, settings in _combinations(experiment):
        overrides = {
            key: next(
                (one for one in nodes.get(key, ()) if repr(one.plain()) == repr(value)), value
            )
            for key, value in (experiment.set | settings).items()
        }
        try:
            scenario = load_scenario(scenario_file, overrides, objects)
            _check_metrics(experiment, scenario, root)
        except InputError as error:
            refused.append((point, error))
            continue
        for seed in experiment.seed_list:
            seeded = scenario.model_copy(update={"seed": seed})
            measure = "knapsack" if of_choices else "run"
            runs.append(PlannedRun(point, seed, seeded, source_of(scenario_file), measure))
    return runs, refused


def _combinations(experiment: ExperimentSection) -> Iterator[tuple[Point, dict[str, Any]]]:
    """Every combination of one value an axis: as a point, and as settings of the scenario."""
    axes = experiment.axes
    first = {name: axis_choices(name, axes[name])[0][1] for name in experiment.conditions}
    rows = _rows(experiment)
    for chosen in itertools.product(*rows.values()):
        labels: Point = {}
        settings: dict[str, Any] = {}
        for group, (values, changes) in zip(rows, chosen, strict=True):
            labels |= zip(group, values, strict=True)
            settings |= changes
        point = {name: labels[name] for name in axes}
        if any(_is_in(point, cells) for cells in experiment.exclude):
            continue
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
            raise input_error("", "no such file", "a scenario file", given)
        return path
    except InputError as error:
        (first,) = error.errors
        found = f"{shorten(given)}, {first.found}"
        raise InputError([_error_at(_tree(file), ("scenario",), found, first.expected)]) from None


def _tree(file: Path | None) -> Node:
    """The tree of the experiment's file; one without keys if it is a mapping."""
    return Node(None, FROM_PYTHON, None) if file is None else _read(file)


def _check_metrics(experiment: ExperimentSection, scenario: Scenario, root: Node) -> None:
    """Raises InputError for a metric that no run of the scenario has."""
    own, of_jobs = (
        [one.short_name for one in given] for given in (scenario.metrics.vo, scenario.metrics.job)
    )
    known = [*METRICS, *own]
    answers = experiment.study.answers if experiment.study is not None else ()
    asked: list[tuple[Steps, str]] = [
        *((("metrics", n), name) for n, name in enumerate(experiment.metrics)),
        *((("study", "answers", n, "metric"), one.metric) for n, one in enumerate(answers)),
    ]
    errors = []
    for steps, name in asked:
        if name in of_jobs:
            errors.append(_error_at(root, steps, f"{name!r}, a metric of jobs", "a metric of VOs"))
        elif not (name in known or re.match("plan_seconds_|.*_utilization_percent$", name)):
            errors.append(_error_at(root, steps, repr(name), metric_like(name, known)))
        elif name in OF_CHOICES and not scenario.metrics.measured.are_all:
            expected = "no submitted_from_s or submitted_until_s: knapsack choices have no jobs"
            errors.append(_error_at(root, steps, repr(name), expected))
    if errors:
        raise InputError(errors)


def metric_like(name: str, known: Sequence[str]) -> str:
    """What is expected instead of an unknown metric: the nearest name."""
    # A common slip is mean_wait for wait_mean.
    likely = get_close_matches("_".join(sorted(name.split("_"), key="mean".__eq__)), known, 3)
    return f"a metric ({did_you_mean(likely)})" if likely else "a metric; see grid metrics"


def _nodes(root: Node) -> dict[str, list[Node]]:
    """By key: the settings in an experiment's file, which have its lines."""
    found: dict[str, list[Node]] = {}
    for section in (root, child(root, "quick")):
        settings, axes = (section and child(section, key) for key in ("set", "axes"))
        labels = [settings]
        for name, axis in axes.value.items() if axes else ():  # type: ignore[union-attr]
            if isinstance(axis.value, list):
                found.setdefault(name, []).extend(axis.value)
            elif isinstance(axis.value, dict):
                labels += axis.value.values()
        for label in labels:
            if label is not None and isinstance(label.value, dict):
                for key, node in label.value.items():
                    found.setdefault(key, []).append(node)
    return found


def key_of(run: PlannedRun, code: str) -> str:
    """The name of the run's result: 32 hexadecimal digits of a hash of all that it depends on.

    These are the resolved scenario with its seed, what is measured, the bytes of its traces (not
    their paths), and `code`, the version of the code. Raises OSError for an unreadable trace.
    """
    resolved = run.scenario.model_dump(mode="json")
    resolved.pop("name")  # Does not change the run.
    for owner in (resolved, *(resolved["vos"] or ())):
        workload = owner["workload"]
        if workload is not None and workload["trace"] is not None:
            workload["trace"] = hash_of_log(workload["trace"])
    plugins = run.scenario.plugins
    # A plugin in a file is identified by the file's content, not its path.
    resolved = _without_paths(resolved, {ref: one.sha256 for ref, one in plugins.sources.items()})
    known = [resolved, code, run.measure]
    if plugins.objects or plugins.packages:
        # An object that cannot be hashed gets a new identity each time.
        known.append({name: one or uuid.uuid4().hex for name, one in plugins.hashes().items()})
    text = json.dumps(known, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_paths(value: Any, hashes: Mapping[str, str]) -> Any:
    """`value` with the path in each reference to a plugin replaced by the hash of its file."""
    if isinstance(value, dict):
        pairs = value.items()
        return {_without_paths(key, hashes): _without_paths(one, hashes) for key, one in pairs}
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
    axes = _axes_of(filter(has_several, settings))
    single = [setting for setting in settings if not has_several(setting)]
    loaded = load_scenario(scenario, [*single, *(f"{key}={all[0]}" for key, all in axes.items())])
    given = {"name": loaded.name, "scenario": str(scenario), "seeds": [loaded.seed]}
    varied = [one for one in settings if not one.startswith("seed=")]
    return load_experiment(given, overrides=varied, seeds=seeds)


def _axes_of(settings: Iterable[str]) -> dict[str, list[str]]:
    """The values of settings that have several. Raises InputError."""
    axes: dict[str, list[str]] = {}
    for setting in settings:
        key, _, text = setting.partition("=")
        values = [value.strip() for value in text.split(",")]
        wrong = None
        if key in axes:
            wrong = f"{','.join(axes[key])}, and then {text}", "all its values in one list"
        elif again := _repeated(tuple(values)):
            wrong = f"{shorten(again[0])} twice", "each value once"
        if wrong is not None:
            raise InputError([ErrorLine("--set", None, key, *wrong)])
        axes[key] = values
    return axes
