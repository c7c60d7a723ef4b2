"""Interventions of users in a live run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from grid.model.time import SECOND_US, Time

KILL, TAKE_MACHINE_DOWN, TAKE_VO_DOWN = "kill", "take_machine_down", "take_vo_down"
CUT_OFF, HEAL, PAUSE, GO_ON = "cut_off", "heal", "pause", "go_on"

FIELDS: dict[str, tuple[str, ...]] = {
    KILL: ("entity",),
    TAKE_MACHINE_DOWN: ("vo", "cluster", "machine"),
    TAKE_VO_DOWN: ("vo",),
    CUT_OFF: ("vo", "other"),
    HEAL: (),
    PAUSE: (),
    GO_ON: (),
}
"""The interventions, and the fields of each."""
MOST_MACHINES = 1_000_000
"""No cluster has more machines."""
LASTS = (TAKE_MACHINE_DOWN, TAKE_VO_DOWN, CUT_OFF)
"""Interventions that last until `heal`."""


class Wish(NamedTuple):
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
        return {
            KILL: f"the actor of {self.entity} was killed",
            TAKE_MACHINE_DOWN: f"machine {self.machine} of {self.vo}/{self.cluster} was taken down",
            TAKE_VO_DOWN: f"{self.vo} was taken down",
            CUT_OFF: f"{self.vo} and {self.other} were cut off from each other",
            HEAL: "all injected faults were healed",
            PAUSE: "the clock was stopped",
            GO_ON: "the clock was resumed",
        }[self.what]

    def as_asked(self) -> str:
        """A sentence for a request."""
        return {
            KILL: f"kill the actor of {self.entity}",
            TAKE_MACHINE_DOWN: f"take machine {self.machine} of {self.vo}/{self.cluster} down",
            TAKE_VO_DOWN: f"take {self.vo} down",
            CUT_OFF: f"cut {self.vo} and {self.other} off from each other",
            HEAL: "heal all injected faults",
            PAUSE: "stop the clock",
            GO_ON: "resume the clock",
        }[self.what]


class Asked(NamedTuple):
    """A pending request; `refused` is the reason if it is refused already."""

    wish: Wish
    refused: str = ""


class Intervention(NamedTuple):
    """An intervention that took effect: the `number`th of a run, from 1.

    `real_s` are seconds of the real clock since the run began, pauses included.
    """

    number: int
    time_us: Time
    real_s: float
    wish: Wish

    def row(self) -> dict[str, Any]:
        """The row in the run's folder."""
        return {"number": self.number, **_row(self)}

    def in_words(self) -> str:
        return self.wish.in_words()


class Refusal(NamedTuple):
    """A request that was refused at `time_us`, after `real_s` seconds of the real clock.

    `done` is the number of interventions before it.
    """

    done: int
    time_us: Time
    real_s: float
    wish: Wish
    why: str

    def row(self) -> dict[str, Any]:
        """The row in the run's folder."""
        return {**_row(self), "refused": self.why}

    def in_words(self) -> str:
        return f"did not {self.wish.as_asked()}: {self.why}"


class InterventionLog(NamedTuple):
    """All interventions and refusals of a run, each in order."""

    done: tuple[Intervention, ...] = ()
    refused: tuple[Refusal, ...] = ()

    def in_order(self) -> list[Intervention | Refusal]:
        """All of them in the order of the requests."""
        places = [(one.number, 0) for one in self.done] + [(one.done, 1) for one in self.refused]
        each: list[Intervention | Refusal] = [*self.done, *self.refused]
        return [each[place] for place in sorted(range(len(each)), key=places.__getitem__)]


NO_INTERVENTIONS = InterventionLog()


def _row(one: Intervention | Refusal) -> dict[str, Any]:
    """Time, and the fields of the request."""
    times = {"time_s": one.time_us / SECOND_US, "real_s": round(one.real_s, 6)}
    fields = {name: getattr(one.wish, name) for name in FIELDS[one.wish.what]}
    return {**times, "what": one.wish.what, **fields}


def is_text(value: str) -> bool:
    """Whether it can be written to a file: half of a pair of surrogates cannot."""
    return not any("\ud800" <= sign <= "\udfff" for sign in value)


def wish_of(row: Mapping[str, Any]) -> Wish:
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
    return Wish(what, **given)  # type: ignore[arg-type]


def lasting(done: Sequence[Intervention]) -> list[Intervention]:
    """Interventions that last and were not healed since."""
    whats = [one.wish.what for one in done]
    healed = len(whats) - whats[::-1].index(HEAL) if HEAL in whats else 0
    return [one for one in done[healed:] if one.wish.what in LASTS]


def why_idle(done: Sequence[Intervention], wish: Wish) -> str:
    """Why the request would have no effect after `done`; empty if it would have one."""
    clock = [one.wish.what for one in done if one.wish.what in (PAUSE, GO_ON)]
    if wish.what == (PAUSE if clock[-1:] == [PAUSE] else GO_ON):
        return f"the clock is already {'stopped' if wish.what == PAUSE else 'running'}"
    turned = wish._replace(vo=wish.other, other=wish.vo)
    same = (wish, turned) if wish.what == CUT_OFF else (wish,)
    if any(one.wish in same for one in lasting(done)):
        return f"{wish.in_words()} already"
    return ""


class LiveFacts(NamedTuple):
    """Targets of interventions: `entities`, each in an actor, and the number of machines of each
    cluster that can be taken down (0: its policy does not support outages).
    """

    speedup: float
    entities: tuple[str, ...]
    machines: tuple[int, ...]
