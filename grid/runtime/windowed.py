"""The grid on Ray actors in virtual time, bit-identical to one process for any placement.

All actors save a checkpoint at the same time of the run. When one dies, it is replaced, all return
to the last checkpoint, and continue to the same result.
"""

from __future__ import annotations

import time
from math import sqrt
from typing import TYPE_CHECKING, Any

import ray

from grid.config.build import Grid
from grid.config.wrapped import stall_span_us
from grid.kernel.progress import StallDetector
from grid.model.compiled import compile_kernels
from grid.model.errors import PluginFailed, RunFailed
from grid.model.job_results import JobResults
from grid.results.look import NO_OBSERVER, Look, Observer
from grid.runtime.cluster import places, ray_cluster, refuse_unsendable
from grid.runtime.outcome import RunOutcome
from grid.runtime.placement import processes_of
from grid.runtime.safe_times import is_full, is_over
from grid.runtime.sequential import warm_up
from grid.runtime.transport import LOST, Sockets, WindowActor, call_all, why_not_made

if TYPE_CHECKING:
    from grid.results.events import EventSpool

ROUNDS_A_PAUSE = 5000
SECONDS_A_PAUSE = 0.5
SECONDS_A_LOOK = 0.1
MANY_JOBS = 10_000
"""With more jobs, kernels are compiled before the run."""
ANSWER_SECONDS = 300.0
DEATHS_IN_A_ROW = 20
"""Limit of deaths without a checkpoint between them."""
SECONDS_A_DEATH = 3600.0
"""Assumed mean time between deaths of actors."""
FIRST_SAVE_SECONDS = 0.02
"""Assumed cost of a checkpoint until it is measured."""


class ActorDied(RunFailed):
    """Ray actors of the run died repeatedly, or one cannot start."""


def run_windowed(
    grid: Grid,
    placement: str = "vo",
    *,
    actors: int | None = None,
    address: str | None = None,
    rounds_a_checkpoint: int | None = None,
    compile_first: bool = False,
    spool: EventSpool | None = None,
    observer: Observer = NO_OBSERVER,
) -> RunOutcome:
    """Run `grid` on Ray actors until nothing is left to do; its events go to `spool`, if given.

    `placement` is `vo`, `cluster` or `entity`; `actors` is the number of actors for placement `vo`
    (default: one for each CPU of the cluster). Checkpoints are `rounds_a_checkpoint` apart
    (default: at the optimal interval). Raises ActorDied.
    """
    started = time.perf_counter()
    if compile_first or sum(grid.jobs_by_vo()) > MANY_JOBS:
        # Once, rather than in each actor.
        compile_first = True
        compile_kernels()
        warm_up(grid)
    observer.stage("starting Ray" if address is None else "connecting to Ray")
    with ray_cluster(address, watch=True):
        process_of = processes_of(
            grid, placement, actors or int(ray.cluster_resources().get("CPU", 1))
        )
        with places(max(process_of) + 1) as options:
            observer.stage(f"starting {len(options)} Ray actors")
            settings = {
                "events": spool is not None,
                "is_watched": observer.wants_looks,
                "compile_first": compile_first,
            }
            run = _Run(grid, process_of, options, settings, spool, observer)
            run.rounds_a_checkpoint = rounds_a_checkpoint
            try:
                run.begin()
                observer.stage("running")
                wall, cpu = time.perf_counter(), time.process_time()
                total = run.to_end()
                total.cpu_seconds += time.process_time() - cpu
                total.wall_seconds = time.perf_counter() - wall
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, PluginFailed):
                    raise error.cause from None
                raise
            finally:
                run.stop()
    total.start_seconds = wall - started
    return total


