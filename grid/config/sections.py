"""The base of all sections of a scenario, and the metadata of their fields."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from grid.model.fields import (
    EstimateSource,
    Factor,
    OverrunRule,
    PluginName,
    PositiveSeconds,
    Seconds,
    Seed,
)
from grid.model.time import NEVER, Time, from_seconds

OwnSeed = Annotated[
    Seed | None,
    Field(
        description="Seed of what is generated here, which is then the same under every seed of "
        "the scenario. Default: drawn from the scenario's seed."
    ),
]
Joins = Annotated[
    Seconds,
    Field(
        description="When the VO joins the grid. Until then its users' jobs can use only its own "
        "resources, and no other VO can use these."
    ),
]
Leaves = Annotated[
    PositiveSeconds | None,
    Field(
        description="When the VO leaves the grid, after it has joined. Jobs that are assigned stay "
        "there; those on their way to it are refused (`when_refused`). Default: never."
    ),
]
Overrun = Annotated[
    OverrunRule,
    Field(
        description="What happens to a job that runs longer than its user's estimate times "
        "`estimate_factor`: it fails then, or goes on. Jobs of a trace run at most for their "
        "estimate unless their workload has `cut_at_estimate: false`."
    ),
]
Estimates = Annotated[
    EstimateSource,
    Field(
        description="The run times that the local policy uses: the users' estimates, the actual "
        "run times, or the average of the user's last two jobs that ended here, at most the "
        "estimate. With `overrun: kill` a job is killed at its estimate; never under `exact`."
    ),
]
EstimateFactor = Annotated[
    Factor,
    Field(
        description="Multiplies the estimates of users, also for `overrun: kill`: with 0.5 a job "
        "that runs for more than half of its estimate fails.",
    ),
]


class PluginOf(NamedTuple):
    """Metadata of a field that names plugins of a kind."""

    kind: str


class TakesEffect(NamedTuple):
    """Metadata of a field that is an error under a condition unless it has its default value.

    The conditions are those of `grid.config.checks.NO_EFFECT`; `harmless` values pass, too.
    """

    unless: str
    harmless: tuple[Any, ...] = ()


class Microseconds:
    """An attribute of a section: the time that `key` gives in seconds, in microseconds.

    None means `NEVER`.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def __get__(self, section: Any, owner: type) -> Time:
        seconds = getattr(section, self._key)
        return NEVER if seconds is None else from_seconds(seconds)


class Section(BaseModel):
    """A mapping in a scenario. Unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, ignored_types=(Microseconds,)
    )


class PluginSection(Section):
    """A plugin with its settings (see `grid plugins`)."""

    name: PluginName = Field(
        description="Its name, or its place: `path/to/file.py:Name` or `module:Name`."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Its settings by name, as `grid plugins KIND NAME` shows."
    )


def name_and_settings(
    section: PluginSection | str,
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """A plugin of a scenario as its name and its settings."""
    if isinstance(section, str):
        return section, ()
    return section.name, tuple(sorted(section.settings.items()))
