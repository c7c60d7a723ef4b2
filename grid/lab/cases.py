"""From an experiment file to its runs: every combination of settings and seed, resolved."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from grid.config.load import load_scenario, source_of
from grid.config.parameters import Overrides, each_of, written_override
from grid.config.python_tree import tree_of_value
from grid.config.schema import Scenario
from grid.config.sections import name_and_settings
from grid.config.shipped import find
from grid.config.text_file import read_text
from grid.config.traces import hash_of_log
from grid.config.validate import validate
from grid.config.yaml_tree import Node, at, child, read_tree
from grid.lab.axes import Label, axis_choices, stands_for
from grid.lab.experiment_checks import problems_of, problems_of_study, without_seeds
from grid.lab.schema import MAX_RUNS, Axis, ExperimentSection, QuickSection
from grid.model.errors import InputError, Mistake, one_mistake, shorten
from grid.model.errors import Path as Steps
from grid.model.measured_jobs import ALL_JOBS
from grid.results.definitions import METRICS

MAX_BYTES = 1024 * 1024
FROM_PYTHON = "experiment"
"""What mistakes in an experiment that is no file are reported against."""
OVERRIDE = "--set "
"""What mistakes in settings of a scenario are reported against, before the setting."""

Objects = Mapping[str, Mapping[str, Any]]
"""Parts given as objects, by kind and name."""

Point = dict[str, Label]
"""One value of every axis: the value itself where it is plain, else its label or its text."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run of an experiment. `file` is what mistakes in its scenario are reported against."""

    point: Point
    seed: int
    scenario: Scenario
    file: str
    measure: str = "run"

    @property
    def kind(self) -> str:
        """What tells runs apart that call different functions: the policies of their clusters."""
        return " ".join(
            f"{cluster.policy!r}" for vo in self.scenario.vos or () for cluster in vo.clusters
        )


def load_experiment(
    given: str | os.PathLike[str] | Mapping[str, Any],
    *,
    quick: bool = False,
    overrides: Overrides = (),
    seeds: int | Sequence[int] | None = None,
) -> ExperimentSection:
    """The experiment in a file, or in a mapping. Raises InputError with all that is wrong with it.

    `overrides` are settings of all runs, written KEY=VALUE, or values by their keys; an axis of
    which some values have the key goes before them. `seeds`, how many from 1, or which, take the
    place of the experiment's.
    """
    root, mistakes = _read(given)
    if mistakes:
        raise InputError(mistakes)
    keys = root.value.keys() if isinstance(root.value, dict) else ()
    if "scenario" not in keys and ("vos" in keys or "vos_from_trace" in keys):
        expected = "an experiment, which names a scenario (grid run runs a scenario)"
        raise InputError([root.mistake((), expected, "a scenario")])
    experiment = validate(root, ExperimentSection)
    if not isinstance(experiment, ExperimentSection):
        raise InputError(experiment)
    if quick and experiment.quick is None:
        what = "quick", "nothing", "what --quick is to run with: `quick`, with axes, seeds or set"
        raise InputError([Mistake(root.source, None, *what)])
    chosen = experiment.quickened() if quick else experiment
    typed = _settings(overrides)
    chosen = chosen.model_copy(update={"set": chosen.set | typed})
    if seeds is not None:
        chosen = chosen.model_copy(update={"seeds": _checked_seeds(seeds)})
        if chosen.runs > MAX_RUNS:
            # At once: to look for mistakes in so many runs takes long.
            what = "seeds", f"{chosen.runs} runs in all", f"at most {MAX_RUNS}"
            raise InputError([Mistake(root.source, _line_of(root, "seeds"), *what)])
    mistakes = [
        Mistake("--set", None, what[0].removeprefix("set."), *what[1:])
        if what[0].removeprefix("set.") in typed
        else Mistake(root.source, _line_of(root, what[0]), *what)
        for what in (*problems_of(chosen), *problems_of_study(experiment))
    ]
    if mistakes:
        # What is wrong with the runs is told with it: a name that nothing has, such as the one of
        # an axis, may be why the parts do not go together.
        file = Path(given) if isinstance(given, str | os.PathLike) else None
        runs = chosen.model_copy(update={"set": without_seeds(chosen.set)})
        refused = [one for _, error in expand(runs, file)[1] for one in error.mistakes]
        raise InputError(list(dict.fromkeys([*mistakes, *refused])))
    return chosen


def _checked_seeds(seeds: int | Sequence[int]) -> int | tuple[int, ...] | None:
    """Seeds as `quick` of an experiment has them. Raises InputError."""
    given = seeds if isinstance(seeds, int | str) else list(seeds)
    root, mistakes = tree_of_value({"seeds": given}, FROM_PYTHON)
    checked = mistakes if mistakes else validate(root, QuickSection)
    if not isinstance(checked, QuickSection):
        raise InputError(checked)
    return checked.seeds