class _Run:
    """The actors of a run, replaced as they die, and their last checkpoint."""

    rounds_a_checkpoint: int | None = None

    def __init__(
        self,
        grid: Grid,
        process_of: list[int],
        options: list[dict[str, Any]],
        settings: dict[str, Any],
        spool: EventSpool | None,
        observer: Observer,
    ) -> None:
        self._grid = grid
        self._options = options
        self._spool = spool
        self._observer = observer
        refuse_unsendable(grid.plugins)
        members: list[list[int]] = [[] for _ in options]
        for entity, (process, vo) in enumerate(zip(process_of, grid.sites, strict=True)):
            # A VO whose jobs all enter clusters directly sends nothing to other VOs.
            if grid.submitted[vo] is not None or grid.direct[vo] is None:
                members[process].append(entity)
        self._lookahead = grid.network.lookahead(members)
        self._arguments = ray.put(grid), ray.put(process_of), ray.put(self._lookahead), settings
        self._states: list[bytes | None] = [None for _ in options]
        self._chunks: list[JobResults] = []
        """The jobs that had ended at the checkpoint."""
        self._rounds = self._unsaved_rounds = 0
        self._save_s = FIRST_SAVE_SECONDS
        self._begun = self._saved_at = time.perf_counter()
        self._actors = [self._start_actor(number) for number in range(len(options))]
        self._began_again = False
        self._deaths = 0
        self._missing = 0
        """The actor that was last found dead."""

    def _start_actor(self, number: int) -> Any:
        actor: Any = WindowActor
        return actor.options(**self._options[number]).remote(number, *self._arguments)

    def begin(self, *, is_counted: bool = False) -> None:
        """Return all actors to the last checkpoint, or to the beginning of the run.

        With `is_counted` the death of an actor that will be found missing here was counted.
        """
        while True:
            nodes = self._restored()
            if nodes is None:
                if not is_counted:
                    self._count_death()
                is_counted = False
                continue
            try:
                self._link = Sockets(self._actors, nodes)
            except LOST:
                # An actor that died while the others connected is found missing next.
                self._count_death()
                is_counted = True
            else:
                self._unsaved_rounds, self._saved_at = 0, time.perf_counter()
                return

    def _restored(self) -> list[str] | None:
        """The node of each actor, restored; None if one was dead, which is replaced."""
        states = zip(self._actors, self._states, strict=True)
        calls = [actor.begin.remote(state) for actor, state in states]
        nodes = []
        for number, call in enumerate(calls):
            try:
                nodes.append(ray.get(call, timeout=ANSWER_SECONDS))
            except LOST as lost:
                if reason := why_not_made(lost):
                    raise ActorDied(f"Ray actor {number} cannot start: {reason}") from None
                self._actors[number] = self._start_actor(number)
                self._missing = number
            except ray.exceptions.GetTimeoutError:
                raise ActorDied(f"actor {number} does not respond") from None
        return nodes if len(nodes) == len(calls) else None

    def _count_death(self) -> None:
        self._deaths += 1
        if self._deaths > DEATHS_IN_A_ROW:
            raise ActorDied(
                f"Ray actors died {self._deaths} times in a row, most recently actor "
                f"{self._missing}: there is not enough memory, or a plugin terminates its process "
                "(with --in-process, it would terminate the command)"
            )

    def to_end(self) -> RunOutcome:
        """Run rounds until nothing is left to do, or no job makes progress."""
        stalls = StallDetector(stall_span_us(self._grid))
        while True:
            try:
                stalled = None
                while stalled is None:
                    stalled = self._some_rounds(stalls)
                self._look(is_over=True)
                total = self._outcome()
                total.rounds, total.stalled = self._rounds, stalled or None
                return total
            except LOST:
                self._count_death()
                self._began_again = True
                self.begin(is_counted=True)

    def _some_rounds(self, stalls: StallDetector) -> str | None:
        """Run rounds up to a pause; a text once the run is over, empty if it did not stall."""
        seconds = SECONDS_A_LOOK if self._observer.wants_looks else SECONDS_A_PAUSE
        most = ROUNDS_A_PAUSE
        if self.rounds_a_checkpoint is not None:
            most = min(most, self.rounds_a_checkpoint - self._unsaved_rounds)
        done, reports = self._link.run(most, seconds)
        self._rounds += done
        self._unsaved_rounds += done
        self._now = max(one.now for one in reports)
        if is_over(reports):
            return ""
        if stalls.is_due(self._now):
            stalled = stalls.check(self._now, call_all(self._actors, "progress"))
            if stalled is not None:
                return stalled
        if self._checkpoint_is_due() or is_full(reports):
            self._save()
        jobs = sum(self._grid.jobs_by_vo())
        self._observer.progress(self._now, sum(one.jobs for one in reports), jobs)
        self._look()
        return None

    def _checkpoint_is_due(self) -> bool:
        """Whether to save: by default every sqrt(2 C T) seconds.

        That is optimal if a checkpoint takes C and an actor dies every T seconds (J. W. Young, "A
        first order approximation to the optimum checkpoint interval", 1974).
        """
        if self.rounds_a_checkpoint is not None:
            return self._unsaved_rounds >= self.rounds_a_checkpoint
        passed_s = time.perf_counter() - self._saved_at
        return passed_s > sqrt(2 * self._save_s * SECONDS_A_DEATH)

    def _save(self) -> None:
        """Save a checkpoint."""
        began = time.perf_counter()
        self._look(is_saved=True)
        saved = call_all(self._actors, "save")
        for number, one in enumerate(saved):
            if self._spool is not None:
                self._spool.add(number, one.events)
            self._chunks += one.chunks
        self._states = [one.state for one in saved]
        self._deaths = self._unsaved_rounds = 0
        self._saved_at = time.perf_counter()
        self._save_s = self._saved_at - began

    def _look(self, *, is_saved: bool = False, is_over: bool = False) -> None:
        """Call the observer, if there is one and it is due."""
        observer = self._observer
        if not observer.wants_looks or not (is_saved or is_over or observer.is_due()):
            return
        looks = call_all(self._actors, "look")
        real_s = time.perf_counter() - self._begun
        again, self._began_again = self._began_again, False
        observer.look(Look(self._now, real_s, self._rounds, tuple(looks), is_saved, again, is_over))

    def _outcome(self) -> RunOutcome:
        """The records of all actors, and their costs."""
        total = RunOutcome(chunks=list(self._chunks), actors=len(self._actors))
        parts = call_all(self._actors, "outcome")
        for number, part in enumerate(parts):
            if self._spool is not None:
                self._spool.add(number, part.events)
            total.add(part)
        return total

    def stop(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
