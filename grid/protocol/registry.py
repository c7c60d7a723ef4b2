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
from grid.model.plugins.kind import Kind, function_guard, refuse_misspelt, refuse_other_arguments
from grid.model.plugins.lent_table import lent
from grid.model.plugins.origin import Guarded, Origin, ask, is_whole
from grid.model.resources import ResourceTable
from grid.model.time import Time
from grid.protocol.admission import Request
from grid.protocol.forwarding import Ask, Award, Destination, Question
from grid.protocol.forwarding.pull import Idle, PullFrom
from grid.protocol.information import GossipMessage, Overlay, PeerLists, View
from grid.protocol.selection import Choice, Selection, within_reach

if TYPE_CHECKING:
    from numpy.random import Generator

    from grid.model.messages import Load
    from grid.protocol.selection.by_utility import ByUtility


def _built_in(modules: Mapping[str, Mapping[str, str] | Sequence[str]]) -> dict[str, str]:
    """Where each built-in plugin is, by name: `module:attribute`.

    `modules` has for each module of this package its attributes by plugin name, or the names of
    those that are called alike.
    """
    package = __name__.rpartition(".")[0]
    return {
        name: f"{package}.{module}:{attribute}"
        for module, names in modules.items()
        for name, attribute in (
            names.items() if isinstance(names, Mapping) else zip(names, names, strict=True)
        )
    }


def _forwarding_problem(answer: Any, question: Question) -> str | None:
    if isinstance(answer, Ask):
        return _problem_of_ask(answer, question)
    if isinstance(answer, Award):
        known = [n for n, bid in enumerate(question.bids) if bid.resource >= 0]
        right = is_whole(answer.bid) and answer.bid in known
        expected = f"one of {known}" if known else "no Award, for there is no bid"
        return None if right else f"gave bid {shorten(answer.bid)}, expected {expected}"
    if not isinstance(answer, Destination):
        return f"gave {kind_of(answer)}, expected a Destination, an Ask or an Award"
    return _problem_of_destination(answer, question)


def _problem_of_destination(answer: Destination, question: Question) -> str | None:
    row, vo = answer.row, question.table.columns.vo
    if not is_whole(row) or not -1 <= row < len(vo):
        return f"gave row {shorten(row)}, expected a row of the table or -1"
    for name in ("wait", "late"):
        if not isinstance(value := getattr(answer, name), bool | np.bool_):
            return f"gave {name} = {shorten(value)}, expected True or False"
    if row >= 0 and vo[row] != question.vo and _may_not_go(vo[row], question):
        return (
            f"gave row {row}, of VO {vo[row]}, to which this job may not go (`own_only`, `barred`)"
        )
    return None


def _may_not_go(vo: int, question: Question) -> bool:
    return question.own_only or vo in question.barred


def _problem_of_pull(answer: Any, idle: Idle) -> str | None:
    if not isinstance(answer, PullFrom):
        return f"gave {kind_of(answer)}, expected a PullFrom"
    vo, again_us = answer
    others = idle.table.columns.vo[idle.table.columns.vo != idle.vo]
    if vo not in (-1, *others.tolist()):
        return f"asks VO {shorten(vo)} for work, expected another VO of the table or -1"
    if vo in idle.asked:
        return f"asks VO {vo} again, which has just had no work, expected one not in `asked`"
    if again_us is not None and (type(again_us) is not int or again_us < 1):
        return f"looks again after {shorten(again_us)}, expected whole microseconds or None"
    return None


class GuardedPolicy(Guarded):
    """A rule of another."""

    def __call__(self, question: Question) -> Any:
        with lent(self.origin, self._what, question.table) as copy:
            return super().__call__(question._replace(table=copy))


class GuardedPull(GuardedPolicy):
    """A rule of another that fetches work, too."""

    def idle(self, idle: Idle) -> PullFrom:
        with lent(self.origin, "idle", idle.table) as copy:
            given = idle._replace(table=copy)
            asked = self._function.idle
            answer: PullFrom = ask(self.origin, "idle", asked, _problem_of_pull, given)
        return answer


def _guarded_policy(origin: Origin, rule: Any) -> Any:
    fetches = callable(getattr(rule, "idle", None))
    if fetches:
        refuse_other_arguments(origin, rule, "idle", ("idle",))
    guard = function_guard(
        "its rule", _forwarding_problem, GuardedPull if fetches else GuardedPolicy
    )
    return guard(origin, rule)


