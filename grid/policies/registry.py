"""Local policies by name. Importing this imports no policy; making one does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from inspect import iscoroutinefunction
from operator import index
from typing import Any

import numpy as np

from grid.model.errors import InvalidPlugin, kind_of, shorten
from grid.model.fields import PluginRef
from grid.model.plugins.calls import Call, expected_attribute
from grid.model.plugins.registry import Kind, Plugins
from grid.model.time import NEVER, Time
from grid.policies.features import FEATURES
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import ClusterView, Plan, Policy

CONVERGENT = "grid.policies.convergent"
MOST_IDLE_WAKES = 1_000_000
"""In a row, while nothing else happens in the cluster: such a run would not end."""


_CHANGES = ("start", "preempt", "reject", "kill")


class _PlanCheck:
    """Checks the plans of a third-party policy."""

    def __init__(self) -> None:
        self._idle_wakes = 0

    def __call__(self, plan: Any, view: ClusterView, *_now: object) -> str | None:
        if not isinstance(plan, Plan):
            return f"returned {kind_of(plan)}, expected a Plan"
        slots, machines = range(len(view.jobs.serial)), range(len(view.free))
        try:
            named = [("start", slot) for slot, _ in plan.start]
            named += [(name, slot) for name in _CHANGES[1:] for slot in getattr(plan, name)]
            for name, slot in named:
                if index(slot) not in slots:
                    expected = "a waiting or running job of the view"
                    return f"returned slot {slot!r} in `{name}`, expected {expected}"
            for _, machine in plan.start:
                if index(machine) not in machines:
                    found = f"returned a start on machine {machine!r}"
                    return f"{found}, expected a number below {len(machines)}"
            index(plan.wake_us)
            if not isinstance(plan.made, bool | np.bool_):
                raise TypeError(f"`made` is {plan.made!r}")
        except (TypeError, ValueError) as error:
            return f"returned an invalid plan ({error}), expected integers and pairs of them"
        is_idle = not named and plan.wake_us < NEVER and len(view.arrived) + len(view.ended) == 0
        self._idle_wakes = self._idle_wakes + 1 if is_idle else 0
        if self._idle_wakes <= MOST_IDLE_WAKES:
            return None
        return f"requested a wake-up {MOST_IDLE_WAKES:,} times in a row and changed nothing"


def _read_only(view: ClusterView, now: Time) -> tuple[ClusterView, Time]:
    """The view with arrays that cannot be written to."""
    view = _with_read_only_arrays(view)
    view.jobs = _with_read_only_arrays(view.jobs)
    view.machines = _with_read_only_arrays(view.machines)
    return view, now


def _with_read_only_arrays(columns: Any) -> Any:
    made = object.__new__(type(columns))
    for one in fields(columns):
        value = getattr(columns, one.name)
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        object.__setattr__(made, one.name, value)
    return made


def _with_lists(plan: Any) -> Any:
    """The plan with lists for arrays and iterators."""
    if not isinstance(plan, Plan):
        return plan
    given: dict[str, Any] = {name: getattr(plan, name) for name in _CHANGES}
    lists: dict[str, Any] = {
        name: list(one) for name, one in given.items() if isinstance(one, Iterable)
    }
    return replace(plan, **lists)


def _rank_problem(rank: Any, *_: object) -> str | None:
    try:
        fits = -(2**63) <= index(rank) < 2**63
    except TypeError:
        fits = False
    return None if fits else f"returned {shorten(rank)}, expected a 64-bit integer"


def _calls(policy: Any) -> Mapping[str, Call]:
    ignores = getattr(policy, "ignores", ())
    is_valid = isinstance(ignores, tuple | list) and all(one in FEATURES for one in ignores)
    expected = f"a policy whose `ignores` is a tuple of some of {', '.join(FEATURES)}"
    expected_attribute(policy, "ignores", is_valid, expected)
    if isinstance(policy, GangPolicy):
        missing = [name for name in vars(GangPolicy()) if not hasattr(policy, name)]
        if missing:
            expected = "a gang policy whose __init__ calls super().__init__()"
            raise InvalidPlugin(f"{type(policy).__name__} without {missing[0]}", expected)
        return {"rank": Call("rank", ("size", "serial"), _rank_problem, after=index)}
    if iscoroutinefunction(getattr(policy, "plan", None)):
        found = f"{type(policy).__name__} with `async def plan`"
        raise InvalidPlugin(found, "a synchronous `def plan`")
    return {"plan": Call("plan", ("view", "now"), _PlanCheck(), _read_only, _with_lists)}


def _interpreted(policy: Any) -> Any:
    """A third-party policy is planned by its own `plan`, also if it inherits a compiled form."""
    policy.compiled_form = None
    return policy


POLICIES = Kind(
    "policies",
    "policy",
    "decides which of a cluster's waiting jobs start, and where",
    {
        "fcfs": "grid.policies.queue:fcfs",
        "sjf": "grid.policies.queue:sjf",
        "edf": "grid.policies.queue:edf",
        "easy": "grid.policies.queue:easy",
        "easy_sjbf": "grid.policies.queue:easy_sjbf",
        "flexible": "grid.policies.flexible:flexible",
        "multifactor": "grid.policies.multifactor:multifactor",
        "slurm": "grid.policies.slurm:slurm",
        "conservative": "grid.policies.queue:conservative",
        "selective": "grid.policies.queue:selective",
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
    _calls,
    place="vos.*.clusters.*.policy",
    adapt=_interpreted,
)


def policy_names() -> tuple[str, ...]:
    """All local policies that a cluster can have, our own first."""
    return Plugins().names(POLICIES)


def is_for_gangs(policy: PluginRef, plugins: Plugins) -> bool:
    """Whether a local policy is a gang policy."""
    plugin = plugins.find(POLICIES, policy.name)
    if isinstance(plugin.target, type):
        return issubclass(plugin.target, GangPolicy)
    if plugin.is_own:
        return False
    return isinstance(plugins.make(POLICIES, policy.name, policy.settings), GangPolicy)


def make_policy(
    name: str, settings: Mapping[str, Any], parts: Plugins | None = None
) -> Policy | GangPolicy:
    """A new policy for one cluster. Raises InvalidPlugin for an unknown name or a wrong setting."""
    made: Policy | GangPolicy = (parts or Plugins()).make(POLICIES, name, settings)
    return made
