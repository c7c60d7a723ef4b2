"""Local policies by name. Importing this imports no policy; making one does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from inspect import iscoroutinefunction
from operator import attrgetter, index
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.errors import InvalidPlugin, kind_of, shorten
from grid.model.plugins.kind import Kind, refuse_misspelt, refuse_other_arguments
from grid.model.plugins.origin import Origin, ask
from grid.model.plugins.registry import Plugin, Plugins
from grid.model.time import NEVER, Time
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import FEATURES, JOB_TABLES, ClusterView, Plan, Policy

CONVERGENT = "grid.policies.convergent"
LENT = (
    "free", "queue", "running", "license_copies_free", "license_users", "free_ram_mb",
    "machines.cpus", "machines.mips", "machines.licenses", "machines.cpu_type", "machines.ram_mb",
)  # fmt: skip
"""Arrays of a view by which the cluster itself goes; those of its jobs are with them. Arrays that
are marked as not to be written would have compiled code compiled anew for them."""
MOST_IDLE_WAKES = 1_000_000
"""In a row, with nothing else happening in the cluster: such a run would never end."""


class GuardedPolicy:
    """A policy that another plugged in: what fails in it is reported, with its file and line."""

    def __init__(self, origin: Origin, policy: Policy) -> None:
        self.origin = origin
        self.ignores: tuple[str, ...] = getattr(policy, "ignores", ())
        self._policy = policy
        self._idle_wakes = 0
        self._there: list[npt.NDArray[Any]] = []
        """The queue and what ran when it planned last."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        lent = _lent(view)
        kept = [array.copy() for array in lent]
        jobs = view.jobs.tables
        jobs_kept = [table.copy() for table in jobs]
        plan: Plan = ask(self.origin, "plan", self._planned, _plan_problem, view, now)
        written = [
            f"view.{name}"
            for name, array, before in zip(LENT, lent, kept, strict=True)
            if not np.array_equal(array, before)
        ]
        written += [
            f"view.jobs.{names[row]}"
            for names, table, before in zip(JOB_TABLES, jobs, jobs_kept, strict=True)
            for row in np.flatnonzero((table != before).any(axis=1)).tolist()
        ]
        if written:
            raise self.origin.failed(
                f"plan wrote into {written[0]}, which is the cluster's own: copy it, "
                "or say with view.take and view.give_back what is to be"
            )
        self._note_wake(plan, view)
        return plan

    def _note_wake(self, plan: Plan, view: ClusterView) -> None:
        """Raises PluginFailed where it has only been waking for too long."""
        if plan.start or plan.preempt or plan.reject or plan.kill or plan.wake_us >= NEVER:
            self._idle_wakes, self._there = 0, []
            return
        there = [view.queue.copy(), view.running.copy()]
        is_same = len(self._there) > 0 and all(map(np.array_equal, there, self._there))
        self._idle_wakes, self._there = (self._idle_wakes + 1 if is_same else 0), there
        if self._idle_wakes > MOST_IDLE_WAKES:
            raise self.origin.failed(
                f"plan asked {MOST_IDLE_WAKES:,} times in a row to be woken, and changed nothing "
                "while nothing else happened: the run would never end"
            )

    def _planned(self, view: ClusterView, now: Time) -> Any:
        """Its plan, with lists in the place of arrays and of what can be read only once."""
        plan = self._policy.plan(view, now)
        if not isinstance(plan, Plan):
            return plan
        named = {name: getattr(plan, name) for name in ("start", "preempt", "reject", "kill")}
        lists: dict[str, Any] = {
            name: one.tolist() if isinstance(one, np.ndarray) else list(one)
            for name, one in named.items()
            if not isinstance(one, list) and isinstance(one, Iterable)
        }
        return replace(plan, **lists) if lists else plan


class GuardedGangPolicy(GangPolicy):
    """A gang policy that another plugged in."""

    def __init__(self, origin: Origin, policy: GangPolicy) -> None:
        self.__dict__.update(vars(policy))
        self.origin = origin
        self.ignores: tuple[str, ...] = getattr(policy, "ignores", ())
        self._policy = policy

    def rank(self, size: int, serial: int) -> int:
        return int(ask(self.origin, "rank", self._policy.rank, _rank_problem, size, serial))


def _lent(view: ClusterView) -> list[npt.NDArray[Any]]:
    return [attrgetter(name)(view) for name in LENT]


def _plan_problem(plan: Any, view: ClusterView, *_: object) -> str | None:
    if not isinstance(plan, Plan):
        return f"gave {kind_of(plan)}, expected a Plan"
    slots = len(view.jobs.serial)
    try:
        for slot, machine in plan.start:
            if not 0 <= index(slot) < slots:
                return _no_slot("start", slot)
            if not 0 <= index(machine) < len(view.free):
                return f"gave a start on machine {machine!r}, expected one below {len(view.free)}"
        for name in ("preempt", "reject", "kill"):
            for slot in getattr(plan, name):
                if not 0 <= index(slot) < slots:
                    return _no_slot(name, slot)
        index(plan.wake_us)
        if not isinstance(plan.made, bool | np.bool_):
            raise TypeError(f"`made` is {plan.made!r}")
    except (TypeError, ValueError) as error:
        return f"gave a plan that is none ({error}), expected whole numbers and pairs of them"
    return None


