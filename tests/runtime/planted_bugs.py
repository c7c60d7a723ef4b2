"""Planted bugs, each of which must break a rule of the checkers.

`BUGS` plants one by its name, and `FINDINGS` holds where each was found. Run as a program, this
searches for seeds under which each bug breaks its rule: nightly, and after the order of events in
runs has changed.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from grid.cluster import ClusterState
from grid.config import wrapped
from grid.config.load import load_scenario
from grid.kernel.crash_injector import CrashInjector
from grid.kernel.entity import Context
from grid.kernel.reliable import Input, Reliable
from grid.model.job import JobState
from grid.model.messages import AssignJob, ForwardJob, MoveGang, Refused
from grid.model.time import from_seconds
from grid.protocol.admission import AdmissionQueue
from grid.protocol.checkers import Checked
from grid.protocol.grid_dispatcher import GridDispatcher
from grid.protocol.local_dispatcher import LocalDispatcher
from grid.protocol.local_scheduler import LocalScheduler
from grid.protocol.migration import Migration
from grid.protocol.resource_manager import ResourceManager
from grid.results.checkers import check
from grid.runtime.chaos import LONGEST, Subject, faults_of, subject_of
from grid.runtime.sequential import NeverEnds, run_sequential

Bug = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Bug] = {}
SCENARIOS = Path(__file__).parent / "fault_scenarios"


def replaced(where: Any, name: str) -> Callable[[Any], Bug]:
    """Make a bug of a function that stands for the method `name`: it is given the right one."""

    def decorate(wrong: Any) -> Bug:
        def plant(patch: pytest.MonkeyPatch) -> None:
            right = getattr(where, name)

            def planted(self: Any, *args: Any, **more: Any) -> Any:
                return wrong(right, self, *args, **more)

            # A checkpoint has handlers of parts of an entity by name.
            planted.__name__ = name
            patch.setattr(where, name, planted)

        BUGS[wrong.__name__] = plant
        return plant

    return decorate


# Bugs of the layer below the entities.


@replaced(Reliable, "_receive")
def no_deduplication(
    right: Any, self: Any, ctx: Context, sender: str, peer: Any, number: int, content: Any
) -> None:
    peer.handled = min(peer.handled, number - 1)
    right(self, ctx, sender, peer, number, content)


@replaced(Reliable, "_receive")
def no_order(
    right: Any, self: Any, ctx: Context, sender: str, peer: Any, number: int, content: Any
) -> None:
    if number > peer.handled:
        peer.handled = number - 1
    right(self, ctx, sender, peer, number, content)


@replaced(Reliable, "_send_again")
def nothing_retransmitted(right: Any, self: Any, ctx: Context) -> None:
    del right, self, ctx


@replaced(CrashInjector, "_settle")
def acknowledged_before_saved(right: Any, self: Any, ctx: Context) -> None:
    held = [] if self.entity is not self.__dict__.get("_holder") else self._held
    self._holder, self._held = self.entity, ctx.effects.saved[:]
    ctx.effects.saved[:] = held
    right(self, ctx)


@replaced(Reliable, "_receive")
def acknowledged_before_handled(
    right: Any, self: Any, ctx: Context, sender: str, peer: Any, number: int, content: Any
) -> None:
    right(self, ctx, sender, peer, number, content)
    newest = max(peer.early, default=0)
    if newest:
        right(self, ctx, sender, _Pretending(peer, newest), 0, None)


class _Pretending:
    """A peer of which everything up to `handled` seems to be handled."""

    def __init__(self, peer: Any, handled: int) -> None:
        self.early: dict[int, Any] = {}
        self.incarnation, self.handled = peer.incarnation, handled


@replaced(Reliable, "_go_on")
def timers_forgotten_in_a_crash(right: Any, self: Any, ctx: Context) -> None:
    self._timers.clear()
    right(self, ctx)


@replaced(Reliable, "_restore")
def unanswered_messages_not_saved(right: Any, self: Any, state: Any) -> None:
    right(self, state)
    for peer in self._peers.values():
        peer.waiting.clear()


@replaced(Reliable, "_replay")
def received_messages_not_counted(right: Any, self: Any, entry: Input) -> None:
    right(self, entry)
    for peer in self._peers.values():
        peer.handled = max(0, peer.handled - 1)


# Bugs of the entities.


@replaced(LocalScheduler, "on_forward_job")
def ttl_not_lowered(
    right: Any, self: Any, ctx: Context, sender: str, forwarded: ForwardJob
) -> None:
    right(self, ctx, sender, forwarded)
    self._pending[forwarded.job.key].ttl += 1


@replaced(LocalScheduler, "on_forward_job")
def ttl_reset(right: Any, self: Any, ctx: Context, sender: str, forwarded: ForwardJob) -> None:
    right(self, ctx, sender, forwarded)
    self._pending[forwarded.job.key].ttl = self._settings.ttl


@replaced(LocalScheduler, "_go")
def forwarded_and_kept(
    right: Any, self: Any, ctx: Context, pending: Any, vo: int, *how: Any, **more: Any
) -> None:
    right(self, ctx, pending, vo, *how, **more)
    if vo != self._vo:
        self._pending[pending.job.key] = pending
        ctx.send(self._peers.resource_manager, AssignJob(pending.job, 0, True))


@replaced(LocalScheduler, "handle")
def refusal_ignored(right: Any, self: Any, ctx: Context, sender: str, message: Any) -> None:
    if not isinstance(message, Refused):
        right(self, ctx, sender, message)


@replaced(LocalScheduler, "_fail")
def failure_not_reported(right: Any, self: Any, ctx: Context, case: Any, state: JobState) -> None:
    if case.origin == self._vo:
        right(self, ctx, case, state)
    else:
        del self._pending[case.job.key]


@replaced(ResourceManager, "on_job_ended")
def reservation_not_released(right: Any, self: Any, ctx: Context, sender: str, ended: Any) -> None:
    one = self._assignments._of[ended.key]
    self._assignments.assigned[0, one.resource] += one.processors
    right(self, ctx, sender, ended)


@replaced(ResourceManager, "on_assign_job")
def busy_resource_assigned(right: Any, self: Any, ctx: Context, *what: Any) -> None:
    self._assignments.assigned[0] -= 1e9
    right(self, ctx, *what)
    self._assignments.assigned[0] += 1e9
    for place, (to, message, size) in enumerate(ctx.effects.sent):
        if type(message).__name__ == "LocalStatus":
            ctx.effects.sent[place] = (to, type(message)(message.assigned + 1e9), size)


@replaced(ResourceManager, "on_cluster_chosen")
def moved_without_its_cpus(right: Any, self: Any, ctx: Context, sender: str, chosen: Any) -> None:
    right(self, ctx, sender, chosen)
    if self._assignments.find(chosen.key) >= 0:
        self._assignments._of[chosen.key].processors = 0


@replaced(ResourceManager, "_admits")
def all_jobs_admitted(right: Any, self: Any, *request: Any) -> bool:
    del right, self, request
    return True


@replaced(AdmissionQueue, "take_ready")
def waiting_jobs_forgotten(right: Any, self: Any, resource: int) -> Any:
    del right, self, resource
    return ()


@replaced(ResourceManager, "timeout")
def leases_never_expire(right: Any, self: Any, ctx: Context, timer: str) -> None:
    if not timer.startswith("lease"):
        right(self, ctx, timer)


@replaced(ResourceManager, "on_release_reservation")
def reservation_not_withdrawn(
    right: Any, self: Any, ctx: Context, sender: str, release: Any
) -> None:
    if release.call not in self._leases:
        right(self, ctx, sender, release)


@replaced(AdmissionQueue, "release")
def copies_not_cancelled(right: Any, self: Any, call: Any) -> int:
    del right, self, call
    return -1


@replaced(LocalScheduler, "_award")
def job_sent_to_two_winners(right: Any, self: Any, ctx: Context, case: Any, bid: Any) -> None:
    right(self, ctx, case, bid)
    to, message, size = ctx.effects.sent[-1]
    others = [name for name in self._peers.schedulers if name not in (to, ctx.name)]
    if isinstance(message, ForwardJob) and others:
        ctx.send(others[0], message._replace(wait=True), size)


@replaced(AdmissionQueue, "withdraw")
def job_moved_and_kept(right: Any, self: Any, key: Any, resource: int) -> Any:
    queue = list(self._queues.get(resource, ()))
    given = right(self, key, resource)
    if given is not None:
        self._queues[resource] = deque(queue)
    return given


@replaced(LocalScheduler, "on_not_admitted")
def refused_job_kept(right: Any, self: Any, ctx: Context, sender: str, refused: Any) -> None:
    pending = self._pending[refused.key]
    right(self, ctx, sender, refused)
    self._pending[refused.key] = pending
    ctx.send(self._peers.resource_manager, AssignJob(pending.job, 0, True))


@replaced(GridDispatcher, "_dispatch")
def sent_to_two_clusters(right: Any, self: Any, ctx: Context, question: Any) -> None:
    right(self, ctx, question)
    to, message, size = ctx.effects.sent[-1]
    other = [name for name in self._dispatchers if name != to]
    ctx.send(other[0], message, size)


@replaced(LocalDispatcher, "_report")
def end_reported_twice(right: Any, self: Any, ctx: Context) -> None:
    right(self, ctx)
    ctx.effects.sent += ctx.effects.sent[-1:]


@replaced(Migration, "on_migration_granted")
def gang_sent_and_kept(right: Any, self: Any, ctx: Context, *given: Any) -> None:
    right(self, ctx, *given)
    for _, sent, _ in ctx.effects.sent:
        if isinstance(sent, MoveGang):
            self._cluster.receive_late(sent.job, sent.progress, ctx.now)


@replaced(ClusterState, "advance")
def jobs_run_on_machines_that_are_down(right: Any, self: Any, until: int) -> None:
    self._outages.take(until - 1)
    right(self, until)


OF_DECISIONS = (
    "all_jobs_admitted", "waiting_jobs_forgotten", "refused_job_kept", "leases_never_expire",
    "reservation_not_withdrawn", "copies_not_cancelled", "job_sent_to_two_winners",
    "job_moved_and_kept",
)  # fmt: skip
"""Bugs in forwarding policies other than the default one: `random_decisions` draws these."""


class Finding(NamedTuple):
    """The rule (a regular expression) that a bug breaks, and a scenario and seed where it does."""

    rule: str
    scenario: str
    seed: int


NEVER_ENDS = "the run does not end"
LOST = "it still has .* jobs"
DUPLICATE = "which is not here|was already here|twice"
FINDINGS = {
    "no_deduplication": Finding("was submitted twice", "two", 49),
    "no_order": Finding(LOST, "policies", 1),
    "nothing_retransmitted": Finding(LOST, "gang", 0),
    "acknowledged_before_saved": Finding(LOST, "gang", 2),
    "acknowledged_before_handled": Finding(LOST, "gang", 0),
    "timers_forgotten_in_a_crash": Finding(LOST, "mixed", 0),
    "unanswered_messages_not_saved": Finding(LOST, "gang", 0),
    "received_messages_not_counted": Finding(LOST, "gang", 2),
    "ttl_not_lowered": Finding("it forwarded .* with a TTL of", "gang", 0),
    "ttl_reset": Finding("it forwarded .* with a TTL of", "gang", 0),
    "forwarded_and_kept": Finding("ended twice", "two", 1),
    "refusal_ignored": Finding(LOST, "gang", 0),
    "failure_not_reported": Finding(LOST, "policies", 0),
    "reservation_not_released": Finding("it assigned .* CPUs, but jobs hold", "gang", 0),
    "busy_resource_assigned": Finding("was assigned as free", "gang", 0),
    "moved_without_its_cpus": Finding("it assigned .* CPUs, but jobs hold", "gang", 0),
    "all_jobs_admitted": Finding("it accepted .* at most", "policies", 17),
    "waiting_jobs_forgotten": Finding(LOST, "gang", 0),
    "leases_never_expire": Finding("the lease .* should have expired", "mixed", 0),
    "reservation_not_withdrawn": Finding("it ended a lease of", "gang", 6),
    "copies_not_cancelled": Finding("it replied twice to a reservation", "mixed", 52),
    "job_sent_to_two_winners": Finding("it sent forward_job .* which is not here", "mixed", 2),
    "job_moved_and_kept": Finding(DUPLICATE, "gang", 14),
    "refused_job_kept": Finding(DUPLICATE, "policies", 1),
    "sent_to_two_clusters": Finding("which is not here", "mixed", 0),
    "end_reported_twice": Finding("which is not here", "mixed", 0),
    "gang_sent_and_kept": Finding("which is not here", "gang", 0),
    "jobs_run_on_machines_that_are_down": Finding("machine .* is down", "gang", 0),
}


@cache
def subject(name: str, decisions: bool = False) -> Subject:
    """The fault scenario `name`."""
    path = SCENARIOS / f"{name}.yaml"
    return subject_of(load_scenario(path), str(path), decisions)


def broken_rules(bug: str, scenario: str, seed: int) -> list[str]:
    """The rules that a run breaks with the bug planted.

    An entity may raise KeyError or IndexError because of the bug after a checker has reported a
    violation: what was reported until then counts. Any other exception is let through.
    """
    of = subject(scenario, bug in OF_DECISIONS)
    reported: list[str] = []
    record = Checked._record

    def recorded(self: Any, ctx: Context, lines: Iterable[str]) -> None:
        lines = list(lines)
        reported.extend(lines)
        record(self, ctx, lines)

    with pytest.MonkeyPatch.context() as patch:
        BUGS[bug](patch)
        patch.setattr(Checked, "_record", recorded)
        # In these small scenarios few entities have so much input that they save their state.
        patch.setattr(wrapped, "INPUTS_A_STATE", 16)
        grid, faults = faults_of(of, seed)
        healed_us = from_seconds(faults.heal_s) + wrapped.virtual_rules(grid).longest_wait_us
        try:
            outcome = run_sequential(grid, limit=LONGEST * of.messages, limit_from_us=healed_us)
        except NeverEnds:
            return [*reported, NEVER_ENDS]
        except LookupError:
            if not reported:
                raise
            return reported
    errors = check(outcome.results(), grid.directory, sum(grid.jobs_by_vo()))
    return outcome.broken_rules() + errors


def search(bug: str, seeds: int = 1000) -> Finding | None:
    """The first finding of the bug, or None. A LookupError before any violation is no finding."""
    scenarios = sorted(path.stem for path in SCENARIOS.glob("*.yaml"))
    rule = FINDINGS[bug].rule
    for seed in range(seeds):
        for scenario in scenarios:
            try:
                broken = broken_rules(bug, scenario, seed)
            except LookupError:
                continue
            if any(re.search(rule, line) for line in broken):
                return Finding(rule, scenario, seed)
    return None


def main() -> None:
    """Print a finding for each bug given, by default all; exit with 1 if one has none."""
    missed = 0
    for bug in sys.argv[1:] or BUGS:
        found = search(bug)
        missed += found is None
        print(f"{bug}: {found or 'NOT FOUND'}", flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
