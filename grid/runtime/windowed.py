"""The grid on Ray actors, in virtual time: bit-identical to one process, whatever the placement.

Now and then all actors save their state, all at the same moment of the run. When one dies, it is
replaced, all go back to what was saved last, and go on from there to the same result.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ray

from grid.model.errors import PartFailed, RunFailed
from grid.model.job_results import JobResults
from grid.results.look import Look
from grid.runtime.cluster import places, ray_cluster
from grid.runtime.compiling import compiled_already
from grid.runtime.looking import Watcher
from grid.runtime.outcome import Progress, RunOutcome, Stage, tell_nobody
from grid.runtime.transport import LOST, RayCalls, Sockets, Transport, WindowActor, why_not_made
from grid.runtime.window import LOOK, Coordinator, deal
from grid.scenario.build import Grid

if TYPE_CHECKING:
    from grid.results.event_file import EventSpool

ROUNDS_A_CHECKPOINT = 5000
EVENTS_A_CHECKPOINT = 1_000_000
"""What actors keep of events for one, together: some 30 MB."""
ROUNDS_A_PROGRESS = 64
ANSWER_SECONDS = 300.0
DEATHS_IN_A_ROW = 20
"""So many deaths without a checkpoint between them are no accident."""


class ActorDied(RunFailed):
    """Ray actors of the run die again and again, and the part of the grid that they hold."""


def run_windowed(
    grid: Grid,
    placement: str = "vo",
    *,
    actors: int | None = None,
    address: str | None = None,
    transport: str = "sockets",
    rounds_a_checkpoint: int = ROUNDS_A_CHECKPOINT,
    progress: Progress | None = None,
    stage: Stage = tell_nobody,
    compiled: Callable[[Stage], None] = compiled_already,
    spool: EventSpool | None = None,
    watcher: Watcher | None = None,
) -> RunOutcome:
    """Run `grid` on Ray actors until nothing is left to do; its events go to `spool`, if given.

    `placement` is `vo`, `cluster` or `entity`; `actors` is how many actors the VOs are dealt over
    (default: one for each CPU of the cluster); `transport` is `sockets` or `calls`. Raises
    ActorDied.
    """
    started = time.perf_counter()
    stage("starting Ray" if address is None else "connecting to Ray")
    with ray_cluster(address):
        compiled(stage)
        count = actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        process_of = deal(grid, placement, count)
        with places(max(process_of) + 1) as options:
            stage(f"starting {len(options)} Ray actors, which compile code in a first run")
            workers = _Workers(grid, process_of, options, transport, spool, watcher)
            try:
                workers.begin()
                stage("running")
                wall, cpu = time.perf_counter(), time.process_time()
                total = _drive(workers, sum(grid.jobs_by_vo()), rounds_a_checkpoint, progress)
                total.cpu_seconds += time.process_time() - cpu
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, PartFailed):
                    raise error.cause from None
                raise
            finally:
                workers.stop()
    total.wall_seconds = time.perf_counter() - wall
    total.start_seconds = wall - started
    return total


@dataclass(slots=True)
class _Checkpoint:
    """What a run goes back to. `chunks` are the jobs that had ended by then."""

    states: list[bytes | None]
    coordinator: Coordinator
    chunks: list[JobResults] = field(default_factory=list)


class _Workers:
    """The actors of a run, replaced as they die."""

    def __init__(
        self,
        grid: Grid,
        process_of: list[int],
        options: list[dict[str, Any]],
        transport: str,
        spool: EventSpool | None,
        watcher: Watcher | None,
    ) -> None:
        self._grid = grid
        self._process_of = process_of
        self._options = options
        self._transport = transport
        self._spool = spool
        self._watcher = watcher
        self._began_again = False
        self._begun = time.perf_counter()
        self._shared = ray.put(grid)
        self._table = ray.put(process_of)
        self._actors = [self._start_worker(number) for number in range(len(options))]
        self.deaths = 0

    def begin(self) -> None:
        """Start all actors, from the beginning of the run."""
        nothing: list[bytes | None] = [None] * len(self._actors)
        replies = self._at(nothing)
        members = [
            [entity for entity, process in enumerate(self._process_of) if process == number]
            for number in range(len(self._actors))
        ]
        coordinator = Coordinator(self._grid.network.lookahead(members), replies)
        self.coordinator = copy.deepcopy(coordinator)
        self._saved = _Checkpoint(nothing, coordinator)

    def save(self, rounds: int) -> None:
        """Have all actors save their state, to go back to from now on."""
        self.look(rounds, is_saved=True)
        answers = self.link.exchange([(number, None) for number in range(len(self._actors))])
        chunks = self._saved.chunks + [chunk for _, saved in answers for chunk in saved.chunks]
        states = [saved.state for _, saved in answers]
        if self._spool is not None:
            for number, saved in answers:
                self._spool.add(number, saved.events)
        self.coordinator.events_held = [0 for _ in answers]
        self._saved = _Checkpoint(states, copy.deepcopy(self.coordinator), chunks)
        self.deaths = 0

    def go_back(self) -> None:
        """Replace the dead, and have all actors be as they were when they last saved."""
        self._count_death()
        self.link.close()
        self._at(self._saved.states)
        self._began_again = True
        self.coordinator = copy.deepcopy(self._saved.coordinator)

    def look(self, rounds: int, *, is_saved: bool = False, is_over: bool = False) -> None:
        """Show how the run stands, if somebody watches and it is time for that."""
        watcher = self._watcher
        if watcher is None or not (is_saved or is_over or watcher.is_due()):
            return
        answers = self.link.exchange([(number, LOOK) for number in range(len(self._actors))])
        processes = tuple(looked for _, looked in answers)
        real_s = time.perf_counter() - self._begun
        again, self._began_again = self._began_again, False
        now = self.coordinator.now
        watcher.look(Look(now, real_s, rounds, processes, is_saved, again, is_over))

    def outcome(self) -> RunOutcome:
        """What all actors recorded and what it cost them."""
        self.link.close()
        total = RunOutcome(chunks=list(self._saved.chunks), actors=len(self._actors))
        parts = ray.get([actor.outcome.remote() for actor in self._actors])
        for number, part in enumerate(parts):
            if self._spool is not None:
                self._spool.add(number, part.events)
            total.chunks += part.chunks
            total.figures += part.figures
            total.decisions += part.decisions
            total.histories += part.histories
            total.plan_times += part.plan_times
            total.violations += part.violations
            total.jobs_left += part.jobs_left
            total.schedulers += part.schedulers
            total.messages += part.messages
            total.snapshots += part.snapshots
            total.cpu_seconds += part.cpu_seconds
        return total

    def stop(self) -> None:
        for actor in self._actors:
            ray.kill(actor)

    def _start_worker(self, number: int) -> Any:
        options = self._options[number]
        return WindowActor.options(**options).remote(  # type: ignore[attr-defined]
            self._shared,
            number,
            self._table,
            self._spool is not None,
            self._watcher is not None,
        )

    def _at(self, states: list[bytes | None]) -> list[Any]:
        """Have each actor be in its state of `states`, and connect to all; what they answer."""
        while True:
            calls = [
                actor.begin.remote(state) for actor, state in zip(self._actors, states, strict=True)
            ]
            dead = 0
            answers = []
            for number, call in enumerate(calls):
                try:
                    answers.append(ray.get(call, timeout=ANSWER_SECONDS))
                except LOST as lost:
                    if reason := why_not_made(lost):
                        raise ActorDied(f"Ray actor {number} cannot start: {reason}") from None
                    self._actors[number] = self._start_worker(number)
                    dead += 1
                except ray.exceptions.GetTimeoutError:
                    raise ActorDied(f"actor {number} does not answer") from None
            if not dead and self._connected():
                return answers
            self._count_death()

    def _connected(self) -> bool:
        actors = self._actors
        try:
            self.link: Transport = (
                Sockets(actors) if self._transport == "sockets" else RayCalls(actors)
            )
        except LOST:
            return False
        return True

    def _count_death(self) -> None:
        self.deaths += 1
        if self.deaths > DEATHS_IN_A_ROW:
            raise ActorDied(f"actors died {self.deaths} times in a row")


def _drive(workers: _Workers, jobs: int, checkpoint: int, progress: Progress | None) -> RunOutcome:
    """Round after round until nothing is left to do."""
    rounds = 0
    while True:
        try:
            while not workers.coordinator.done:
                rounds += 1
                for number, reply in workers.link.exchange(workers.coordinator.orders()):
                    workers.coordinator.take(number, reply)
                many_events = sum(workers.coordinator.events_held) >= EVENTS_A_CHECKPOINT
                if rounds % checkpoint == 0 or many_events:
                    workers.save(rounds)
                if progress is not None and rounds % ROUNDS_A_PROGRESS == 0:
                    progress(workers.coordinator.now, sum(workers.coordinator.jobs), jobs)
                workers.look(rounds)
            workers.look(rounds, is_over=True)
            total = workers.outcome()
            total.rounds = rounds
            return total
        except LOST:
            workers.go_back()
