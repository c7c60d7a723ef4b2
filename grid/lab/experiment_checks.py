"""What is wrong with an experiment whose keys are right one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grid.lab.axes import axis_choices, stands_for
from grid.lab.schema import Axis, ExperimentSection
from grid.model.errors import shorten

COLUMNS = ("seed", "scope", "metric", "value")
"""Of the table of results, beside the axes."""
SEEDS = "them in `seeds` of the experiment, or in --seeds"
Problem = tuple[str, str, str]
"""Field, found and expected."""


def problems_of(experiment: ExperimentSection) -> Iterator[Problem]:
    """What would make tables that cannot be read, or would be ignored."""
    for key, found in (("seed", "one seed for all runs"), ("seeds", "seeds of all runs")):
        if key in experiment.set:
            yield f"set.{key}", found, SEEDS
    if experiment.compare is not None and experiment.compare not in experiment.axes:
        yield (
            "compare",
            f"{experiment.compare!r}, which is no axis",
            f"one of the axes: {', '.join(experiment.axes) or 'none'}",
        )
    yield from _problems_of_repetitions(experiment)
    if isinstance(experiment.seeds, tuple):
        for seed in _more_than_once(experiment.seeds):
            yield "seeds", f"{seed} again", "each seed once"
    for metric in _more_than_once(experiment.metrics):
        yield "metrics", f"{metric} again", "each metric once"
    set_by: dict[str, str] = {}
    for name, axis in experiment.axes.items():
        yield from _problems_of_axis(name, axis)
        given = [set(settings) for _, settings in axis_choices(name, axis)]
        for key in sorted(set().union(*given)):
            if (other := set_by.setdefault(key, name)) != name:
                found = f"a value of {key}, which the axis {other} sets, too"
                yield f"axes.{name}", found, "each key in one axis"
        for key in sorted(experiment.set) if given else ():
            if all(any(_is_within(key, own) for own in keys) for keys in given):
                found = f"{shorten(experiment.set[key])} for all runs"
                yield f"set.{key}", found, f"no value, since the axis {name} sets this key"


def problems_of_study(experiment: ExperimentSection) -> Iterator[Problem]:
    """What its page could not answer. `experiment` is the whole one, whatever --quick leaves."""
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
            if labels and not any(stands_for(value, label) for label in labels):
                found = f"among {shorten(value)}, which the axis {name} does not have"
                yield "study", found, f"its values: {', '.join(map(str, labels))}"


def _is_within(key: str, whole: str) -> bool:
    """Whether who sets `whole` sets `key`, too: the settings of a part go with its name."""
    return key == whole or key.startswith(f"{whole}.")


def _problems_of_repetitions(experiment: ExperimentSection) -> Iterator[Problem]:
    axis = experiment.repeated_over
    if axis is None:
        return
    others = ", ".join(name for name in experiment.axes if name != axis)
    if axis not in experiment.axes:
        found = f"{axis!r}, which is no axis"
        yield "repeated_over", found, f"one of the axes: {others or 'none'}"
    elif not others:
        yield "repeated_over", f"{axis!r}, the only axis", "one axis of several"
    elif experiment.compare == axis:
        yield "compare", f"{axis!r}, whose values are repetitions", f"another axis: {others}"
    elif experiment.study is not None and axis in experiment.study.axes():
        found = f"{axis!r}, whose values are repetitions"
        yield "study.answers", found, f"answers by other axes: {others}"


def without_seeds(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings but for seeds, which are told of by themselves."""
    return {key: value for key, value in settings.items() if key not in ("seed", "seeds")}


def _more_than_once(values: tuple[Any, ...]) -> list[Any]:
    return [value for value in dict.fromkeys(values) if values.count(value) > 1]


def _problems_of_axis(name: str, axis: Axis) -> Iterator[Problem]:
    if name in COLUMNS:
        found = "a column of every table"
        yield f"axes.{name}", found, f"another name than {', '.join(COLUMNS)}"
    labels = []
    for label, settings in axis_choices(name, axis):
        if label in labels:
            yield f"axes.{name}", f"{shorten(label)} again", "each value once"
        if "seed" in settings and name != "seed":
            yield f"axes.{name}.{label}.seed", "a seed", "them in `seeds`"
        labels.append(label)