def _no_slot(name: str, slot: Any) -> str:
    return f"gave slot {slot!r} in `{name}`, expected one of the view's queue or of those that run"


def _rank_problem(rank: Any, *_: object) -> str | None:
    try:
        fits = -(2**63) <= index(rank) < 2**63
    except TypeError:
        fits = False
    return None if fits else f"gave {shorten(rank)}, expected a whole number of 64 bits"


def _guarded(origin: Origin, policy: Any) -> Policy | GangPolicy:
    ignores = getattr(policy, "ignores", ())
    if not isinstance(ignores, tuple | list) or any(one not in FEATURES for one in ignores):
        expected = f"a policy whose `ignores` is a tuple of some of {', '.join(FEATURES)}"
        raise InvalidPlugin(f"ignores = {shorten(ignores)}", expected)
    if isinstance(policy, GangPolicy):
        missing = [name for name in vars(GangPolicy()) if not hasattr(policy, name)]
        if missing:
            expected = "a gang policy whose __init__ calls super().__init__()"
            raise InvalidPlugin(f"{type(policy).__name__} without {missing[0]}", expected)
        refuse_misspelt(origin, policy, ("rank", "ignores", *vars(GangPolicy())))
        refuse_other_arguments(origin, policy, "rank", ("size", "serial"))
        return GuardedGangPolicy(origin, policy)
    if not callable(getattr(policy, "plan", None)):
        found = f"{type(policy).__name__} without a method plan ({origin.shown}:{origin.line})"
        raise InvalidPlugin(found, "a policy with a method plan(self, view, now)")
    if iscoroutinefunction(policy.plan):
        found = f"{type(policy).__name__} with `async def plan` ({origin.shown}:{origin.line})"
        raise InvalidPlugin(found, "def plan: a plan is made at once")
    refuse_misspelt(origin, policy, ("plan", "ignores"))
    refuse_other_arguments(origin, policy, "plan", ("view", "now"))
    return GuardedPolicy(origin, policy)


POLICIES = Kind(
    "policies",
    "policy",
    "decides which waiting jobs of a cluster start, where; those for gangs inherit GangPolicy",
    {
        "fcfs": "grid.policies.queue:fcfs",
        "sjf": "grid.policies.queue:sjf",
        "edf": "grid.policies.queue:edf",
        "easy": "grid.policies.queue:easy",
        "easy_sjbf": "grid.policies.queue:easy_sjbf",
        "flexible": "grid.policies.flexible:flexible",
        "conservative": "grid.policies.reserving:conservative",
        "selective": "grid.policies.reserving:selective",
        "afcfs": "grid.policies.gang_policy:AdaptedFirstComeFirstServed",
        "lgfs": "grid.policies.gang_policy:LargestGangFirstServed",
        "eg_edf": "grid.policies.schedule.policy:eg_edf",
        "cs_i_p": f"{CONVERGENT}.cs2007:cs_i_p",
        "cs_i_np": f"{CONVERGENT}.cs2007:cs_i_np",
        "cs_ni_p": f"{CONVERGENT}.cs2007:cs_ni_p",
        "cs_ni_np": f"{CONVERGENT}.cs2007:cs_ni_np",
        "cs2": f"{CONVERGENT}.cs2:cs2",
        "cs2_cs": f"{CONVERGENT}.cs2:cs2_cs",
        "cs2_td": f"{CONVERGENT}.cs2:cs2_td",
        "cs2_cs_td": f"{CONVERGENT}.cs2:cs2_cs_td",
        "batsim": "grid.policies.batsim.policy:batsim",
        "tabu": "grid.policies.schedule.policy:tabu",
    },
    _guarded,
    place="vos.*.clusters.*.policy",
)


def policy_names() -> tuple[str, ...]:
    """All local policies that a cluster can have, our own first."""
    return Plugins().names(POLICIES)


def is_gang_policy(part: Plugin, settings: Mapping[str, Any], parts: Plugins) -> bool:
    """Whether what the part makes is a policy for gangs."""
    if isinstance(part.target, type):
        return issubclass(part.target, GangPolicy)
    if part.is_own:
        return False
    return isinstance(parts.make(POLICIES, part.name, settings), GangPolicy)


def make_policy(
    name: str, settings: Mapping[str, Any], parts: Plugins | None = None
) -> Policy | GangPolicy:
    """A new policy for one cluster. Raises InvalidPlugin for an unknown name or a wrong setting."""
    made: Policy | GangPolicy = (parts or Plugins()).make(POLICIES, name, settings)
    return made
