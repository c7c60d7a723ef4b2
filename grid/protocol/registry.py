"""Plugin kinds of the protocol, each with its built-in plugins and the checks of third-party ones.

Plugins are named as `module:attribute`, so importing this module imports none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from grid.model.arrays import Floats
from grid.model.errors import InvalidPlugin, kind_of, shorten
from grid.model.job import Job
from grid.model.plugins.calls import Call, expected_attribute, is_integer
from grid.model.plugins.registry import Kind, function_kind
from grid.model.resources import ResourceTable
from grid.model.time import NEVER
from grid.protocol.admission import Request
from grid.protocol.forwarding import Ask, Award, Destination, Question
from grid.protocol.forwarding.pulling import Idle, PullFrom
from grid.protocol.information import GossipMessage, Overlay, View
from grid.protocol.selection import Choice, within_reach

if TYPE_CHECKING:
    from numpy.random import Generator

    from grid.model.messages import Load


def _built_in(modules: Mapping[str, Mapping[str, str] | Sequence[str]]) -> dict[str, str]:
    """Where each built-in plugin is, by name: `module:attribute`.

    `modules` has for each module of this package its attributes by plugin name, or names that are
    both.
    """
    package = __name__.rpartition(".")[0]
    return {
        name: f"{package}.{module}:{attribute}"
        for module, names in modules.items()
        for name, attribute in (
            names.items() if isinstance(names, Mapping) else zip(names, names, strict=True)
        )
    }


def _expected(is_valid: bool, found: Any, expected: str) -> str | None:
    """The end of a sentence about a wrong answer; None if it is valid."""
    return None if is_valid else f"returned {shorten(found)}, expected {expected}"


def _are_integers(numbers: Any) -> bool:
    """Whether it is a tuple or list of integers."""
    return isinstance(numbers, tuple | list) and all(map(is_integer, numbers))


def _forwarding_problem(answer: Any, question: Question) -> str | None:
    match answer:
        case Destination():
            return _problem_of_destination(answer, question)
        case Ask():
            return _problem_of_ask(answer, question)
        case Award(number):
            known = [n for n, bid in enumerate(question.bids) if bid.resource >= 0]
            is_valid = is_integer(number) and number in known
            return None if is_valid else f"returned bid {shorten(number)}, expected one of {known}"
    return f"returned {kind_of(answer)}, expected a Destination, an Ask or an Award"


def _problem_of_destination(answer: Destination, question: Question) -> str | None:
    row, vo = answer.row, question.table.columns.vo
    if not is_integer(row) or not -1 <= row < len(vo):
        return f"returned row {shorten(row)}, expected a row of the table or -1"
    for name in ("wait", "late"):
        if not isinstance(value := getattr(answer, name), bool | np.bool_):
            return f"returned {name} = {shorten(value)}, expected True or False"
    if row >= 0 and _may_not_go(vo[row], question):
        return (
            f"returned row {row}, of VO {vo[row]}, to which this job may not go "
            "(`own_only`, `barred`)"
        )
    return None


def _may_not_go(vo: int, question: Question) -> bool:
    return vo != question.vo and (question.own_only or vo in question.barred)


def _problem_of_ask(ask: Ask, question: Question) -> str | None:
    if not _are_integers(ask.vos):
        return f"asks {shorten(ask.vos)}, expected a tuple of VO numbers"
    for name in ("wait_us", "enough", "lease_us"):
        value = getattr(ask, name)
        may_be_none = name == "wait_us" and value is None
        if not may_be_none and not (is_integer(value) and value >= 0):
            return f"asks with {name} = {shorten(value)}, expected an integer of at least 0"
    for vo in ask.vos:
        if vo not in question.table.columns.vo:
            return f"asks VO {vo}, expected one that has resources in the table"
        if _may_not_go(vo, question):
            return f"asks VO {vo}, to which this job may not go (`own_only`, `barred`)"
    if not ask.vos and not question.pending and ask.wait_us is None:
        return "asks no VO and waits for no reply"
    return None


def _problem_of_pull(answer: Any, idle: Idle) -> str | None:
    if not isinstance(answer, PullFrom):
        return f"returned {kind_of(answer)}, expected a PullFrom"
    vo, again_us = answer
    others = dict.fromkeys(idle.table.columns.vo.tolist())
    if vo != -1 and (vo not in others or vo == idle.vo or vo in idle.asked):
        return f"asks VO {shorten(vo)} for work, expected another VO of the table, not in `asked`"
    is_valid = again_us is None or (type(again_us) is int and again_us >= 1)
    return _expected(is_valid, again_us, "again_us to be None or an integer of at least 1")


def _read_only(*given: Any) -> tuple[Any, ...]:
    """The arguments of a third-party plugin, with read-only tables."""
    if hasattr(given[0], "table"):
        return (given[0]._replace(table=given[0].table.to_read()),)
    return tuple(one.to_read() if isinstance(one, ResourceTable) else one for one in given)


def _forwarding_calls(policy: Any) -> Mapping[str, Call]:
    calls = {"__call__": Call("its policy", ("question",), _forwarding_problem, _read_only)}
    if callable(getattr(policy, "idle", None)):
        calls["idle"] = Call("idle", ("idle",), _problem_of_pull, _read_only)
    return calls


class ThirdPartySelection:
    """A selection that is not built in, completed by utilities.

    Its `choose` is passed the random stream if it has a parameter `rng`. The utilities of resources
    for forwarding policies are those of its `utilities`, if it has that, else of PU Eq. 1.
    """

    def __init__(self, selection: Any) -> None:
        from grid.protocol.selection.by_utility import ByUtility

        self.origin = selection.origin
        self._selection = selection
        self._partial = ByUtility("partial")
        self.draws = _draws(selection)
        self.needs_backlog = bool(getattr(selection, "needs_backlog", False))

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: Generator | None = None,
    ) -> Choice:
        given = (job, table, own_vo, own_only, *((rng,) if self.draws else ()))
        choice: Choice = self._selection.choose(*given)
        return choice

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        own = getattr(self._selection, "utilities", None)
        if own is None:
            return self._partial.utilities(job, table)
        return within_reach(own(job, table), table)

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        return self._partial.utility(job, table, row)


def _draws(selection: Any) -> bool:
    choose = getattr(type(selection), "choose", None)
    return choose is not None and "rng" in signature(choose).parameters


def _utilities_problem(utilities: Any, _: Job, table: ResourceTable) -> str | None:
    count = len(table.columns.vo)
    if (
        not isinstance(utilities, np.ndarray)
        or utilities.shape != (count,)
        or utilities.dtype != np.float64
    ):
        return f"did not return an array of {count} numbers (float64), one for each resource"
    is_right = (within_reach(utilities, table) >= 0.0).all()
    return None if is_right else "returned a utility that is not a number of at least 0"


def _choice_problem(
    choice: Any, job: Job, table: ResourceTable, own_vo: int, own_only: bool, *_: Any
) -> str | None:
    if not isinstance(choice, Choice):
        return f"returned {kind_of(choice)}, expected a Choice"
    vo, widest = table.columns.vo, table.columns.widest
    for name, row in choice._asdict().items():
        if not is_integer(row) or not -1 <= row < len(vo):
            return f"returned {shorten(row)} for {name}, expected a row of the table or -1"
        if row >= 0 and job.processors > widest[row]:
            least = f"a resource with at least {job.processors} CPUs"
            return f"returned row {row} for {name}, expected {least}"
        is_local = name == "own" or own_only
        if row >= 0 and is_local and vo[row] != own_vo:
            return f"returned row {row} for {name}, expected a row of this VO"
        if row >= 0 and name == "others" and vo[row] == own_vo:
            return f"returned row {row} for {name}, expected a row of another VO"
    return None


def _selection_calls(selection: Any) -> Mapping[str, Call]:
    given = ("job", "table", "own_vo", "own_only", *(("rng",) if _draws(selection) else ()))
    calls = {"choose": Call("choose", given, _choice_problem, _read_only)}
    if callable(getattr(selection, "utilities", None)):
        given = ("job", "table")
        calls["utilities"] = Call("utilities", given, _utilities_problem, _read_only)
    return calls


def _subscribers_problem(answer: list[Any], vos: Any, *_: Any) -> str | None:
    count = vos if isinstance(vos, int) else len(vos)
    if not isinstance(answer, list) or len(answer) != count:
        return f"returned {shorten(answer)}, expected a row for each of the {count} VOs"
    for vo, others in enumerate(answer):
        peers = dict.fromkeys(range(count))
        peers.pop(vo)
        if not _are_integers(others) or list(others) != [one for one in peers if one in others]:
            return f"returned {shorten(others)} for VO {vo}, expected other VOs in ascending order"
    return None


def _messages_problem(answer: list[Any], view: View, *_: Any) -> str | None:
    for one in answer if isinstance(answer, list) else [answer]:
        if not isinstance(one, GossipMessage):
            return f"returned {kind_of(one)}, expected an iterable of GossipMessage"
        if not is_integer(one.to) or one.to not in view.peers:
            return f"returned a message to {shorten(one.to)}, expected one of the view's peers"
        if not _are_integers(one.entries):
            return f"returned entries {shorten(one.entries)}, expected a tuple of VO numbers"
    return None


def _probes_problem(answer: list[Any], view: View, *_: Any) -> str | None:
    is_valid = _are_integers(answer) and len(dict.fromkeys(answer)) == len(answer)
    is_valid = is_valid and all(vo in view.peers for vo in answer)
    return _expected(is_valid, answer, "distinct peers of the view")


def _integer_problem(least: int, most: int) -> Callable[..., str | None]:
    def problem(answer: Any, *_: Any) -> str | None:
        is_valid = type(answer) is int and least <= answer <= most
        return _expected(is_valid, answer, f"an integer from {least} to {most}")

    return problem


def _to_list(answer: Any) -> Any:
    return list(answer) if isinstance(answer, Iterable) else answer


_OVERLAY_CHECKS: Mapping[str, tuple[Callable[..., str | None], bool]] = {
    "subscribers": (_subscribers_problem, True),
    "known_peers": (_subscribers_problem, True),
    "rounds": (_integer_problem(0, 10_000), False),
    "wait_us": (_integer_problem(1, NEVER), False),
    "every_period": (_messages_problem, True),
    "answer": (_messages_problem, True),
    "probes": (_probes_problem, True),
}
"""The check of each method's answer, and whether that is a list."""


