"""The scenarios and experiments that are shipped with the emulator."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import grid
from grid.model.errors import expected_name, input_error

EXPERIMENTS = "experiments"
_SUFFIX = ".yaml"
_CURRENT = Path()
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Shipped:
    """A shipped scenario or experiment; `about` is a sentence."""

    name: str
    path: Path
    about: str

    @property
    def is_experiment(self) -> bool:
        return self.path.parent.name == EXPERIMENTS


def shipped_folder() -> Path:
    """The folder of the scenarios: in an installed package, or in the repository."""
    package = Path(grid.__file__).resolve().parent
    installed = package / "shipped"
    return installed if installed.is_dir() else package.parent / "scenarios"


def experiments_folder() -> Path:
    return shipped_folder() / EXPERIMENTS


def all_shipped() -> list[Shipped]:
    """All scenarios, then all experiments, by name."""
    return [
        Shipped(path.stem, path, _about(path))
        for folder in (shipped_folder(), experiments_folder())
        for path in sorted(folder.glob(f"*{_SUFFIX}"))
    ]


def find(given: Path, *, experiment: bool, here: Path = _CURRENT) -> Path:
    """The file NAME or NAME.yaml in the folder `here`, else the shipped one.

    Raises InputError if there is no such file.
    """
    found = look_for(given, experiment=experiment, here=here)
    path = here / given
    if found is not None or not given.name or os.path.lexists(path):
        return found or path
    kinds = {True: ("an experiment", "sweep"), False: ("a scenario", "run")}
    (one, _), (other, command) = kinds[experiment], kinds[not experiment]
    if look_for(given, experiment=not experiment) is not None:
        raise input_error("", other, f"{one} (use grid {command} {given})", str(given))
    names = [each.name for each in all_shipped() if each.is_experiment == experiment]
    names += sorted(file.name for file in path.parent.glob(f"*{_SUFFIX}"))
    what = f"{one} file or a shipped {one.partition(' ')[2]}"
    raise input_error("", "no such file", expected_name(given.name, names, what), str(given))


def look_for(given: Path, *, experiment: bool, here: Path = _CURRENT) -> Path | None:
    """As `find`, but None if there is no such file."""
    if not given.name:
        return None
    folder = experiments_folder() if experiment else shipped_folder()
    named = given if given.suffix == _SUFFIX else given.with_name(given.name + _SUFFIX)
    places = [here / given, here / named]
    if given.parent == _CURRENT or (experiment and given.parent == Path(EXPERIMENTS)):
        places.append(folder / named.name)
    # Unlike `Path.is_file`, this accepts names that are too long.
    return next((one for one in places if os.path.isfile(one)), None)  # noqa: PTH113


def _about(path: Path) -> str:
    """The first sentence of the comment that a file begins with."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.removeprefix("#").strip()
        if not line.startswith("#") or not text:
            break
        lines.append(text)
    return _SENTENCE.split(" ".join(lines))[0]


def copies(shipped: Shipped) -> dict[str, str]:
    """The texts of files to start from, by name: an experiment with the scenario that it names."""
    text = shipped.path.read_text(encoding="utf-8")
    found = re.search(r"^scenario: *\.\./(\S+)$", text, re.MULTILINE)
    if not shipped.is_experiment or found is None:
        return {shipped.path.name: text}
    scenario = shipped.path.parent.parent / found[1]
    own = scenario.name
    if own == shipped.path.name:
        own = f"{scenario.stem}-scenario{_SUFFIX}"
    text = text.replace(found[0], f"scenario: {own}")
    return {shipped.path.name: text, own: scenario.read_text(encoding="utf-8")}
