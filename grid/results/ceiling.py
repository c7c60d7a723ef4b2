"""Predicted run time by cores of a windowed run, from its recorded synchronization windows.

A process waits for all others after each round or, if rounds overlap, for those that are more than
a round behind. The windows recorded with one placement of the VOs therefore predict the run time
with another. The prediction assumes a core for each process, as fast as the measured ones and on
one machine, and the same windows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from grid.kernel.network import steps
from grid.model.arrays import Bools, Floats, Ints

CORES = (2, 4, 8, 16, 64)
PART = 0.4
"""Share of the run time above which something is reported as the limit."""


class VoCosts(NamedTuple):
    """CPU seconds of VOs in windows: `seconds[k]` of VO `vo[k]` in window `window[k]`."""

    window: Ints
    vo: Ints
    seconds: Floats


class Timings(NamedTuple):
    """Real seconds of one process in each round.

    `busy` on events, `messages` on packing and unpacking, `posts` on broadcasts, `waiting` for the
    reports of others. A round that `overlaps` started before the previous one was complete.
    `costs` are those of VOs, if they are measured.
    """

    busy: Floats
    messages: Floats
    posts: Floats
    waiting: Floats
    overlaps: Bools
    costs: VoCosts


def joined(parts: Sequence[Timings]) -> Timings:
    """The timings of one process from several periods."""
    shift = np.cumsum([0, *(len(part.busy) for part in parts)])
    costs = [
        part.costs._replace(window=part.costs.window + first)
        for part, first in zip(parts, shift.tolist(), strict=False)
    ]
    busy, messages, posts, waiting, overlaps = (
        np.concatenate(column) for column in list(zip(*parts, strict=True))[:5]
    )
    return Timings(busy, messages, posts, waiting, overlaps, _joined_costs(costs))


def _joined_costs(costs: Sequence[VoCosts]) -> VoCosts:
    return VoCosts(*map(np.concatenate, zip(*costs, strict=True)))


class Measured(NamedTuple):
    """The inputs of a prediction, from all processes.

    Seconds of `messages` are summed over processes, those of `posts` are a mean; a step of a round,
    in which each process reports to another, takes `step_s`.
    """

    processes: int
    overlaps: Bools
    costs: VoCosts
    messages_s: float
    posts_s: float
    step_s: float

    @classmethod
    def of(cls, timings: Sequence[Timings]) -> Measured:
        # The process that waits least in a round waits only for the delivery of messages.
        least = np.min([one.waiting for one in timings], axis=0)
        return cls(
            len(timings),
            timings[0].overlaps,
            _joined_costs([one.costs for one in timings]),
            float(sum(one.messages.sum() for one in timings)),
            float(np.mean([one.posts.sum() for one in timings])),
            float(np.median(least)) / max(1, len(steps(len(timings)))) if len(least) else 0.0,
        )


def together(work: Floats, overlaps: Bools) -> float:
    """Seconds until all processes have done `work`, of shape (rounds, processes).

    In a round that overlaps, a process starts before the others have reported the last one.
    """
    reported = np.zeros(work.shape[1])
    for seconds, overlap in zip(work, overlaps.tolist(), strict=True):
        last = reported.max()
        reported = np.maximum(last, reported + seconds) if overlap else last + seconds
    return float(reported.max())


class Prediction(NamedTuple):
    """Components of the predicted seconds of a run."""

    events: float
    messages: float
    posts: float
    reports: float

    @property
    def total(self) -> float:
        return sum(self)


def predicted(run: Measured, process_of: Ints) -> Prediction:
    """The predicted run time if VO v is in process `process_of[v]`."""
    count, costs, rounds = int(process_of.max()) + 1, run.costs, len(run.overlaps)
    if count == 1:
        return Prediction(float(costs.seconds.sum()), 0.0, 0.0, 0.0)
    cell = costs.window * count + process_of[costs.vo]
    work = np.bincount(cell, costs.seconds, minlength=rounds * count).astype(np.float64)
    # Share of messages that leave a process if receivers are uniformly distributed.
    leaves = (1 - 1 / count) / (1 - 1 / run.processes)
    return Prediction(
        together(work.reshape(-1, count), run.overlaps),
        run.messages_s * leaves / count,
        run.posts_s * leaves,
        rounds * len(steps(count)) * run.step_s,
    )


def reason(run: Measured, parts: Prediction, names: Sequence[str]) -> str:
    """What limits the speed-up of a run with a core for each VO, and what would improve it."""
    by_vo = np.bincount(run.costs.vo, run.costs.seconds, minlength=len(names))
    alone, total, busiest = float(by_vo.sum()), parts.total, int(by_vo.argmax())
    gain, rounds = alone / total, max(1, len(run.overlaps))
    if gain >= PART * len(names):
        return f"speed-up of up to {gain:.1f}, with a core for each of its {len(names)} VOs"
    limit = f"the speed-up limit is {gain:.1f}"
    if by_vo[busiest] > PART * total:
        return (
            f"{limit}: VO {names[busiest]} alone has {by_vo[busiest] / alone:.0%} of the work. "
            f"Distribute its work and machines over more VOs, or place each cluster separately "
            "(--placement cluster)"
        )
    window = f"a window has {1e6 * alone / rounds:.0f} us of work on average ({rounds:,} windows)"
    if parts.events < (1 - PART) * total:
        return (
            f"{limit}: {window}, and synchronization takes "
            f"{1e6 * (total - parts.events) / rounds:.0f} us; longer latencies between VOs result "
            f"in fewer and longer windows"
        )
    return (
        f"{limit}: {window}, most of it in a few VOs while the others wait; longer latencies "
        f"between VOs result in longer windows, in which more VOs have work"
    )


def ceiling(
    timings: Sequence[Timings], placements: Mapping[int, Ints], names: Sequence[str]
) -> dict[str, Any]:
    """The section `profile` of a manifest: seconds of each process and, if costs of VOs were
    measured, predictions.

    `placements` has the process of each VO by number of cores, 1 included; `names` are the VOs'.
    """
    found: dict[str, Any] = {
        "actors": {
            str(number): {
                "busy": round(float(one.busy.sum()), 6),
                "overhead": round(float((one.messages + one.posts).sum()), 6),
                "waiting": round(float(one.waiting.sum()), 6),
            }
            for number, one in enumerate(timings)
        }
    }
    work = np.stack([one.busy + one.messages + one.posts for one in timings], axis=1)
    found["critical_path"] = round(together(work, timings[0].overlaps), 6)
    if len(timings) == 1 or not any(len(one.costs.seconds) for one in timings):
        return found
    run = Measured.of(timings)
    predictions = {
        str(cores): round(predicted(run, process_of).total, 6)
        for cores, process_of in placements.items()
    }
    why = reason(run, predicted(run, np.arange(len(names))), names)
    return found | {"predicted": predictions, "why": why}
