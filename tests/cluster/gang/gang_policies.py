"""Gang policies with settings, as scenarios have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.policies.gang_policy import (
    AdaptedFirstComeFirstServed,
    GangPolicy,
    LargestGangFirstServed,
)


def afcfs(settings: Mapping[str, Any]) -> GangPolicy:
    return AdaptedFirstComeFirstServed(**settings)


def lgfs(settings: Mapping[str, Any]) -> GangPolicy:
    return LargestGangFirstServed(**settings)