def _problem_of_ask(ask: Ask, question: Question) -> str | None:
    if not isinstance(ask.vos, tuple | list) or not all(map(is_whole, ask.vos)):
        return f"asks {shorten(ask.vos)}, expected a tuple of numbers of VOs"
    for name in ("wait_us", "enough", "lease_us"):
        value = getattr(ask, name)
        if not (name == "wait_us" and value is None) and not (is_whole(value) and value >= 0):
            none = ", or None" if name == "wait_us" else ""
            return (
                f"asks with {name} = {shorten(value)}, expected a whole number of at least 0{none}"
            )
    wrong = [vo for vo in ask.vos if vo not in question.table.columns.vo]
    if wrong:
        return f"asks VO {wrong[0]}, expected one that has resources in the table"
    if not ask.vos and not question.pending and ask.wait_us is None:
        return "asks nobody, and waits for nothing"
    shut = [vo for vo in ask.vos if vo != question.vo and _may_not_go(vo, question)]
    if shut:
        return f"asks VO {shut[0]}, to which this job may not go (`own_only`, `barred`)"
    return None


class GuardedSelection:
    """A selection that another plugged in. Utilities are those of Eq. 1, whatever chose.

    Its `choose` is given the random stream where it takes one more argument. What resources are
    worth to forwarding rules is told by its `worth`, if it has one, else by Eq. 1: the utility that
    `partial` counts, whatever its `choose` goes by.
    """

    def __init__(self, origin: Origin, selection: Any) -> None:
        self.origin = origin
        self._selection = selection
        self.draws = "rng" in signature(selection.choose).parameters
        self.needs_work = bool(getattr(selection, "needs_work", False))
        self._by_utility: ByUtility | None = None

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: Generator | None = None,
    ) -> Choice:
        choose = self._selection.choose
        with lent(self.origin, "choose", table) as copy:
            given = (job, copy, own_vo, own_only, *((rng,) if self.draws else ()))
            choice: Choice = ask(self.origin, "choose", choose, _choice_problem, *given)
        return choice

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        own = getattr(self._selection, "utilities", None)
        if own is None:
            return self._partial().utilities(job, table)
        with lent(self.origin, "utilities", table) as copy:
            found: Floats = ask(self.origin, "utilities", own, _utilities_problem, job, copy)
        return within_reach(found, table)

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        return self._partial().utility(job, table, row)

    def _partial(self) -> ByUtility:
        if self._by_utility is None:
            from grid.protocol.selection.by_utility import ByUtility

            self._by_utility = ByUtility("partial")
        return self._by_utility


def _utilities_problem(utilities: Any, _: Job, table: ResourceTable) -> str | None:
    """What is wrong with what resources are said to be worth."""
    count = len(table.columns.vo)
    if (
        not isinstance(utilities, np.ndarray)
        or utilities.shape != (count,)
        or utilities.dtype != np.float64
    ):
        return f"gave no array of {count} numbers (float64), one for each resource"
    is_right = (within_reach(utilities, table) >= 0.0).all()
    return None if is_right else "gave a worth that is not a number of at least 0"


def _choice_problem(
    choice: Any, job: Job, table: ResourceTable, own_vo: int, own_only: bool, *_: Any
) -> str | None:
    """What is wrong with a choice for `job`."""
    if not isinstance(choice, Choice):
        return f"gave {kind_of(choice)}, expected a Choice"
    vo, widest = table.columns.vo, table.columns.widest
    for name, row in choice._asdict().items():
        if not is_whole(row) or not -1 <= row < len(vo):
            return f"gave {shorten(row)} for {name}, expected a row of the table or -1"
        if row >= 0 and job.processors > widest[row]:
            return f"gave row {row} for {name}, expected one that {job.processors} CPUs fit into"
        at_home = name == "own" or own_only
        if row >= 0 and at_home and vo[row] != own_vo:
            return f"gave row {row} for {name}, expected one of its own VO"
        if row >= 0 and name == "others" and vo[row] == own_vo:
            return f"gave row {row} for {name}, expected one of another VO"
    return None


def _guarded_selection(origin: Origin, selection: Any) -> Selection:
    if not callable(getattr(selection, "choose", None)):
        found = f"{type(selection).__name__} without a method choose"
        found += f" ({origin.shown}:{origin.line})"
        raise InvalidPlugin(
            found,
            "a selection with choose(self, job, table, own_vo, own_only)",
        )
    guarded = GuardedSelection(origin, selection)
    given = ("job", "table", "own_vo", "own_only", *(("rng",) if guarded.draws else ()))
    refuse_other_arguments(origin, selection, "choose", given)
    if callable(getattr(selection, "utilities", None)):
        refuse_other_arguments(origin, selection, "utilities", ("job", "table"))
    return guarded


OVERLAY_ATTRIBUTES = (
    "period_us", "view_size", "starts_known", "probes_first", "timeout_us", "keeps_probes",
)  # fmt: skip
OVERLAY_METHODS = (
    "subscribers",
    "known_peers",
    "rounds",
    "wait_us",
    "every_period",
    "answer",
    "probes",
)