def _overlay_calls(overlay: Any) -> Mapping[str, Call]:
    if not isinstance(overlay, Overlay):
        expected = "an overlay that inherits from grid.protocol.information.Overlay"
        raise InvalidPlugin(type(overlay).__name__, expected)
    for name in ("period_us", "view_size", "timeout_us"):
        value = getattr(overlay, name)
        is_valid = value is None and name != "timeout_us"
        is_valid = is_valid or (type(value) is int and value >= 1)
        expected = f"an overlay whose {name} is an integer of at least 1"
        expected_attribute(overlay, name, is_valid, expected)
    return {
        name: Call(
            name,
            tuple(signature(getattr(Overlay, name)).parameters)[1:],
            check,
            after=_to_list if is_list else None,
        )
        for name, (check, is_list) in _OVERLAY_CHECKS.items()
    }


def _discount_problem(answer: Any, table: ResourceTable, _: int) -> str | None:
    shape = table.assigned_cpus.shape
    is_array = isinstance(answer, np.ndarray) and answer.shape == shape
    is_valid = is_array and answer.dtype.kind in "fiu" and bool((answer >= 0.0).all())
    return _expected(is_valid, answer, f"assigned CPUs, an array of numbers of shape {shape}")


def _admission_problem(answer: Any, _: Request) -> str | None:
    return _expected(isinstance(answer, bool), answer, "True or False")


