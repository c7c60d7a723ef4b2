"""Types of numbers, names and plugins with their limits, and the base of all sections.

A section is a mapping of a scenario. Its class is also what entities and engines use: durations are
in seconds in the fields, and `Microseconds` derives the times of the emulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.dataclasses import dataclass
from pydantic.fields import FieldInfo

from grid.model.errors import Path
from grid.model.plugins.settings import NAME
from grid.model.time import NEVER, Time, from_seconds

Name = Annotated[str, Field(pattern=f"^{NAME}$")]
PluginName = Annotated[str, Field(pattern=rf"^({NAME}|[^\x00-\x1f]{{1,1000}}:[A-Za-z_]\w*)$")]
"""The name of a plugin, or its reference, as `path/to/file.py:Name`."""
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Cpus = Annotated[int, Field(ge=1, le=10_000_000, strict=True)]
Whole = Annotated[int, Field(ge=-1, le=2**53, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=1e9, strict=True)]
PositiveSeconds = Annotated[float, Field(ge=1e-6, le=1e9, strict=True)]
Megabytes = Annotated[float, Field(ge=0, le=1e9, strict=True)]
Watts = Annotated[float, Field(ge=0, le=1e9, strict=True)]
Mips = Annotated[float, Field(ge=1, le=1e9, strict=True)]
"""The lower limit lets a job of the longest run time or input end before `NEVER`."""
Seed = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
Switch = Annotated[bool, Field(strict=True)]
OperatingSystem = Literal["linux", "macos", "solaris", "windows"]
Architecture = Literal["x86_32", "x86_64"]
OPERATING_SYSTEMS: tuple[str, ...] = get_args(OperatingSystem)
ARCHITECTURES: tuple[str, ...] = get_args(Architecture)
Property = Literal[
    "operating_system", "architecture", "execution_time", "speed", "cores", "ram", "disk"
]
PROPERTIES: tuple[str, ...] = get_args(Property)
"""Kinds of requirements that are not amounts of a named resource."""


def _is_no_property(name: str) -> str:
    if name in (*PROPERTIES, "cpus", "ram_mb", "disk_mb"):
        raise ValueError("another name: this one is a key or a kind of requirement")
    return name


Amounts = dict[
    Annotated[Name, AfterValidator(_is_no_property)],
    Annotated[float, Field(ge=0, le=1e9, strict=True)],
]
"""Amounts of resources by name."""
REFERENCE_MIPS = 1000.0
"""Speed of the CPU that run times refer to, by default."""

OwnSeed = Annotated[
    Seed | None,
    Field(
        description=(
            "Seed for everything generated here, which is then the same for all seeds of the "
            "scenario. Default: derived from the scenario's seed."
        )
    ),
]


def _one_if_exact(factor: float, info: ValidationInfo) -> float:
    if info.data.get("estimates") == "exact" and factor != 1:
        raise ValueError("1, with `estimates: exact`")
    return factor


Overrun = Annotated[
    Literal["kill", "extend"],
    Field(
        description=(
            "What happens to a job that runs longer than its user's estimate times "
            "`estimate_factor`: it then fails, or continues. Jobs from a trace run for at most "
            "their estimate unless their workload has `cut_at_estimate: false`."
        )
    ),
]
Estimates = Annotated[
    Literal["user", "exact", "average"],
    Field(
        description=(
            "The run times that the local policy uses: the users' estimates, the actual run times, "
            "or the average of the user's last two jobs that ended in this cluster, but at most "
            "the estimate. With `overrun: kill`, a job is killed at its estimate, but never under "
            "`exact`."
        )
    ),
]
EstimateFactor = Annotated[
    Annotated[float, Field(ge=0.01, le=100, strict=True)],
    AfterValidator(_one_if_exact),
    Field(
        description=(
            "Factor applied to users' estimates, including the limit of `overrun: kill`: with 0.5, "
            "a job that runs for more than half of its estimate fails."
        )
    ),
]


class PluginOf(NamedTuple):
    """Metadata of a field that names plugins of a kind."""

    kind: str


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
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        ignored_types=(Microseconds,),
        use_attribute_docstrings=True,
    )


PLATFORM = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
"""The configuration of sections that are dataclasses, for positional arguments and `replace`."""


@dataclass(frozen=True, config=PLATFORM)
class PluginRef:
    """A plugin with its settings (see `grid plugins`), or just its name."""

    name: PluginName
    """Its name, or its location: `path/to/file.py:Name` or `module:Name`."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Its settings by name; `grid plugins KIND NAME` lists them."""

    @model_validator(mode="before")
    @classmethod
    def _of_name(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @property
    def short_name(self) -> str:
        """The name of the class or function of a reference; any other name as it is."""
        return self.name.rpartition(":")[2]


def keys_of(section: Any) -> dict[str, FieldInfo]:
    """The keys of a section, or of its class, with their declarations."""
    return _keys_of(section if isinstance(section, type) else type(section))


@cache
def _keys_of(section: Any) -> dict[str, FieldInfo]:
    fields: dict[str, FieldInfo] = section.__pydantic_fields__
    for field in fields.values():
        # A docstring has line ends.
        field.description = " ".join((field.description or "").split()) or None
    return {key: field for key, field in fields.items() if not field.exclude}


def is_section(value: object) -> bool:
    """Whether a value, or a class, is a section."""
    return hasattr(value, "__pydantic_fields__")


def sections_in(annotation: Any) -> list[Any]:
    """The classes of sections that a type may be, or that a tuple of it may have."""
    if is_section(annotation):
        return [annotation]
    return [section for inner in get_args(annotation) for section in sections_in(inner)]


def entries(section: Any, key: str, path: Path) -> Iterator[tuple[Path, Any]]:
    """The value of a key with its path; those of the entries, if it is a list."""
    value = getattr(section, key)
    if isinstance(value, tuple):
        yield from (((*path, key, place), one) for place, one in enumerate(value))
    elif value is not None:
        yield (*path, key), value
