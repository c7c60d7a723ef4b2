"""Types of numbers and names with their limits, for the models of scenarios and platforms."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from grid.model.plugins.settings import NAME

Name = Annotated[str, Field(pattern=f"^{NAME}$")]
PluginName = Annotated[str, Field(pattern=rf"^({NAME}|[^\x00-\x1f]{{1,1000}}:[A-Za-z_]\w*)$")]
"""The name of a plugin, or its reference, as `path/to/file.py:Name`."""
Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Whole = Annotated[int, Field(ge=-1, le=2**53, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=1e9, strict=True)]
PositiveSeconds = Annotated[float, Field(ge=1e-6, le=1e9, strict=True)]
Cost = Annotated[int, Field(ge=0, le=10**15, strict=True)]
"""A duration in microseconds."""
Megabytes = Annotated[float, Field(ge=0, le=1e9, strict=True)]
Watts = Annotated[float, Field(ge=0, le=1e9, strict=True)]
Mips = Annotated[float, Field(ge=1, le=1e9, strict=True)]
"""The lower limit lets a job of the longest run time or input end before `NEVER`."""
Bandwidth = Annotated[float, Field(ge=0.01, le=1e9, strict=True)]
Factor = Annotated[float, Field(ge=0.01, le=100, strict=True)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
Switch = Annotated[bool, Field(strict=True)]
Copies = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
PluginSettings = tuple[tuple[str, object], ...]
OperatingSystem = Literal["linux", "macos", "solaris", "windows"]
Architecture = Literal["x86_32", "x86_64"]
OverrunRule = Literal["kill", "extend"]
EstimateSource = Literal["user", "exact", "average"]
PriorityRule = Literal["none", "local", "remote"]
