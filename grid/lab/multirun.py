"""Many runs from one command line: settings with several values are the axes of an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from grid.config.load import load_scenario
from grid.lab.cases import load_experiment
from grid.lab.schema import ExperimentSection
from grid.model.errors import InputError, Mistake, shorten

_NOT_PLAIN = "[{\"'"
"""Values in YAML that begin so may have commas within."""


def several(setting: str) -> bool:
    """Whether a KEY=VALUE has several values."""
    value = setting.partition("=")[2].strip()
    return "," in value and not value.startswith(tuple(_NOT_PLAIN))


def split(settings: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Texts of the values by key, of settings with several; and the other settings.

    Raises InputError.
    """
    axes: dict[str, list[str]] = {}
    for setting in filter(several, settings):
        key, _, values = setting.partition("=")
        if key in axes:
            found = f"{','.join(axes[key])}, and then {values}"
            raise InputError([Mistake("--set", None, key, found, "all its values in one list")])
        axes[key] = [value.strip() for value in values.split(",")]
        again = [value for value, count in Counter(axes[key]).items() if count > 1]
        if again:
            found = f"{shorten(again[0])} again"
            raise InputError([Mistake("--set", None, key, found, "each value once")])
    return axes, [setting for setting in settings if not several(setting)]


def experiment_of(
    scenario: Path, settings: Sequence[str], seeds: int | Sequence[int] | None = None
) -> ExperimentSection:
    """The experiment of all values of all settings of a scenario, with the seeds 1 to `seeds`, or
    with those that are listed.

    Without them, with the scenario's own seed. Raises InputError.
    """
    axes, single = split(settings)
    first = [f"{key}={values[0]}" for key, values in axes.items()]
    loaded = load_scenario(scenario, [*single, *first])
    given: dict[str, Any] = {
        "name": loaded.name,
        "scenario": str(scenario),
        "axes": {key: [_value(text) for text in values] for key, values in axes.items()},
        "seeds": [loaded.seed],
    }
    fixed = [one for one in single if not one.startswith("seed=")]
    return load_experiment(given, overrides=fixed, seeds=seeds)


def _value(text: str) -> Any:
    from grid.config.yaml_tree import resolve

    try:
        return resolve(text)
    except ValueError:
        return text