class GuardedOverlay(Overlay):
    """An overlay that another plugged in: what is wrong with its answers is told with its line."""

    def __init__(self, origin: Origin, overlay: Any) -> None:
        self.origin = origin
        self._overlay = overlay
        for name in OVERLAY_ATTRIBUTES:
            setattr(self, name, getattr(overlay, name))

    def subscribers(self, vos: int, rng: Generator) -> PeerLists:
        return self._asked("subscribers", _whom_problem, vos, rng)

    def known_peers(self, subscribers: PeerLists) -> PeerLists:
        return self._asked("known_peers", _whom_problem, subscribers)

    def rounds(self, peers: int) -> int:
        rounds: int = ask(self.origin, "rounds", self._overlay.rounds, _rounds_problem, peers)
        return rounds

    def wait_us(self, now: Time, rng: Generator) -> Time:
        wait_us: Time = ask(self.origin, "wait_us", self._overlay.wait_us, _wait_problem, now, rng)
        return wait_us

    def every_period(self, view: View, rng: Generator) -> Iterable[GossipMessage]:
        return self._asked("every_period", _letters_problem, view, rng)

    def answer(self, view: View, sender: int, rng: Generator) -> Iterable[GossipMessage]:
        return self._asked("answer", _letters_problem, view, sender, rng)

    def probes(self, view: View, rng: Generator) -> Sequence[int]:
        return self._asked("probes", _probes_problem, view, rng)

    def _asked(self, name: str, check: Callable[..., str | None], *given: Any) -> list[Any]:
        """What its method `name` answers, as a list, for it may be a generator."""
        method = getattr(self._overlay, name)

        def listed(*them: Any) -> Any:
            answer = method(*them)
            return list(answer) if isinstance(answer, Iterable) else answer

        def problem(answer: Any, *them: Any) -> str | None:
            if not isinstance(answer, list):
                return f"gave {shorten(answer)}, expected a list or another iterable"
            return check(answer, *them)

        answer: list[Any] = ask(self.origin, name, listed, problem, *given)
        return answer


def _are_whole(numbers: Any) -> bool:
    """Is it a tuple or a list of whole numbers?"""
    return isinstance(numbers, tuple | list) and all(map(is_whole, numbers))


def _whom_problem(answer: list[Any], vos: Any, *_: Any) -> str | None:
    count = vos if isinstance(vos, int) else len(vos)
    if len(answer) != count:
        return f"gave {len(answer)} rows, expected one for each of the {count} VOs"
    for vo, whom in enumerate(answer):
        if not _are_whole(whom):
            return f"gave {shorten(whom)} for VO {vo}, expected a tuple of numbers of VOs"
        if list(whom) != sorted(dict.fromkeys(whom)) or vo in whom:
            return f"gave {shorten(whom)} for VO {vo}, expected other VOs in ascending order"
        if any(not 0 <= other < count for other in whom):
            return f"gave {shorten(whom)} for VO {vo}, expected numbers below {count}"
    return None


def _rounds_problem(answer: Any, *_: Any) -> str | None:
    if type(answer) is int and 0 <= answer <= 10_000:
        return None
    return f"gave {shorten(answer)}, expected a whole number from 0 to 10000"


def _wait_problem(answer: Any, *_: Any) -> str | None:
    if type(answer) is int and answer >= 1:
        return None
    return f"gave {shorten(answer)}, expected a whole number of at least 1"


def _letters_problem(answer: list[Any], view: View, *_: Any) -> str | None:
    for letter in answer:
        if not isinstance(letter, GossipMessage):
            return f"gave {kind_of(letter)}, expected a GossipMessage"
        if not is_whole(letter.to) or letter.to not in view.peers:
            return f"gave a letter to {shorten(letter.to)}, expected one of the view's peers"
        if not _are_whole(letter.entries):
            return f"gave a letter of {shorten(letter.entries)}, expected a tuple of numbers of VOs"
    return None


def _probes_problem(answer: list[Any], view: View, *_: Any) -> str | None:
    strangers = [vo for vo in answer if vo not in view.peers]
    if strangers or not _are_whole(answer) or len(dict.fromkeys(answer)) < len(answer):
        return f"gave {shorten(answer)}, expected different ones of the view's peers"
    return None


