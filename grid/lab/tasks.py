"""Runs as Ray tasks: as many at once as the cluster has CPUs, each in a process without Ray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ray

from grid.config.schema import Scenario
from grid.lab.agenda import Agenda, Kind
from grid.lab.code import code_version
from grid.lab.record import Answer, Step, Work, attempt
from grid.runtime.cluster import RayDidNotStart, ray_cluster, refuse_unsendable

WAITING_TASKS_PER_CPU = 3
"""So many are handed to Ray ahead, so that no CPU waits for the driver and memory stays flat."""

TICK_SECONDS = 1.0
RETRIES = 3


def _be_ready() -> None:
    """What a worker that comes to this has imported all that runs need."""


def _attempt_with(code: str, scenario: Scenario, file: str, measure: str) -> Answer:
    if code_version() != code:
        node = ray.util.get_node_ip_address()
        return f"the node {node} has another version of the code"
    return attempt(scenario, file, measure)


class RayDied(Exception):
    """Ray itself has ended on this machine, and with it the runs in flight."""


def run_all(
    work: Sequence[Work], kinds: Sequence[Kind], address: str | None, cpus: int | None
) -> Iterator[Step]:
    """Run all of `work`, of these kinds, as Ray tasks; answers come in the order they are ready.

    On the connected cluster, else on that at `address` or on a new one; at most `cpus` at once. A
    worker that dies is replaced and its run repeated, `RETRIES` times at most. So is Ray itself,
    which gives up on a machine that has no time for it.
    """
    left = {one[0]: one for one in work}
    for _ in range(1 + RETRIES):
        try:
            with ray_cluster(address, cpus, watch=False):
                yield from _run_left(left, kinds, cpus)
            return
        except (RayDied, RayDidNotStart):
            ray.shutdown()
    for number in left:
        yield Step(0, number, "RayDied: Ray ended again and again")


def _run_left(left: dict[int, Work], kinds: Sequence[Kind], most: int | None) -> Iterator[Step]:
    """Run what is left, and take out of it what has its answer. Raises RayDied."""
    agenda = Agenda([kinds[number] for number in left])
    for step in _run_on_ray(list(left.values()), agenda, most):
        if step.number is not None:
            del left[step.number]
        yield step


def _run_on_ray(work: Sequence[Work], agenda: Agenda, most: int | None) -> Iterator[Step]:
    """Run `work`, in the order of `agenda`, on the connected Ray cluster, `most` at once; None: as
    many as it has CPUs. Raises RayDied.
    """
    # All runs of a sweep have the same objects.
    for _, scenario, *_ in work[:1]:
        refuse_unsendable(scenario.parts)
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_attempt_with)
    code = code_version()
    resources = ray.cluster_resources()
    there = max(1, int(resources.get("CPU", 1)))
    cpus = min(there, most or there)
    warming = ray.remote(num_cpus=1)(_be_ready)
    _answers([warming.remote() for _ in range(min(cpus, len(work)))])
    yield Step(0, is_first=True)
    running: dict[Any, int] = {}

    def submit() -> None:
        # Where CPUs are left over, a task that should wait would be run.
        ahead = 0 if agenda.is_careful or cpus < there else WAITING_TASKS_PER_CPU
        while len(running) < cpus * (1 + ahead) and (place := agenda.next()) is not None:
            running[task.remote(code, *work[place][1:])] = place

    submit()
    while running:
        ready, _ = ray.wait(list(running), num_returns=1, timeout=TICK_SECONDS)
        if not ready:
            yield Step(min(len(running), cpus))
            continue
        place = running.pop(ready[0])
        agenda.ended(place)
        submit()
        yield Step(min(len(running), cpus), work[place][0], _answer(ready[0]))


def _answers(references: list[Any]) -> Any:
    try:
        return ray.get(references)
    except ray.exceptions.LocalRayletDiedError:
        raise RayDied from None


def _answer(reference: Any) -> Answer:
    try:
        answer: Answer = ray.get(reference)
    except ray.exceptions.LocalRayletDiedError:
        raise RayDied from None
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return answer
