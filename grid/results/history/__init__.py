"""One job's story, and why it waits: pure functions of the events of a run.

- `job_story(key, events)`: what happened to a job, a sentence for each step.
- `ClusterLog(facts, events).at(time_us)`: who runs and who waits in a cluster at a moment.
- `why_waiting(key, state)`: what a job that waits there lacks, and whom it is behind.
- `whereabouts(key, events, time_us)`: what the job is doing or waiting for at a moment.

Events are `grid.model.event.Event`, in the order of the run; those about other jobs do no harm.
"""

from grid.results.history.cluster_log import ClusterLog, ClusterState
from grid.results.history.job_story import Line, job_story, whereabouts
from grid.results.history.waiting import NOT_KEPT, WhyWaiting, why_waiting

__all__ = [
    "NOT_KEPT",
    "ClusterLog",
    "ClusterState",
    "Line",
    "WhyWaiting",
    "job_story",
    "whereabouts",
    "why_waiting",
]
