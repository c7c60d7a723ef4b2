"""What more cores would give a windowed run, reckoned from the windows that it recorded.

A process waits for all others after each round, or where another is more than a round behind, if
rounds overlap. So the windows of one dealing of the VOs tell how long another dealing would take.
It is assumed that each process has a core to itself, as fast as those that were measured and on one
machine, and that the windows are the same: they are where all VOs are equally far from each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from grid.kernel.network import steps
from grid.model.arrays import Bools, Floats, Ints

CORES = (2, 4, 8, 16, 64)
PART = 0.4
"""A part of the time that is larger than this is told as a reason."""


class VoCosts(NamedTuple):
    """Processor seconds of VOs in windows: `seconds[k]` of VO `vo[k]` in window `window[k]`."""

    window: Ints
    vo: Ints
    seconds: Floats


class Timings(NamedTuple):
    """Real seconds of one process in each round.

    `busy` is spent on events, `messages` on packing and unpacking what is sent, `posts` on what all
    are told, and `waiting` until all have told. In a round that `overlaps` the one before, nobody
    waited for that. `costs` are those of VOs, if they are measured.
    """

    busy: Floats
    messages: Floats
    posts: Floats
    waiting: Floats
    overlaps: Bools
    costs: VoCosts


def joined(parts: Sequence[Timings]) -> Timings:
    """The timings of one process, from one pause to the next, as one."""
    shift = np.cumsum([0, *(len(part.busy) for part in parts)])
    moved = [
        (part.costs.window + shift[n], part.costs.vo, part.costs.seconds)
        for n, part in enumerate(parts)
    ]
    costs = VoCosts(*(np.concatenate(column) for column in zip(*moved, strict=True)))
    busy, messages, posts, waiting, overlaps = (
        np.concatenate(column) for column in list(zip(*parts, strict=True))[:5]
    )
    return Timings(busy, messages, posts, waiting, overlaps, costs)


class Measured(NamedTuple):
    """What is needed of the timings of all processes for a prediction.

    `messages_s` are of all processes, `posts_s` of one on average; a step of a round, in which each
    process tells another, takes `step_s`.
    """

    processes: int
    overlaps: Bools
    """Of each round, whether nobody waited for the one before."""
    costs: VoCosts
    messages_s: float
    posts_s: float
    step_s: float

    @property
    def rounds(self) -> int:
        return len(self.overlaps)


def measured(timings: Sequence[Timings]) -> Measured:
    """From the timings of each process."""
    rounds = len(timings[0].busy)
    columns = zip(*(one.costs for one in timings), strict=True)
    costs = VoCosts(*(np.concatenate(column) for column in columns))
    # Who waits least in a round waits for nobody, but for the message alone.
    least = np.min([one.waiting for one in timings], axis=0) if rounds else np.zeros(1)
    return Measured(
        len(timings),
        timings[0].overlaps,
        costs,
        float(sum(one.messages.sum() for one in timings)),
        float(np.mean([one.posts.sum() for one in timings])),
        float(np.median(least)) / max(1, len(steps(len(timings)))),
    )


def together(work: Floats, overlaps: Bools) -> float:
    """Seconds until all processes have done `work`, of shape (rounds, processes).

    A process tells the others how far it is after each round. In one that `overlaps` the round
    before it goes on before it knows how far they are.
    """
    told = [0.0] * work.shape[1]
    for seconds, goes_on in zip(work.tolist(), overlaps.tolist(), strict=True):
        last = max(told)
        if goes_on:
            told = [max(last, own + more) for own, more in zip(told, seconds, strict=True)]
        else:
            told = [last + more for more in seconds]
    return max(told)


def work_of(costs: VoCosts, process_of: Ints, rounds: int) -> Floats:
    """Seconds of events of each process in each round; `process_of[v]` is that of VO v."""
    count = int(process_of.max()) + 1
    cell = costs.window * count + process_of[costs.vo]
    sums: Floats = np.bincount(cell, costs.seconds, minlength=rounds * count).astype(np.float64)
    return sums.reshape(-1, count)


class Plugins(NamedTuple):
    """Of what the predicted seconds of a run are made."""

    events: float
    messages: float
    posts: float
    telling: float

    @property
    def total(self) -> float:
        return sum(self)


def predicted(run: Measured, process_of: Ints) -> Plugins:
    """The parts of the wall clock of the same run, dealt otherwise."""
    count = int(process_of.max()) + 1
    if count == 1:
        return Plugins(float(run.costs.seconds.sum()), 0.0, 0.0, 0.0)
    events = together(work_of(run.costs, process_of, run.rounds), run.overlaps)
    # So much of what is sent goes to other processes, if it goes anywhere alike.
    leaves = (1 - 1 / count) / (1 - 1 / run.processes)
    telling = run.rounds * len(steps(count)) * run.step_s
    return Plugins(events, run.messages_s * leaves / count, run.posts_s * leaves, telling)


def reason(run: Measured, parts: Plugins, names: Sequence[str]) -> str:
    """Why a run whose VOs have a core each takes so long, and what would help."""
    by_vo = np.bincount(run.costs.vo, run.costs.seconds, minlength=len(names))
    alone, total, busiest = float(by_vo.sum()), parts.total, int(by_vo.argmax())
    gain = alone / total
    if gain >= PART * len(names):
        return f"it gains up to {gain:.1f} times, with a core for each of its {len(names)} VOs"
    most = f"it gains at most {gain:.1f} times"
    if by_vo[busiest] > PART * total:
        share = by_vo[busiest] / alone
        return (
            f"{most}: VO {names[busiest]} alone has {share:.0%} of the work; share its work and "
            "machines among more VOs, or lay out each cluster by itself (--placement cluster)"
        )
    window_us = 1e6 * alone / max(1, run.rounds)
    if parts.events < (1 - PART) * total:
        return (
            f"{most}: a window has {window_us:.0f} us of work on average ({run.rounds:,} windows), "
            f"and to tell the others takes {1e6 * (total - parts.events) / run.rounds:.0f} us; "
            "longer latencies between VOs make fewer and longer windows"
        )
    return (
        f"{most}: a window has {window_us:.0f} us of work on average ({run.rounds:,} windows), "
        "most of it in a few VOs, while the others wait; longer latencies between VOs make longer "
        "windows, in which more VOs have work"
    )


def ceiling(
    timings: Sequence[Timings], dealings: Mapping[int, Ints], names: Sequence[str]
) -> dict[str, Any]:
    """What each process did all the time, and, if costs of VOs were measured, what is predicted.

    `dealings` has the process of each VO for each number of cores, among them one for 1 core, and
    `names` are those of the VOs.
    """
    whole = [np.array([one.busy, one.messages + one.posts, one.waiting]) for one in timings]
    words = ("busy", "overhead", "waiting")
    work = np.array([seconds[:2].sum(axis=0) for seconds in whole])
    found: dict[str, Any] = {
        "actors": {
            str(number): {
                word: round(float(row.sum()), 6) for word, row in zip(words, seconds, strict=True)
            }
            for number, seconds in enumerate(whole)
        },
        "critical_path": round(together(work.T, timings[0].overlaps), 6),
    }
    if len(timings) == 1 or not any(len(one.costs.seconds) for one in timings):
        return found
    run = measured(timings)
    parts = {cores: predicted(run, process_of) for cores, process_of in dealings.items()}
    found["predicted"] = {str(cores): round(part.total, 6) for cores, part in parts.items()}
    each = predicted(run, np.arange(len(names)))
    found["why"] = reason(run, each, names)
    return found
