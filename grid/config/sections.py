"""What all sections of a scenario share: names, numbers with their limits, parts with settings."""

from __future__ import annotations

from typing import Annotated, Any

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
        description="When the VO leaves the grid, after it has joined. Jobs that have a place stay "
        "there; those on their way to it are turned away (`when_refused`). Default: never."
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
        description="What the local policy knows of run times: what users say, the truth, or "
        "the average of the user's last two jobs that ended here, at most what the user says. With "
        "`overrun: kill` a job is killed when it has run as long as its user said; never under "
        "`exact`."
    ),
]
EstimateFactor = Annotated[
    Factor,
    Field(
        description="Multiplies the estimates of users, also for `overrun: kill`: with 0.5 a job "
        "that runs for more than half of its estimate fails.",
    ),
]


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
    """Something that plugs in, with its settings (see `grid parts`)."""

    name: PluginName = Field(
        description="Its name, or where it stands: `path/to/file.py:Name` or `module:Name`."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Its settings by name, as `grid parts KIND NAME` shows."
    )


def name_and_settings(
    section: PluginSection | str,
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """What a scenario says of something that plugs in, as the grid has it."""
    if isinstance(section, str):
        return section, ()
    return section.name, tuple(sorted(section.settings.items()))
