"""The rules of forwarding by name, and those that go on from PU: `queue`, `forward`, `reject`.

These three say what happens where no suitable resource is free, of which PU says nothing. Others
are in modules of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.model.errors import kind_of, shorten
from grid.model.plugins.kind import Kind, function_guard, refuse_other_arguments
from grid.model.plugins.lent_table import lent
from grid.model.plugins.origin import Guarded, Origin, ask, is_whole
from grid.protocol.forwarding.interface import NOWHERE, Ask, Award, Destination, Question
from grid.protocol.forwarding.pulling import Idle, PullFrom


def queue(question: Question) -> Destination:
    """The job queues at the best resource, free or not.

    One that came from another VO queues at the best resource of the VO that it is in.
    """
    choice = question.choice
    if choice.free >= 0:
        return Destination(choice.free, False)
    from_afar = question.origin != question.vo
    return Destination(choice.own if from_afar and choice.own >= 0 else choice.anywhere, True)


def forward(question: Question) -> Destination:
    """The job goes to the best resource of another VO, and on from there, until its TTL is spent.

    Then it fails; if its TTL was 0 from the start, it is rejected. It queues here only if its TTL
    is not spent, and no other VO has a resource that would do.
    """
    choice = question.choice
    if choice.free >= 0:
        return Destination(choice.free, False)
    if choice.others >= 0:
        return Destination(choice.others, False)
    return Destination(choice.own, True) if question.ttl > 0 else NOWHERE


def reject(question: Question) -> Destination:
    """The job is rejected; one that was forwarded until its TTL was spent fails."""
    free = question.choice.free
    return Destination(free, False) if free >= 0 else NOWHERE


def _problem(answer: Any, question: Question) -> str | None:
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


class GuardedRule(Guarded):
    """A rule of another."""

    def __call__(self, question: Question) -> Any:
        with lent(self.origin, self._what, question.table) as copy:
            return super().__call__(question._replace(table=copy))


class GuardedPull(GuardedRule):
    """A rule of another that fetches work, too."""

    def idle(self, idle: Idle) -> PullFrom:
        with lent(self.origin, "idle", idle.table) as copy:
            given = idle._replace(table=copy)
            asked = self._function.idle
            answer: PullFrom = ask(self.origin, "idle", asked, _problem_of_pull, given)
        return answer


def _guard(origin: Origin, rule: Any) -> Any:
    fetches = callable(getattr(rule, "idle", None))
    if fetches:
        refuse_other_arguments(origin, rule, "idle", ("idle",))
    guard = function_guard("its rule", _problem, GuardedPull if fetches else GuardedRule)
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


_OWN = {name: f"{__name__}:{name}" for name in ("queue", "forward", "reject")} | {
    name: f"grid.protocol.forwarding.local_rules:{name}"
    for name in (
        "never", "to_the_best", "when_nothing_free", "above_load", "until_idle",
        "best_expected_finish",
    )
} | {
    name: f"grid.protocol.forwarding.asking_rules:{name}"
    for name in ("reserve", "redundant", "auction", "delegated")
} | {"pull": "grid.protocol.forwarding.pulling:Pull"}  # fmt: skip

FORWARDING = Kind(
    "forwarding",
    "rule of forwarding",
    "decides where a job queues, is forwarded to, or that it is rejected",
    _OWN,
    _guard,
    given=("question",),
    place="protocol.when_busy",
)
