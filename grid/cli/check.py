"""`grid check` and `grid schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from grid.cli.endings import lines_of, wrong
from grid.cli.options import Overrides, ScenarioOrExperimentFiles, ShowTraceback
from grid.model.errors import ErrorLine, InputError


def check(
    files: ScenarioOrExperimentFiles,
    overrides: Overrides = None,
    traceback: ShowTraceback = False,
) -> None:
    """Check scenarios and experiments, and report up to five mistakes of each.

    What depends on several keys is checked once each of them is right by itself, so a file that is
    mended may have further mistakes. Of an experiment, all its combinations are checked. Files of
    parts that a scenario plugs in are imported, and their policies, selections and rules made once:
    that runs the code at the top of the file. Nothing is asked of them. Logs that a scenario names
    are not read: what is wrong with one, or with its filter or shift, `grid run` says before it
    runs anything.
    """
    mistakes: list[ErrorLine] = []
    for file in files:
        try:
            for path in _meant(file):
                typer.echo(f"{path}: {_checked(path, list(overrides or []))}")
        except InputError as error:
            mistakes += error.errors
    if mistakes:
        wrong(lines_of(InputError(list(dict.fromkeys(mistakes))), traceback=traceback))


def _meant(file: Path) -> list[Path]:
    """The file, or those that are shipped under that name: a scenario, an experiment, or both."""
    from grid.config.shipped import find, look_for

    found = [look_for(file, experiment=experiment) for experiment in (False, True)]
    known = [path for path in dict.fromkeys(found) if path is not None]
    return [file] if file in known else known or [find(file, experiment=False)]


def _checked(path: Path, overrides: list[str]) -> str:
    """What a right file is. Raises InputError."""
    from grid.config.load import load_scenario

    if not _is_experiment(path):
        return f"{load_scenario(path, overrides).name} is a valid scenario"
    from grid.lab.experiment import expand, load_experiment

    experiment = load_experiment(path, overrides=overrides)
    cases, wrong_ones = expand(experiment, path)
    mistakes = dict.fromkeys(mistake for _, error in wrong_ones for mistake in error.errors)
    if mistakes:
        raise InputError(list(mistakes))
    return f"{experiment.name} is a valid experiment of {len(cases):,} runs"


def _is_experiment(path: Path) -> bool:
    """Whether the file has the keys of an experiment; one that cannot be read has none."""
    from grid.config.load import MAX_BYTES
    from grid.config.text_file import read_text
    from grid.config.yaml_tree import read_tree

    try:
        root, _ = read_tree(read_text(path, MAX_BYTES, "YAML"), str(path))
    except InputError:
        return False
    keys: Any = root.value if isinstance(root.value, dict) else {}
    return "scenario" in keys and "vos" not in keys


def schema(
    kind: Annotated[
        str, typer.Argument(metavar="[scenario|experiment]", help="Of which files.")
    ] = "scenario",
) -> None:
    """Print the JSON Schema of scenarios or of experiments, for editors."""
    import json

    if kind == "scenario":
        from grid.config.json_schema import json_schema

        printed = json_schema()
    elif kind == "experiment":
        from grid.lab.experiment import ExperimentSection

        printed = ExperimentSection.model_json_schema()
    else:
        wrong([f"kind: found {kind!r}, expected scenario or experiment"])
    typer.echo(json.dumps(printed, indent=2))
