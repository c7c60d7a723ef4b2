"""Environments of reinforcement learning, and agents as plugins of a grid.

`ClusterEnv` (Gymnasium) is the queue of one cluster, or the selection of one VO; `GridEnv`
(PettingZoo, parallel) is the forwarding of all VOs. `AgentPolicy`, `AgentSelection` and
`AgentForwarding` let a trained agent decide in any scenario, and need no extra package. The
environments need the extra `learning`; without it, an error names the packages to install.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from grid.integrations.learning.agents import (
    AgentForwarding,
    AgentPolicy,
    AgentSelection,
    QueueObservation,
    ResourceObservation,
)
from grid.integrations.learning.rewards import ReportedSlowdown, SlowdownSoFar, WaitSoFar

if TYPE_CHECKING:
    from grid.integrations.learning.environments import ClusterEnv, GridEnv

__all__ = [
    "AgentForwarding", "AgentPolicy", "AgentSelection", "ClusterEnv", "GridEnv",
    "QueueObservation", "ReportedSlowdown", "ResourceObservation", "SlowdownSoFar", "WaitSoFar",
]  # fmt: skip
_NEED_EXTRA = ("ClusterEnv", "GridEnv")


def __getattr__(name: str) -> Any:
    if name not in _NEED_EXTRA:
        raise AttributeError(f"module 'grid.integrations.learning' has no attribute {name!r}")
    return getattr(import_module("grid.integrations.learning.environments"), name)
