"""How a run stands while it goes on, for those who watch it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from grid.model.arrays import Ints
from grid.model.interventions import Intervention, LiveFacts
from grid.model.job_results import JobResults
from grid.model.time import Time
from grid.results.machines import Directory


class Beginning(NamedTuple):
    """What is known of a run before it begins.

    `submit_us` are the times at which jobs are submitted, in order, of the users of each VO;
    `runtime` is a word of the manifest; of a live run in which somebody may intervene, `live` tells
    what can be done.
    """

    name: str
    seed: int
    runtime: str
    directory: Directory
    submit_us: tuple[Ints, ...]
    live: LiveFacts | None = None


class ProcessLook(NamedTuple):
    """How one process of a run stands.

    `clusters` has a row for each of its clusters, of shape (clusters, 4): its position in the
    directory, CPUs that jobs hold, jobs that run, jobs that wait. A cluster is as it was when it
    was last played, which may be before the present, or after it where no job comes from others.
    `ended` are the jobs that ended since the last look. `messages` counts those handled so far, by
    kind; `cpu_s` is the processor time of the process so far.
    """

    clusters: Ints
    ended: list[JobResults]
    messages: Mapping[str, int]
    cpu_s: float


class Look(NamedTuple):
    """How a run stands at `now_us`, after `real_s` real seconds and so many rounds.

    `processes` are one, or those of its Ray actors. Where one of these dies, all go back to the
    last look that `is_saved`; the next look, with `began_again`, comes after that. `more` are
    figures by their names, `done` is all that somebody did to a live run, and `undone` says why
    nothing came of other wishes.
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