def _cluster_problem(cluster: Any, _: Job, loads: Sequence[Load], *__: object) -> str | None:
    clusters = [answer.cluster for answer in loads]
    is_valid = is_integer(cluster) and cluster in clusters
    return _expected(is_valid, cluster, f"one of the clusters {clusters}")


ADMISSION = function_kind(
    "admission",
    "admission policy",
    "decides whether a VO admits a job from another VO",
    _built_in({"admission": {"all": "admit_all", "none": "admit_none", "limited": "limited"}}),
    ("request",),
    _admission_problem,
    "vos.*.admission",
)
FORWARDING = Kind(
    "forwarding",
    "forwarding policy",
    "decides whether a job queues, is forwarded or is rejected, and where",
    _built_in(
        {
            "forwarding.local": (
                "queue", "forward", "reject", "never", "to_the_best", "when_nothing_free",
                "above_load", "until_idle", "best_expected_finish",
            ),
            "forwarding.bidding": ("reserve", "redundant", "auction", "delegated"),
            "forwarding.pulling": {"pull": "Pull"},
        }
    ),
    _forwarding_calls,
    given=("question",),
    place="protocol.forwarding",
)  # fmt: skip
SELECTIONS = Kind(
    "selections",
    "selection",
    "chooses the resource for each job",
    _built_in(
        {
            "selection.by_utility": ("partial", "binary", "matchmaking"),
            "selection.by_load": {
                "random": "Random",
                "round_robin": "RoundRobin",
                "least_loaded": "LeastLoaded",
                "power_of_d": "PowerOfD",
                "earliest_completion": "EarliestCompletion",
            },
        }
    ),
    _selection_calls,
    place="vos.*.selection",
    adapt=ThirdPartySelection,
)
INFORMATION = Kind(
    "information",
    "information overlay",
    "defines which VOs receive the status of which other VOs, and how",
    _built_in(
        {
            "information.overlays": {
                "all": "All",
                "none": "NoInformation",
                "ring": "Ring",
                "random_regular": "RandomRegular",
                "small_world": "SmallWorld",
                "tree": "Tree",
                "edges": "Edges",
                "gossip": "Gossip",
                "index": "IndexTree",
                "probes": "Probes",
            }
        }
    ),
    _overlay_calls,
    place="protocol.information",
)
DISCOUNTS = function_kind(
    "discounts",
    "status correction",
    "estimates the assigned CPUs of other VOs, based on the age of their status",
    _built_in({"information": ("no_correction", "drained", "by_age", "own_dispatches")}),
    ("table", "vo"),
    _discount_problem,
    "protocol.discount",
    before=_read_only,
)
CLUSTER_CHOICES = function_kind(
    "cluster_choices",
    "cluster placement policy",
    "chooses among the clusters of a VO that can run a job, by their loads",
    _built_in({"grid_dispatcher": ("least_load",)}),
    ("job", "loads", "rng"),
    _cluster_problem,
    "vos.*.cluster_choice",
)
