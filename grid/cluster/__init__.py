"""The state of one cluster between two messages: machines, jobs on them, the policy's plans."""

from grid.cluster.engines import make_cluster
from grid.cluster.shell import ClusterShell, PlanError

__all__ = ["ClusterShell", "PlanError", "make_cluster"]
