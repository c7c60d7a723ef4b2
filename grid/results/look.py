"""State of a run while it runs, for observers such as the live page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from grid.model.arrays import Ints
from grid.model.interventions import Action, Intervention, LiveFacts
from grid.model.job_results import JobResults
from grid.model.time import Time
from grid.results.machines import Directory


class Beginning(NamedTuple):
    """The facts of a run that are known before it begins.

    `submit_us` are the submission times of the users' jobs of each VO, in order; `runtime` is that
    of the manifest; `live` describes possible interventions in a live run.
    """

    name: str
    seed: int
    runtime: str
    directory: Directory
    submit_us: tuple[Ints, ...]
    live: LiveFacts | None = None


class ProcessLook(NamedTuple):
    """State of one process of a run.

    `clusters` has a row for each of its clusters, of shape (clusters, 4): position in the
    directory, CPUs that jobs hold, running jobs, waiting jobs. A cluster is as it was when it was
    last simulated: before the present, or after it, if no job arrives from others (in virtual time
    only). `ended` are the jobs that ended since the last look; `messages` counts those handled, by
    kind; `cpu_s` is the CPU time of the process.
    """

    clusters: Ints
    ended: list[JobResults]
    messages: Mapping[str, int]
    cpu_s: float


class Look(NamedTuple):
    """State of a run at `now_us`, after `real_s` real seconds and `rounds` rounds.

    If a Ray actor dies, all of them return to the last look that `is_saved`; the next look has
    `began_again`. `more` are further values by name, `done` the interventions in a live run, and
    `undone` the reasons why others had no effect.
    """

    now_us: Time
    real_s: float
    rounds: int
    processes: tuple[ProcessLook, ...]
    is_saved: bool = False
    began_again: bool = False
    is_over: bool = False
    more: Mapping[str, float] = {}
    done: tuple[Intervention, ...] = ()
    undone: tuple[str, ...] = ()


class Observer:
    """Receives the progress of a run; one that `wants_looks` receives its states, too.

    This class ignores everything. An observer of a live run may request interventions.
    """

    wants_looks = False

    def stage(self, name: str) -> None:
        """A stage of the run begins, such as "starting Ray"."""

    def progress(self, now: Time, jobs: int, total: int, more: str = "") -> None:
        """At time `now`, `jobs` of `total` have ended; `more` is a description."""

    def begin(self, beginning: Beginning) -> None:
        """A run that is observed begins."""

    def is_due(self) -> bool:
        """Whether to call `look` now. Called very often."""
        return False

    def look(self, look: Look) -> None:
        """The state of the run, which continues when this returns."""

    def requests(self) -> Sequence[Action]:
        """New interventions in a live run; none in virtual time."""
        return ()


NO_OBSERVER = Observer()