def _guarded_overlay(origin: Origin, overlay: Any) -> Overlay:
    missing = [name for name in OVERLAY_METHODS if not callable(getattr(overlay, name, None))]
    missing += [name for name in OVERLAY_ATTRIBUTES if not hasattr(overlay, name)]
    if missing:
        found = f"{type(overlay).__name__} without {missing[0]} ({origin.shown}:{origin.line})"
        raise InvalidPlugin(
            found, "an overlay that inherits from grid.protocol.information.Overlay"
        )
    refuse_misspelt(origin, overlay, (*OVERLAY_ATTRIBUTES, *OVERLAY_METHODS))
    for name in OVERLAY_METHODS:
        given = list(signature(getattr(Overlay, name)).parameters)[1:]
        refuse_other_arguments(origin, overlay, name, given)
    for name, least in (("period_us", 1), ("view_size", 1), ("timeout_us", 1)):
        value = getattr(overlay, name)
        may_be_none = name != "timeout_us" and value is None
        if not may_be_none and (type(value) is not int or value < least):
            expected = f"an overlay whose {name} is a whole number of at least {least}"
            raise InvalidPlugin(f"{name} = {shorten(value)}", expected)
    return GuardedOverlay(origin, overlay)


def _discount_problem(answer: Any, table: ResourceTable, _: int) -> str | None:
    shape = table.assigned_cpus.shape
    if not isinstance(answer, np.ndarray) or answer.shape != shape:
        return f"gave {kind_of(answer)}, expected an array of shape {shape}"
    if answer.dtype.kind not in "fiu":
        return f"gave an array of {answer.dtype}, expected one of float64"
    if not (answer >= 0.0).all():
        return "gave a number below 0 or none, expected assigned CPUs"
    return None


class GuardedDiscount(Guarded):
    """A discount of another."""

    def __call__(self, table: ResourceTable, vo: int) -> Any:
        with lent(self.origin, self._what, table) as copy:
            return super().__call__(copy, vo)


def _admission_problem(answer: Any, _: Request) -> str | None:
    return None if isinstance(answer, bool) else f"gave {shorten(answer)}, expected True or False"


def _cluster_problem(cluster: Any, _: Job, loads: Sequence[Load], *__: object) -> str | None:
    clusters = [answer.cluster for answer in loads]
    if is_whole(cluster) and cluster in clusters:
        return None
    return f"gave {shorten(cluster)}, expected one of the clusters {clusters}"


ADMISSION = Kind(
    "admission",
    "rule of admission",
    "decides whether a VO takes in a job of another one",
    _built_in({"admission": ("everyone", "nobody", "limited")}),
    function_guard("its rule", _admission_problem),
    given=("request",),
    place="vos.*.admission",
)
FORWARDING = Kind(
    "forwarding",
    "rule of forwarding",
    "decides where a job queues, is forwarded to, or that it is rejected",
    _built_in(
        {
            "forwarding.local": (
                "queue", "forward", "reject", "never", "to_the_best", "when_nothing_free",
                "above_load", "until_idle", "best_expected_finish",
            ),
            "forwarding.negotiated": ("reserve", "redundant", "auction", "delegated"),
            "forwarding.pull": {"pull": "Pull"},
        }
    ),
    _guarded_policy,
    given=("question",),
    place="protocol.forwarding",
)  # fmt: skip
SELECTIONS = Kind(
    "selections",
    "selection",
    "chooses a resource of the grid for each job",
    _built_in(
        {
            "selection.by_utility": ("partial", "binary", "matchmaking"),
            "selection.picked": {"random": "Random", "round_robin": "RoundRobin"},
            "selection.by_load": {"least_loaded": "LeastLoaded"},
        }
    )
    | _built_in(
        {
            "selection.picked": {"power_of_d": "PowerOfD"},
            "selection.by_load": {"earliest_completion": "EarliestCompletion"},
        }
    ),
    _guarded_selection,
    place="vos.*.selection",
)
INFORMATION = Kind(
    "information",
    "information overlay",
    "decides which VOs hear of which other VOs' status, when, and how",
    _built_in(
        {
            "information.graphs": {
                "all": "All",
                "none": "NoInformation",
                "ring": "Ring",
                "random_regular": "RandomRegular",
                "small_world": "SmallWorld",
                "tree": "Tree",
                "edges": "Edges",
            },
            "information.gossip": {"gossip": "Gossip", "index": "IndexTree", "probes": "Probes"},
        }
    ),
    _guarded_overlay,
    place="protocol.information",
)
DISCOUNTS = Kind(
    "discounts",
    "discount of old status",
    "says what a reader takes other VOs' assigned CPUs for, given how old their status is",
    _built_in({"information.discounts": ("as_told", "drained", "by_age")}),
    function_guard("its discount", _discount_problem, GuardedDiscount),
    given=("table", "vo"),
    place="protocol.discount",
)
CLUSTER_CHOICES = Kind(
    "cluster_choices",
    "choice of a cluster",
    "chooses among the clusters of a VO that can run a job, by their loads",
    _built_in({"cluster_choices": ("least_load",)}),
    function_guard("its choice", _cluster_problem),
    given=("job", "loads", "rng"),
    place="vos.*.cluster_choice",
)
