"""A grid as an environment of reinforcement learning, and agents as parts of a grid.

`ClusterEnv` (Gymnasium) is the queue of one cluster, or the selection of one VO; `GridEnv`
(PettingZoo, parallel) is the forwarding of all VOs. `AgentPolicy`, `AgentSelection` and
`AgentForwarding` let what was trained there decide in any scenario; they need nothing installed.
The environments need the extra `learning` of the package; without it, a line says what to install.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grid.integrations.learning.cluster_env import ClusterEnv
    from grid.integrations.learning.grid_env import GridEnv
    from grid.integrations.learning.queue_agent import AgentPolicy, QueueObservation
    from grid.integrations.learning.resource_agent import (
        AgentForwarding,
        AgentSelection,
        ResourceObservation,
    )
    from grid.integrations.learning.rewards import (
        EndedSlowdown,
        SlowdownSoFar,
        SlowdownTold,
        WaitSoFar,
    )
    from grid.runtime.ray_envs import RayVectorEnv

__all__ = [
    "AgentForwarding",
    "AgentPolicy",
    "AgentSelection",
    "ClusterEnv",
    "EndedSlowdown",
    "GridEnv",
    "QueueObservation",
    "RayVectorEnv",
    "ResourceObservation",
    "SlowdownSoFar",
    "SlowdownTold",
    "WaitSoFar",
]

_PLACES = {
    "ClusterEnv": "cluster_env",
    "RayVectorEnv": "grid.runtime.ray_envs",
    "GridEnv": "grid_env",
    "AgentPolicy": "queue_agent",
    "QueueObservation": "queue_agent",
    "AgentForwarding": "resource_agent",
    "AgentSelection": "resource_agent",
    "ResourceObservation": "resource_agent",
    "EndedSlowdown": "rewards",
    "SlowdownSoFar": "rewards",
    "SlowdownTold": "rewards",
    "WaitSoFar": "rewards",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'grid.integrations.learning' has no attribute {name!r}")
    place = _PLACES[name]
    return getattr(
        import_module(place if "." in place else f"grid.integrations.learning.{place}"), name
    )