def _line_of(root: Node, field: str) -> int | None:
    """The line of the key at the top that `field` begins with, or of the axis that it names.

    None if it is not in the file.
    """
    top, _, axis = field.partition(".")
    node = child(root, top)
    if node is None:
        return None
    inner = child(node, axis)  # The name of an axis may have dots.
    return node.line if inner is None else inner.line


def _read(given: Any) -> tuple[Node, list[Mistake]]:
    if isinstance(given, Mapping):
        return tree_of_value(given, FROM_PYTHON)
    if not isinstance(given, str | os.PathLike):
        expected = "the path of an experiment in YAML, or a mapping"
        raise InputError([Mistake(FROM_PYTHON, None, "", shorten(given), expected)])
    path = Path(given)
    source = str(path)
    expected = f"an experiment in a UTF-8 file of at most {MAX_BYTES} bytes"
    return read_tree(read_text(path, MAX_BYTES, expected), source)


def _settings(overrides: Overrides) -> dict[str, Any]:
    """Values by key. Raises InputError."""
    if not isinstance(overrides, Mapping):
        written = map(written_override, each_of(overrides))
        return {name: node.plain() for name, node in written}
    node, mistakes = tree_of_value(overrides, OVERRIDE.strip())
    if mistakes:
        raise InputError(mistakes)
    plain: dict[str, Any] = node.plain()
    return plain


def expand(
    experiment: ExperimentSection, file: Path | None, objects: Objects | None = None
) -> tuple[list[Case], list[tuple[Point, InputError]]]:
    """The runs of `experiment`, seeds within combinations, and what keeps others from being runs.

    `file` is where the experiment stands; None: in Python. `objects` are parts to plug in, as
    `load_scenario` takes them. A combination that makes no right
    scenario stands among the second instead, with its mistakes.
    """
    cases: list[Case] = []
    refused: list[tuple[Point, InputError]] = []
    try:
        scenario_file = scenario_of(experiment, file)
    except InputError as error:
        return [], [(point, error) for point, _ in _combinations(experiment.axes)]
    for point, settings in _combinations(experiment.axes):
        overrides = [_override(*item) for item in (experiment.set | settings).items()]
        try:
            scenario = load_scenario(scenario_file, overrides, objects)
            _check_metrics(experiment, scenario, file)
            _check_measure(experiment, scenario, file)
        except InputError as error:
            refused.append((point, _of_experiment(error, file, point)))
            continue
        for seed in experiment.seed_list:
            seeded = scenario.model_copy(update={"seed": seed})
            cases.append(Case(point, seed, seeded, source_of(scenario_file), experiment.measure))
    return cases, refused


def _check_metrics(experiment: ExperimentSection, scenario: Scenario, file: Path | None) -> None:
    """Raises InputError where a metric is asked for that no run of the scenario has."""
    own, of_jobs = (
        [name_and_settings(one)[0].rpartition(":")[2] for one in given]
        for given in (scenario.metrics.vo, scenario.metrics.job)
    )
    known = [*METRICS, *own]
    asked: list[tuple[Steps, str]] = [
        (("metrics", place), name) for place, name in enumerate(experiment.metrics)
    ]
    if experiment.study is not None:
        answers = enumerate(experiment.study.answers)
        asked += [(("study", "answers", place, "metric"), one.metric) for place, one in answers]
    mistakes = [
        _mistake_in(
            file,
            steps,
            f"{name!r}, a metric of jobs" if name in of_jobs else repr(name),
            "one of VOs" if name in of_jobs else figure_like(name, known),
        )
        for steps, name in asked
        if name not in known and not name.startswith("plan_seconds_")
    ]
    if mistakes:
        raise InputError(mistakes)


def measured_intervals(cases: Sequence[Case]) -> list[dict[str, float | None]]:
    """From when on and until when jobs are submitted that count, each once; none: all jobs do."""
    found = dict.fromkeys(case.scenario.metrics.measured for case in cases)
    if list(found) == [ALL_JOBS]:
        return []
    names = "submitted_from_s", "submitted_until_s"
    return [dict(zip(names, one.interval_s, strict=True)) for one in found]


def _check_measure(experiment: ExperimentSection, scenario: Scenario, file: Path | None) -> None:
    """Raises InputError where some jobs are to be measured, and no figure is of jobs."""
    if experiment.measure != "knapsack" or scenario.metrics.measured.are_all:
        return
    expected = (
        "`run` where `metrics` has submitted_from_s or submitted_until_s: "
        "the choices of knapsacks have no figures of jobs"
    )
    raise InputError([_mistake_in(file, ("measure",), "knapsack", expected)])


