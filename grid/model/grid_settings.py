"""What holds for a grid as a whole: its seed, its network, its protocol and its faults."""

from __future__ import annotations

from dataclasses import dataclass

from grid.model.faults import GridFaults
from grid.model.measured_jobs import ALL_JOBS, MeasuredJobs
from grid.model.time import SECOND_US, Time


@dataclass(frozen=True, slots=True)
class Link:
    """The latency between two VOs, in both directions, where it differs from the default."""

    between: tuple[str, str]
    latency_us: Time


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """How long messages take between VOs (`latency_us`) and within one (`local_latency_us`).

    `bandwidth_mbps` is megabits a second between VOs, for a job's input; None: no limit.
    """

    latency_us: Time = 50_000
    local_latency_us: Time = 1_000
    bandwidth_mbps: float | None = None
    links: tuple[Link, ...] = ()

    @property
    def longest_us(self) -> Time:
        """The longest latency of all."""
        latencies = (link.latency_us for link in self.links)
        return max(self.latency_us, self.local_latency_us, *latencies)


@dataclass(frozen=True, slots=True)
class ProtocolRules:
    """How VOs inform each other and pass jobs on (PU 3.2).

    - `ttl`: how many times a job may be forwarded.
    - `when_busy`: the rule of forwarding, such as `queue`, `forward` or `reject`.
    - `avoid_loops`: whether a job remembers where it was, and does not go there again.
    - `when_refused`: what a job does that a VO does not take in: it tries the `next`, waits at
      `home`, or the answer is to `reject` it.
    - `information`: the overlay by which VOs hear of each other, such as `all`, `ring`, `gossip`.
    - `discount`: how a reader takes old status, such as `as_told`.
    - `snapshot_detail`: `full` (a row for each resource) or `summary` (two for a VO).
    - A VO publishes a snapshot every `snapshot_period_us`, when its load (assigned CPUs / CPUs)
      rises above `snapshot_load_limit`, and when more than `snapshot_jobs_limit` jobs were
      assigned there since the last one; None: never for that.
    """

    ttl: int = 3
    when_busy: str = "queue"
    when_busy_settings: tuple[tuple[str, object], ...] = ()
    avoid_loops: bool = False
    when_refused: str = "next"
    information: str = "all"
    information_settings: tuple[tuple[str, object], ...] = ()
    discount: str = "as_told"
    discount_settings: tuple[tuple[str, object], ...] = ()
    snapshot_detail: str = "full"
    snapshot_period_us: Time | None = 60 * SECOND_US
    snapshot_load_limit: float | None = 0.9
    snapshot_jobs_limit: int | None = 10


@dataclass(frozen=True, slots=True)
class GridSettings:
    """What a run needs to know beside VOs and jobs. All that is drawn comes from `seed`.

    Figures of jobs are of those that are `measured`.
    """

    seed: int = 1
    network: NetworkSettings = NetworkSettings()
    protocol: ProtocolRules = ProtocolRules()
    faults: GridFaults | None = None
    measured: MeasuredJobs = ALL_JOBS
