"""The grid on Ray actors in virtual time, bit-identical to one process for any placement.

All actors save a checkpoint at the same time of the run. When one dies, it is replaced, all return
to the last checkpoint, and continue to the same result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import ray

from grid.config.build import Grid
from grid.config.warm_up import warm_up
from grid.config.wrapped import stall_span_us
from grid.kernel.progress import ProcessProgress, StallDetector
from grid.model.compiled import compile_kernels
from grid.model.errors import PluginFailed, RunFailed
from grid.model.job_results import JobResults
from grid.results.ceiling import CORES, Timings, ceiling, joined
from grid.results.look import NO_OBSERVER, Look, Observer
from grid.runtime.cluster import places, ray_cluster, refuse_unsendable
from grid.runtime.outcome import RunOutcome
from grid.runtime.placement import better_process_of, deal
from grid.runtime.safe_times import is_full, is_over
from grid.runtime.transport import (
    LOST,
    RayCalls,
    Sockets,
    Transport,
    WindowActor,
    answers,
    why_not_made,
)
from grid.runtime.window import Played, rebalanced

if TYPE_CHECKING:
    from grid.results.events import EventSpool

ROUNDS_A_PAUSE = 5000
SECONDS_A_PAUSE = 0.5
SECONDS_A_LOOK = 0.1
MANY_JOBS = 10_000
"""With more jobs, kernels are compiled before the run."""
ANSWER_SECONDS = 300.0
MOST_TO_DEAL = 1_000_000_000
"""VOs are not rebalanced if the states, in bytes, are larger: the driver would hold them all."""
DEATHS_IN_A_ROW = 20
"""Limit of deaths without a checkpoint between them."""


class ActorDied(RunFailed):
    """Ray actors of the run died repeatedly, or one cannot start."""


def run_windowed(
    grid: Grid,
    placement: str = "vo",
    *,
    actors: int | None = None,
    address: str | None = None,
    transport: str = "sockets",
    rounds_a_checkpoint: int | None = None,
    compile_first: bool = False,
    spool: EventSpool | None = None,
    observer: Observer = NO_OBSERVER,
    profile: bool = False,
) -> RunOutcome:
    """Run `grid` on Ray actors until nothing is left to do; its events go to `spool`, if given.

    `placement` is `vo`, `cluster` or `entity`; `actors` is the number of actors for placement `vo`
    (default: one for each CPU of the cluster); `transport` is `sockets` or `calls`. Checkpoints are
    `rounds_a_checkpoint` apart (default: see `Checkpoints`). With `profile` the outcome's profile
    predicts run times for more CPUs. Raises ActorDied.
    """
    started = time.perf_counter()
    if compile_first or sum(grid.jobs_by_vo()) > MANY_JOBS:
        # Once, rather than in each actor.
        compile_first = True
        compile_kernels()
        warm_up(grid)
    observer.stage("starting Ray" if address is None else "connecting to Ray")
    with ray_cluster(address, watch=True):
        count = actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        process_of = deal(grid, placement, count)
        with places(max(process_of) + 1) as options:
            observer.stage(f"starting {len(options)} Ray actors")
            more = {"profile": profile, "compile_first": compile_first}
            workers = _Workers(grid, process_of, options, transport, spool, observer, more)
            try:
                workers.begin()
                observer.stage("running")
                wall, cpu = time.perf_counter(), time.process_time()
                checkpoints = Checkpoints(rounds_a_checkpoint)
                stalls = StallDetector(stall_span_us(grid))
                total = _drive(workers, sum(grid.jobs_by_vo()), checkpoints, observer, stalls)
                total.cpu_seconds += time.process_time() - cpu
                total.wall_seconds = time.perf_counter() - wall
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, PluginFailed):
                    raise error.cause from None
                raise
            finally:
                workers.stop()
    total.start_seconds = wall - started
    return total


SECONDS_A_DEATH = 3600.0
"""Assumed mean time between deaths of actors."""
FIRST_SAVE_SECONDS = 0.02
"""Assumed cost of a checkpoint until it is measured."""
MANY_ROUNDS = 2**31


class Checkpoints:
    """When to save a checkpoint: after `rounds`, or, with None, at the optimal interval.

    That is sqrt(2 C T) seconds if a checkpoint takes C and an actor dies every T seconds (J. W.
    Young, "A first order approximation to the optimum checkpoint interval", 1974).
    """

    def __init__(self, rounds: int | None) -> None:
        self._rounds = rounds
        self._save_s = FIRST_SAVE_SECONDS
        self.restored()

    def restored(self) -> None:
        """The state is that of the last checkpoint."""
        self._unsaved, self._saved_at = 0, time.perf_counter()

    def rounds_left(self) -> int:
        """Rounds until the next call of `is_due`."""
        return MANY_ROUNDS if self._rounds is None else self._rounds - self._unsaved

    def is_due(self, rounds: int) -> bool:
        """Whether to save after `rounds` more."""
        self._unsaved += rounds
        if self._rounds is not None:
            return self._unsaved >= self._rounds
        passed_s = time.perf_counter() - self._saved_at
        return passed_s > sqrt(2 * self._save_s * SECONDS_A_DEATH)

    def save(self, save: Callable[[], None]) -> None:
        began = time.perf_counter()
        save()
        self.restored()
        self._save_s = self._saved_at - began


@dataclass(slots=True)
class _Checkpoint:
    """States of all processes; `chunks` are the jobs that had ended.

    `timings` are those of each process, from one checkpoint to the next.
    """

    states: list[bytes | None]
    chunks: list[JobResults]
    timings: list[list[Timings]]


class _Workers:
    """The actors of a run, replaced as they die."""

    def __init__(
        self,
        grid: Grid,
        process_of: list[int],
        options: list[dict[str, Any]],
        transport: str,
        spool: EventSpool | None,
        observer: Observer,
        how: dict[str, Any],
    ) -> None:
        self._grid = grid
        self._options = options
        self._transport = transport
        self._spool = spool
        self._observer = observer
        self._how = {"events": spool is not None, "is_watched": observer.wants_looks, **how}
        self._began_again = False
        self._begun = time.perf_counter()
        refuse_unsendable(grid.plugins)
        self._shared = ray.put(grid)
        self._deal(process_of)
        self._seconds = np.zeros(len(grid.vos))
        """Measured seconds of VOs."""
        self.rebalanced = 0
        self._saved = _Checkpoint([None for _ in options], [], [[] for _ in options])
        self._actors = [self._start_worker(number) for number in range(len(options))]
        self.deaths = 0
        self._missing = 0
        """The actor that was last found dead."""

    def _deal(self, process_of: list[int]) -> None:
        grid = self._grid
        members: list[list[int]] = [[] for _ in self._options]
        for entity, (process, vo) in enumerate(zip(process_of, grid.sites, strict=True)):
            # A VO whose jobs all enter clusters directly sends nothing to other VOs.
            if grid.submitted[vo] is not None or grid.direct[vo] is None:
                members[process].append(entity)
        self._process_of = process_of
        self._dealing = ray.put(process_of), ray.put(grid.network.lookahead(members))

    def begin(self, *, is_counted: bool = False) -> None:
        """Return all actors to the last checkpoint, or to the beginning of the run.

        With `is_counted` the death of an actor that will be found missing here was counted.
        """
        while True:
            if not self._are_there():
                if not is_counted:
                    self._count_death()
                is_counted = False
            elif self._connected():
                return
            else:
                # An actor that died while the others connected is found missing next.
                self._count_death()
                is_counted = True

    def go_back(self) -> None:
        """Replace dead actors, and return all to the last checkpoint."""
        self._count_death()
        self._began_again = True
        self.begin(is_counted=True)

    def play(self, rounds: int) -> Played:
        """Have all actors play up to this number of rounds."""
        seconds = SECONDS_A_LOOK if self._observer.wants_looks else SECONDS_A_PAUSE
        played = self.link.play(min(rounds, ROUNDS_A_PAUSE), seconds)
        self.now = max(one.now for one in played.reports)
        return played

    def save(self, rounds: int) -> None:
        """Save a checkpoint."""
        self.look(rounds, is_saved=True)
        saved = answers(self._actors, [actor.save.remote() for actor in self._actors])
        if self._spool is not None:
            for number, one in enumerate(saved):
                self._spool.add(self._stream(number), one.events)
        chunks = self._saved.chunks + [chunk for one in saved for chunk in one.chunks]
        together = zip(self._saved.timings, saved, strict=True)
        timings = [[*before, one.timings] for before, one in together]
        self._saved = _Checkpoint([one.state for one in saved], chunks, timings)
        self.deaths = 0
        for one in saved:
            for vo, seconds in one.costs.items():
                self._seconds[vo] += seconds
        self._deal_anew()

    def _stream(self, number: int) -> int:
        """The stream of events of an actor, in order of time until VOs are rebalanced."""
        return self.rebalanced * len(self._actors) + number

    def _deal_anew(self) -> None:
        """Move VOs between actors by their measured times, if that pays, at a checkpoint."""
        grid, states = self._grid, [state for state in self._saved.states if state is not None]
        found = better_process_of(grid, self._process_of, self._seconds.tolist())
        if found is None or sum(map(len, states)) > MOST_TO_DEAL:
            return
        self._saved.states[:] = rebalanced(grid, states, found)
        self._deal(found)
        self.rebalanced += 1
        self.begin()

    def look(self, rounds: int, *, is_saved: bool = False, is_over: bool = False) -> None:
        """Call the observer, if there is one and it is due."""
        observer = self._observer
        if not observer.wants_looks or not (is_saved or is_over or observer.is_due()):
            return
        looks = answers(self._actors, [actor.look.remote() for actor in self._actors])
        real_s = time.perf_counter() - self._begun
        again, self._began_again = self._began_again, False
        observer.look(Look(self.now, real_s, rounds, tuple(looks), is_saved, again, is_over))

    def job_progress(self) -> list[ProcessProgress]:
        """The progress of the jobs of all actors."""
        return answers(self._actors, [actor.progress.remote() for actor in self._actors])

    def outcome(self) -> RunOutcome:
        """The records of all actors, and their costs."""
        parts = answers(self._actors, [actor.outcome.remote() for actor in self._actors])
        total = RunOutcome(chunks=list(self._saved.chunks), actors=len(self._actors))
        total.rebalanced = self.rebalanced
        for number, part in enumerate(parts):
            if self._spool is not None:
                self._spool.add(self._stream(number), part.events)
            total.add(part)
        total.profile = self._profile([part.timings for part in parts])
        return total

    def _profile(self, last: list[Timings]) -> dict[str, Any]:
        """Timings of each actor, and predictions for other placements of VOs."""
        grid = self._grid
        together = zip(self._saved.timings, last, strict=True)
        timings = [joined([*before, one]) for before, one in together]
        by_vo = {vo: entity for entity, vo in enumerate(grid.sites)}
        one_of_each = [by_vo[vo] for vo in range(len(grid.vos))]
        dealings = {cores: np.array(deal(grid, "vo", cores))[one_of_each] for cores in (1, *CORES)}
        return ceiling(timings, dealings, grid.directory.vos)

    def stop(self) -> None:
        for actor in self._actors:
            ray.kill(actor)

    def _start_worker(self, number: int) -> Any:
        options = self._options[number]
        return WindowActor.options(**options).remote(  # type: ignore[attr-defined]
            self._shared, number, self._how
        )

    def _are_there(self) -> bool:
        """Restore each actor; dead ones are replaced."""
        states = zip(self._actors, self._saved.states, strict=True)
        calls = [actor.begin.remote(state, *self._dealing) for actor, state in states]
        nodes = []
        for number, call in enumerate(calls):
            try:
                nodes.append(ray.get(call, timeout=ANSWER_SECONDS))
            except LOST as lost:
                if reason := why_not_made(lost):
                    raise ActorDied(f"Ray actor {number} cannot start: {reason}") from None
                self._actors[number] = self._start_worker(number)
                self._missing = number
            except ray.exceptions.GetTimeoutError:
                raise ActorDied(f"actor {number} does not answer") from None
        self._nodes = nodes
        return len(nodes) == len(calls)

    def _connected(self) -> bool:
        connect = Sockets if self._transport == "sockets" else RayCalls
        try:
            self.link: Transport = connect(self._actors, self._nodes)
        except LOST:
            return False
        return True

    def _count_death(self) -> None:
        self.deaths += 1
        if self.deaths > DEATHS_IN_A_ROW:
            raise ActorDied(
                f"Ray actors died {self.deaths} times in a row, last number {self._missing}: there "
                "is too little memory, or a plugin terminates its process (with --in-process it "
                "would terminate the command)"
            )


def _drive(
    workers: _Workers,
    jobs: int,
    checkpoints: Checkpoints,
    observer: Observer,
    stalls: StallDetector,
) -> RunOutcome:
    """Play rounds until nothing is left to do, or no job makes progress."""
    rounds, stalled = 0, None
    while True:
        try:
            while True:
                played, reports = workers.play(checkpoints.rounds_left())
                rounds += played
                if is_over(reports):
                    break
                if stalls.is_due(workers.now):
                    stalled = stalls.check(workers.now, workers.job_progress())
                    if stalled is not None:
                        break
                if checkpoints.is_due(played) or is_full(reports):
                    checkpoints.save(partial(workers.save, rounds))
                observer.progress(workers.now, sum(one.jobs for one in reports), jobs)
                workers.look(rounds)
            workers.look(rounds, is_over=True)
            total = workers.outcome()
            total.rounds, total.stalled = rounds, stalled
            return total
        except LOST:
            workers.go_back()
            checkpoints.restored()
