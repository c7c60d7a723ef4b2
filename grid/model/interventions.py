"""Interventions of users in a live run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grid.model.time import SECOND_US, Time

KILL, TAKE_MACHINE_DOWN, TAKE_VO_DOWN = "kill", "take_machine_down", "take_vo_down"
CUT_OFF, HEAL, PAUSE, GO_ON = "cut_off", "heal", "pause", "go_on"

LASTS = (TAKE_MACHINE_DOWN, TAKE_VO_DOWN, CUT_OFF)
"""Interventions that last until `heal`."""
MOST_MACHINES = 1_000_000
"""No cluster has more machines."""
_KINDS: dict[str, tuple[tuple[str, ...], str, str]] = {
    KILL: (("entity",), "kill the actor of {entity}", "the actor of {entity} was killed"),
    TAKE_MACHINE_DOWN: (
        ("vo", "cluster", "machine"),
        "take machine {machine} of {vo}/{cluster} down",
        "machine {machine} of {vo}/{cluster} was taken down",
    ),
    TAKE_VO_DOWN: (("vo",), "take {vo} down", "{vo} was taken down"),
    CUT_OFF: (
        ("vo", "other"),
        "cut {vo} and {other} off from each other",
        "{vo} and {other} were cut off from each other",
    ),
    HEAL: ((), "heal all injected faults", "all injected faults were healed"),
    PAUSE: ((), "stop the clock", "the clock was stopped"),
    GO_ON: ((), "resume the clock", "the clock was resumed"),
}
"""The fields of each, and its sentences as a request and when completed."""
FIELDS = {what: fields for what, (fields, _, _) in _KINDS.items()}
"""The interventions, and the fields of each."""


class Action(NamedTuple):
    """A requested intervention: `what`, one of FIELDS, with its fields.

    `kill` ends the process of an actor, that of an `entity`, which is started again. Machines and
    VOs that are taken down, and VOs that are cut off from each other, are so until `heal`. `pause`
    stops the clock, `go_on` lets it go on.
    """

    what: str
    vo: str = ""
    other: str = ""
    cluster: str = ""
    machine: int = -1
    entity: str = ""

    def in_words(self) -> str:
        """A sentence for a completed intervention."""
        return _KINDS[self.what][2].format(**self._asdict())

    def as_request(self) -> str:
        """A sentence for a request."""
        return _KINDS[self.what][1].format(**self._asdict())


class Intervention(NamedTuple):
    """An intervention that took effect: the `number`th of a run, from 1.

    `real_s` are seconds of the real clock since the run began, pauses included.
    """

    number: int
    time_us: Time
    real_s: float
    action: Action

    def row(self) -> dict[str, Any]:
        """The row in the run's folder."""
        times = {"time_s": self.time_us / SECOND_US, "real_s": round(self.real_s, 6)}
        fields = {name: getattr(self.action, name) for name in FIELDS[self.action.what]}
        return {"number": self.number, **times, "what": self.action.what, **fields}


def is_text(value: str) -> bool:
    """Whether it can be written to a file: half of a pair of surrogates cannot."""
    return not any("\ud800" <= sign <= "\udfff" for sign in value)


def action_of(row: Mapping[str, Any]) -> Action:
    """The request in a row, which may have other columns. Raises ValueError."""
    what = row.get("what")
    if not isinstance(what, str) or what not in FIELDS:
        raise ValueError(f"what: expected one of {', '.join(FIELDS)}")
    given = {name: row.get(name) for name in FIELDS[what]}
    for name, value in given.items():
        if name == "machine" and not (type(value) is int and abs(value) <= MOST_MACHINES):
            raise ValueError(f"{name}: expected a number")
        if name != "machine" and not (isinstance(value, str) and is_text(value)):
            raise ValueError(f"{name}: expected a name")
    return Action(what, **given)  # type: ignore[arg-type]


def lasting(done: Sequence[Intervention]) -> list[Intervention]:
    """Interventions that last and were not healed since."""
    whats = [one.action.what for one in done]
    healed = len(whats) - whats[::-1].index(HEAL) if HEAL in whats else 0
    return [one for one in done[healed:] if one.action.what in LASTS]


def why_idle(done: Sequence[Intervention], action: Action) -> str:
    """Why the request would have no effect after `done`; empty if it would have one."""
    clock = [one.action.what for one in done if one.action.what in (PAUSE, GO_ON)]
    if action.what == (PAUSE if clock[-1:] == [PAUSE] else GO_ON):
        return f"the clock is already {'stopped' if action.what == PAUSE else 'running'}"
    turned = action._replace(vo=action.other, other=action.vo)
    same = (action, turned) if action.what == CUT_OFF else (action,)
    if any(one.action in same for one in lasting(done)):
        return f"{action.in_words()} already"
    return ""


class LiveFacts(NamedTuple):
    """Targets of interventions: `entities`, each in an actor, and the number of machines of each
    cluster that can be taken down (0: its policy does not support outages).
    """

    speedup: float
    entities: tuple[str, ...]
    machines: tuple[int, ...]
