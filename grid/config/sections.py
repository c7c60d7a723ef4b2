"""What all sections of a scenario share: names, numbers with their limits, parts with settings."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grid.model.platform import ARCHITECTURES, OPERATING_SYSTEMS
from grid.model.plugins.settings import NAME

Name = Annotated[str, Field(pattern=f"^{NAME}$")]
PartName = Annotated[str, Field(pattern=rf"^({NAME}|[^\x00-\x1f]{{1,1000}}:[A-Za-z_]\w*)$")]
"""Of something that plugs in: its name, or where it stands, as `path/to/file.py:Name`."""
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Whole = Annotated[int, Field(ge=-1, le=2**53, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=1e9, strict=True)]
PositiveSeconds = Annotated[float, Field(ge=1e-6, le=1e9, strict=True)]
Megabytes = Annotated[float, Field(ge=0, le=1e9, strict=True)]
# So slow and no slower that a job of the longest run time or input still ends before `NEVER`.
Mips = Annotated[float, Field(ge=1, le=1e9, strict=True)]
Bandwidth = Annotated[float, Field(ge=0.01, le=1e9, strict=True)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
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
    Literal["kill", "extend"],
    Field(
        description="What happens to a job that runs longer than its user's estimate times "
        "`estimate_factor`: it fails then, or goes on. Jobs of a trace run at most for their "
        "estimate unless their workload has `cut_at_estimate: false`."
    ),
]
Estimates = Annotated[
    Literal["user", "exact", "average"],
    Field(
        description="What the local policy knows of run times: what users say, the truth, or "
        "the average of the user's last two jobs that ended here, at most what the user says. With "
        "`overrun: kill` a job is killed when it has run as long as its user said; never under "
        "`exact`."
    ),
]
EstimateFactor = Annotated[
    float,
    Field(
        ge=0.01,
        le=100,
        strict=True,
        description="Multiplies the estimates of users, also for `overrun: kill`: with 0.5 a job "
        "that runs for more than half of its estimate fails.",
    ),
]
OperatingSystem = Literal["linux", "macos", "solaris", "windows"]
Architecture = Literal["x86_32", "x86_64"]

assert OperatingSystem.__args__ == OPERATING_SYSTEMS  # type: ignore[attr-defined]
assert Architecture.__args__ == ARCHITECTURES  # type: ignore[attr-defined]


class Section(BaseModel):
    """A mapping in a scenario. Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PartSection(Section):
    """Something that plugs in, with its settings (see `grid parts`)."""

    name: PartName = Field(
        description="Its name, or where it stands: `path/to/file.py:Name` or `module:Name`."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Its settings by name, as `grid parts KIND NAME` shows."
    )


def name_and_settings(
    section: PartSection | str,
) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """What a scenario says of something that plugs in, as the grid has it."""
    if isinstance(section, str):
        return section, ()
    return section.name, tuple(sorted(section.settings.items()))
