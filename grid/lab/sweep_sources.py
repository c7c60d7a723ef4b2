"""What a sweep was made from, left in its folder so that it runs again wherever that is copied.

The experiment and its scenario are as they were given, with parameters and comments; the files of
parts stand beside them. Logs stay where they are, for they may be large.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from grid.config.load import MAX_BYTES as MAX_SCENARIO_BYTES
from grid.config.load import section_yaml
from grid.config.text_file import read_text
from grid.config.validate import validate
from grid.config.yaml_tree import read_tree
from grid.lab.cases import MAX_BYTES, Case, scenario_of
from grid.lab.schema import ExperimentSection
from grid.lab.store import EXPERIMENT_FILE, SCENARIO_FILE, write_text
from grid.model.errors import InputError, one_mistake
from grid.model.plugins.source import Source

_SCENARIO_LINE = re.compile(r"^scenario:[ \t].*?(?=[ \t]+#|[ \t]*$)", re.MULTILINE)


def write_sources(
    folder: Path, experiment: ExperimentSection, file: Path | None, cases: Iterable[Case]
) -> None:
    """Write the experiment, its scenario, and the files of the parts of its `cases`.

    A scenario that stands within the experiment has no file of its own. Raises InputError.
    """
    sources = {id(case.scenario.parts): case.scenario.parts.sources for case in cases}
    of_files = {
        one.written: one for by_name in sources.values() for one in by_name.values() if one.written
    }
    places = _places(of_files)
    for written, source in of_files.items():
        _write_part(folder, places[written], source.text)
    scenario = scenario_of(experiment, file)
    if isinstance(scenario, Path):
        text = read_text(scenario, MAX_SCENARIO_BYTES, "a scenario")
        write_text(folder / SCENARIO_FILE, _with_places(text, places))
        experiment = experiment.model_copy(update={"scenario": SCENARIO_FILE})
    else:
        (folder / SCENARIO_FILE).unlink(missing_ok=True)
    write_text(folder / EXPERIMENT_FILE, _with_places(_text_of(experiment, file), places))


def _text_of(experiment: ExperimentSection, file: Path | None) -> str:
    """The text of its file where that says the same, but for where the scenario is; else anew.

    It does not where a command changed settings, or asked for a quick one.
    """
    if file is not None:
        text = read_text(file, MAX_BYTES, "an experiment")
        if experiment.scenario == SCENARIO_FILE:
            text = _SCENARIO_LINE.sub(f"scenario: {SCENARIO_FILE}", text, count=1)
        with suppress(InputError):
            if validate(read_tree(text, str(file))[0], ExperimentSection) == experiment:
                return text
    return section_yaml(experiment)


def _places(files: Mapping[str, Source]) -> dict[str, str]:
    """Where each file goes in the folder, by the place that it was written as.

    That is the same place, but for those outside, which have only a name here.
    """
    places = {written: written for written in files if _is_within(written)}
    for written in files:
        if written not in places:
            path, number = Path(written), 1
            name = path.name
            while name in places.values():
                number += 1
                name = f"{path.stem}-{number}{path.suffix}"
            places[written] = name
    return places


def _is_within(written: str) -> bool:
    return not Path(written).is_absolute() and ".." not in Path(written).parts


def _write_part(folder: Path, place: str, text: str) -> None:
    parent = folder
    for step in Path(place).parts[:-1]:
        parent /= step
        if parent.is_symlink():
            raise one_mistake("", "a link", "a folder", str(parent))
        parent.mkdir(exist_ok=True)
    write_text(folder / place, text)


def _with_places(text: str, places: Mapping[str, str]) -> str:
    """`text` with references to files that have another place here."""
    for written, place in places.items():
        if written != place:
            text = place.join(re.split(rf"(?<![\w./~-]){re.escape(written)}(?=:)", text))
    return text