def _mistake_in(file: Path | None, steps: Steps, found: str, expected: str) -> Mistake:
    """A mistake at a place of the experiment, with its line if that stands in a file."""
    field = ".".join(map(str, steps))
    if file is None:
        return Mistake(FROM_PYTHON, None, field, found, expected)
    node = at(_read(file)[0], steps)
    return Mistake(str(file), None if node is None else node.line, field, found, expected)


def figure_like(name: str, known: Sequence[str]) -> str:
    """What is expected instead of a metric of this name: the list of all would be long."""
    # People write mean_wait for wait_mean.
    likely = get_close_matches("_".join(sorted(name.split("_"), key="mean".__eq__)), known, 1)
    return f"a figure, such as {likely[0]}" if likely else "a figure that `grid metrics` lists"


def scenario_of(experiment: ExperimentSection, file: Path | None) -> Path | dict[str, Any]:
    """Where the scenario stands, or the scenario itself. Raises InputError for an unknown name."""
    given = experiment.scenario
    if not isinstance(given, str):
        return given
    try:
        path = find(Path(given), experiment=False, here=(file or Path()).parent)
        if not os.path.lexists(path):
            raise one_mistake("", "no such file", "a scenario in a file", given)
        return path
    except InputError as error:
        (mistake,) = error.mistakes
        found = f"{shorten(given)}, {mistake.found}"
        raise InputError([_mistake_in(file, ("scenario",), found, mistake.expected)]) from None


def _of_experiment(error: InputError, file: Path | None, point: Point) -> InputError:
    """The same mistakes at `point`; those in settings are told at the line of the file."""
    if file is None:
        return error
    root = _read(file)[0]

    def of_file(mistake: Mistake) -> Mistake:
        setting = mistake.file.removeprefix(OVERRIDE)
        line = _line_of_setting(root, setting.partition("=")[0], point)
        if setting == mistake.file or line is None:
            # Of the scenario, or from the command line.
            return mistake
        key = setting.partition("=")[0]
        # Of a key that nothing has, the value does not matter, nor which of an axis it is.
        field = key if mistake.field == key else ": ".join(filter(None, (setting, mistake.field)))
        return replace(mistake, file=str(file), line=line, field=field)

    return InputError([of_file(one) for one in error.mistakes])


def _line_of_setting(root: Node, key: str, point: Point) -> int | None:
    """The line that sets `key`: in `set`, as an axis of values, or for a label of `point`."""
    axes = child(root, "axes")
    given = axes.value if axes is not None and isinstance(axes.value, dict) else {}
    labels = {name: axis.value for name, axis in given.items() if isinstance(axis.value, dict)}
    chosen = [
        inner
        for name, inners in labels.items()
        for text, inner in inners.items()
        if name in point and stands_for(text, point[name])
    ]
    places = [child(root, "set"), *chosen]
    found = [None if place is None else child(place, key) for place in places]
    axis = given.get(key)
    if axis is not None and not isinstance(axis.value, dict):
        found.insert(1, axis)
    return next((one.line for one in found if one is not None), None)


def _combinations(axes: Mapping[str, Axis]) -> Iterator[tuple[Point, dict[str, Any]]]:
    """Every choice of one value an axis: as a point, and as settings of the scenario."""
    choices = [axis_choices(name, axis) for name, axis in axes.items()]
    for chosen in itertools.product(*choices):
        point: Point = {}
        settings: dict[str, Any] = {}
        for name, (label, changes) in zip(axes, chosen, strict=True):
            point[name] = label
            settings |= changes
        yield point, settings


def _override(name: str, value: Any) -> str:
    # JSON is YAML, too, and says without doubt what is text and what is not.
    return f"{name}={json.dumps(value, ensure_ascii=False)}"


def key_of(case: Case, code: str) -> str:
    """The name of the run's result: 32 hexadecimal digits of a hash of all that it depends on.

    That is the resolved scenario with its seed, what is measured, the bytes of its traces (not
    where they are), and `code`, the version of the code that runs it. Raises OSError where a trace
    cannot be read.
    """
    resolved = case.scenario.model_dump(mode="json")
    # The name of a scenario is no part of what happens in it.
    resolved.pop("name")
    for owner in (resolved, *(resolved["vos"] or ())):
        workload = owner["workload"]
        if workload is not None and workload["trace"] is not None:
            workload["trace"] = hash_of_log(workload["trace"])
    parts = case.scenario.parts
    # What stands in a file counts by its text, not by where it stands.
    resolved = _without_paths(resolved, {ref: one.sha256 for ref, one in parts.sources.items()})
    known = [resolved, code, case.measure]
    if parts.objects or parts.packages:
        # What cannot be told may be another thing each time.
        known.append({name: one or uuid.uuid4().hex for name, one in parts.hashes().items()})
    text = json.dumps(known, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_paths(value: Any, hashes: Mapping[str, str]) -> Any:
    """`value` with the hash of its file in each reference to a part."""
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
