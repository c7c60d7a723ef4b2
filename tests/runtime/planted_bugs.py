"""Bugs that are put in, of which each breaks a rule: `BUGS` plants one by its name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from grid.cluster import ClusterShell
from grid.kernel.crash_injector import CrashInjector
from grid.kernel.entity import Context
from grid.kernel.reliable import Input, Reliable
from grid.model.job import JobState
from grid.model.messages import AssignJob, ForwardJob, Refused
from grid.model.migration_messages import MoveGang
from grid.protocol.admission_queue import AdmissionQueue
from grid.protocol.grid_dispatcher import GridDispatcher
from grid.protocol.local_dispatcher import LocalDispatcher
from grid.protocol.local_scheduler import LocalScheduler
from grid.protocol.migration import GangGiver, Taker
from grid.protocol.resource_manager import ResourceManager

Bug = Callable[[pytest.MonkeyPatch], None]
BUGS: dict[str, Bug] = {}


def replaced(where: Any, name: str) -> Callable[[Any], Bug]:
    """Make a bug of a function that stands for the method `name`: it is given the right one."""

    def decorate(wrong: Any) -> Bug:
        def plant(patch: pytest.MonkeyPatch) -> None:
            right = getattr(where, name)
            patch.setattr(where, name, lambda self, *args: wrong(right, self, *args))

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
def nothing_sent_again(right: Any, self: Any, ctx: Context) -> None:
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
        self.life, self.handled = peer.life, handled


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
def what_was_heard_not_counted(right: Any, self: Any, entry: Input) -> None:
    right(self, entry)
    for peer in self._peers.values():
        peer.handled = max(0, peer.handled - 1)


# Bugs of the entities.


@replaced(LocalScheduler, "_take_in")
def ttl_not_lowered(
    right: Any, self: Any, ctx: Context, sender: str, forwarded: ForwardJob
) -> None:
    right(self, ctx, sender, forwarded)
    self._cases[forwarded.job.key].ttl += 1


@replaced(LocalScheduler, "_take_in")
def ttl_set_anew(right: Any, self: Any, ctx: Context, sender: str, forwarded: ForwardJob) -> None:
    right(self, ctx, sender, forwarded)
    self._cases[forwarded.job.key].ttl = self._ttl


@replaced(LocalScheduler, "_forward")
def forwarded_and_kept(right: Any, self: Any, ctx: Context, case: Any, *where: Any) -> None:
    right(self, ctx, case, *where)
    self._cases[case.job.key] = case
    ctx.send(self._neighbours.resource_manager, AssignJob(case.job, 0, True))


@replaced(LocalScheduler, "handle")
def refusal_ignored(right: Any, self: Any, ctx: Context, sender: str, message: Any) -> None:
    if not isinstance(message, Refused):
        right(self, ctx, sender, message)


@replaced(LocalScheduler, "_fail")
def failure_not_told(right: Any, self: Any, ctx: Context, case: Any, state: JobState) -> None:
    if case.origin == self._vo:
        right(self, ctx, case, state)
    else:
        del self._cases[case.job.key]


@replaced(ResourceManager, "_release")
def reservation_not_released(right: Any, self: Any, ctx: Context, ended: Any) -> None:
    resource, processors = self._holds[ended.key]
    self._assigned[resource] += processors
    right(self, ctx, ended)


@replaced(ResourceManager, "_assign")
def assigned_though_not_free(right: Any, self: Any, ctx: Context, *what: Any) -> None:
    assigned, self._assigned = self._assigned, self._assigned - 1e9
    right(self, ctx, *what)
    self._assigned += 1e9
    del assigned
    for place, (to, message, size) in enumerate(ctx.effects.sent):
        if type(message).__name__ == "LocalStatus":
            ctx.effects.sent[place] = (to, type(message)(message.assigned_cpus + 1e9), size)


@replaced(ResourceManager, "_move")
def moved_without_its_cpus(right: Any, self: Any, ctx: Context, key: Any, cluster: int) -> None:
    right(self, ctx, key, cluster)
    if key in self._holds:
        resource, _ = self._holds[key]
        self._holds[key] = (resource, 0)


@replaced(ResourceManager, "_admits")
def everybody_admitted(right: Any, self: Any, *request: Any) -> bool:
    del right, self, request
    return True


@replaced(AdmissionQueue, "next_ones")
def those_who_wait_forgotten(right: Any, self: Any, resource: int) -> Any:
    del right, self, resource
    return ()


@replaced(ResourceManager, "timeout")
def leases_never_over(right: Any, self: Any, ctx: Context, timer: str) -> None:
    if not timer.startswith("lease"):
        right(self, ctx, timer)


@replaced(ResourceManager, "_release_place")
def place_held_though_not_needed(right: Any, self: Any, ctx: Context, call: Any) -> None:
    if call not in self._leases:
        right(self, ctx, call)


@replaced(AdmissionQueue, "leave")
def copies_not_cancelled(right: Any, self: Any, call: Any) -> int:
    del right, self, call
    return -1


@replaced(LocalScheduler, "_award")
def job_sent_to_two_winners(right: Any, self: Any, ctx: Context, case: Any, bid: Any) -> None:
    right(self, ctx, case, bid)
    to, message, size = ctx.effects.sent[-1]
    others = [name for name in self._neighbours.schedulers if name not in (to, ctx.name)]
    if isinstance(message, ForwardJob) and others:
        ctx.send(others[0], message._replace(wait=True), size)


@replaced(AdmissionQueue, "withdraw")
def job_given_away_and_kept(right: Any, self: Any, key: Any, resource: int) -> bool:
    line = list(self._lines.get(resource, ()))
    given = bool(right(self, key, resource))
    if given:
        self._lines[resource] = deque(line)
    return given


@replaced(LocalScheduler, "_send_back")
def refused_job_kept(right: Any, self: Any, ctx: Context, case: Any) -> None:
    right(self, ctx, case)
    self._cases[case.job.key] = case
    ctx.send(self._neighbours.resource_manager, AssignJob(case.job, 0, True))


@replaced(GridDispatcher, "_place")
def sent_to_two_clusters(right: Any, self: Any, ctx: Context, question: Any) -> None:
    right(self, ctx, question)
    to, message, size = ctx.effects.sent[-1]
    other = [name for name in self._dispatchers if name != to]
    ctx.send(other[0], message, size)


@replaced(LocalDispatcher, "_report")
def end_told_twice(right: Any, self: Any, ctx: Context) -> None:
    right(self, ctx)
    ctx.effects.sent += ctx.effects.sent[-1:]


@replaced(Taker, "comes")
def gang_taken_each_time_it_is_sent(
    right: Any, self: Any, ctx: Context, giver: str, moved: MoveGang
) -> bool:
    self._guest(giver).taken = -1
    return bool(right(self, ctx, giver, moved))


@replaced(GangGiver, "timeout")
def gang_taken_back_when_no_confirmation_comes(
    right: Any, self: Any, ctx: Context, timer: str
) -> None:
    if self._sent is None:
        right(self, ctx, timer)
        return
    self._cluster.submit(self._sent[0], -1, ctx.now)
    self._end(ctx)


@replaced(ClusterShell, "advance")
def jobs_run_on_machines_that_are_down(right: Any, self: Any, until: int) -> None:
    self._outages.take(until - 1)
    right(self, until)


OF_DECISIONS = (
    "everybody_admitted", "those_who_wait_forgotten", "refused_job_kept", "leases_never_over",
    "place_held_though_not_needed", "copies_not_cancelled", "job_sent_to_two_winners",
    "job_given_away_and_kept",
)  # fmt: skip
"""Bugs in what only other rules of the protocol than the default ones do."""
